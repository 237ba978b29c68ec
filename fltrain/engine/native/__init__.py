"""Jobs on threads, the whole local training of each in one call of compiled code; the answers of models counted by it, too."""

from .executor import Native, workers
from .offered import offered, possible

__all__ = ["Native", "offered", "possible", "workers"]
