"""Publish a split on the Hugging Face Hub and fetch one: `push` and `pull`."""
