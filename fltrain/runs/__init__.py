"""A run from the request to its outcome: cells, rounds, folders, sweeps, comparison."""
