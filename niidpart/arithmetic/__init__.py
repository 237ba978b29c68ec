"""Randomness, elementary functions and dealing that give the same bits on every machine."""
