"""The cells of `trees.py`, one file per group."""
