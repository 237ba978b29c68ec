"""Splits held against their data and against each other: `verify` and `diff`."""
