"""Questions beyond the row: why a mean changed, what matters overall, how cohorts differ, reasons for a letter."""
