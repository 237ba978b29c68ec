"""All jobs at once: weights with a leading axis J, the functions of an algorithm under `torch.func.vmap`."""

from .executor import Stacked

__all__ = ["Stacked"]
