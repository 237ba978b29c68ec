"""Jobs on threads: the whole local training of each in one call of compiled code.

The same code counts the right answers of models.
"""

from .eligibility import can_train_natively, require_native
from .executor import Native, count_threads

__all__ = ["Native", "can_train_natively", "count_threads", "require_native"]
