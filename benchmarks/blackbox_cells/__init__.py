"""Cells of the benchmark of black boxes."""
