"""The old place of `niidpart.arithmetic.rng`, for strategies of users."""

from .arithmetic import rng as _new
from .renamed import forward_names

__getattr__ = forward_names("niidpart.rng", _new)
