"""Asking a function that costs something: in batches, counted, and every answer kept for the next time."""
