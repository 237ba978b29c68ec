"""Arithmetic with the same bits everywhere: elementary functions, random streams, dealing."""
