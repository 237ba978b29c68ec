"""Jobs on threads, the whole local training of each in one call of compiled code; the answers of models counted by it, too."""

from .eligibility import can_train_natively, require_native
from .executor import Native, count_threads

__all__ = ["Native", "can_train_natively", "count_threads", "require_native"]
