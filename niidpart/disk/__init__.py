"""Arrays that are larger than memory: in files of a scratch folder, read, written and sorted."""
