"""The old place and names of `niidpart.arithmetic.deal`, for strategies of users."""

from .arithmetic import deal as _new
from .renamed import forward_names

_RENAMES = {
    "apportion": "apportion_weights",
    "at_least": "fill_up",
    "even": "split_evenly",
    "feasible": "require_feasible",
    "fewest_first": "deal_to_fewest",
    "largest_remainder": "apportion",
    "largest_remainders": "apportion_rows",
    "owners_of": "deal_rows",
    "subsets": "draw_subsets",
}
__getattr__ = forward_names("niidpart.deal", _new, _RENAMES)
