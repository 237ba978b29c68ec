"""Directions declared as data, which an engine may know by name: one kind a file. Needs torch."""
