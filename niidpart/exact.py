"""The old place of `niidpart.arithmetic.exact`, for strategies of users."""

from .arithmetic import exact as _new
from .renamed import forward_names

__getattr__ = forward_names("niidpart.exact", _new)
