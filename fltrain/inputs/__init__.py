"""The split as tensors, and what happens to a batch on its way to the model."""
