"""Whole jobs to worker processes of one thread."""

from .availability import can_fork, count_cores, has_lost_workers, require_worker_processes
from .executor import Processes

__all__ = ["Processes", "can_fork", "count_cores", "has_lost_workers", "require_worker_processes"]
