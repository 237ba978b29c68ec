"""A model and a loss as pure functions of parameters."""
