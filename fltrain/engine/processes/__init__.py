"""Whole jobs to worker processes of one thread."""

from .availability import count_cores, require_worker_processes, why_not_workers
from .executor import Processes

__all__ = ["Processes", "count_cores", "require_worker_processes", "why_not_workers"]
