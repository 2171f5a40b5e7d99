"""Tree models as plain arrays."""
