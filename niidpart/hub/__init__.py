"""Publish a split on the Hugging Face Hub and fetch one: `push`, `pull` and `fetch`.

A repository holds one split at a time: `split.h5`, the tables of `formats/hf.py`, and a card.
Every split that was ever published there keeps its tag.
"""

from .fetching import Fetched, Pulled, fetch, pull
from .publishing import Pushed, push

__all__ = ["Fetched", "Pulled", "Pushed", "fetch", "pull", "push"]
