"""Whole jobs to worker processes of one thread."""

from .executor import Processes, cores, offered

__all__ = ["Processes", "cores", "offered"]
