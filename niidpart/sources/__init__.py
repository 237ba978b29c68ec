"""Data sources: one file each, named after its option; the folder is the registry."""
