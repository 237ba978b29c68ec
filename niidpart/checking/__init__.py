"""Checks on splits: derived again from recipe and data (`verify`), and compared (`diff`)."""
