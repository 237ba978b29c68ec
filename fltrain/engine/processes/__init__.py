"""Whole jobs to worker processes of one thread."""

from .executor import Processes, count_cores, require_worker_processes, why_not_workers

__all__ = ["Processes", "count_cores", "require_worker_processes", "why_not_workers"]
