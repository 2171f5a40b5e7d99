"""Interactions of any order: what an index is, sets of players, and what gives their interactions."""
