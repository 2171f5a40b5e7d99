"""Rows at the door: from what callers hold to codes, and from codes back to words."""
