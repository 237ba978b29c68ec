"""Whole jobs to worker processes of one thread."""

from .executor import Processes, cores, hindrance, offered

__all__ = ["Processes", "cores", "hindrance", "offered"]
