"""All jobs at once: weights with a leading axis J, an algorithm's functions under vmap."""

from .executor import Stacked

__all__ = ["Stacked"]
