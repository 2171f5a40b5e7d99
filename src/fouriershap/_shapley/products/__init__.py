"""Sums of products over players, with complex or real factors, against a background."""
