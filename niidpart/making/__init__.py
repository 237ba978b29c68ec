"""From labels and a request to a split: complete the recipe, run the strategy, hold out parts."""
