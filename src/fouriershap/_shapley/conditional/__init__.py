"""Conditional values: what is unknown follows what is known; see `ConditionalEngine`."""
