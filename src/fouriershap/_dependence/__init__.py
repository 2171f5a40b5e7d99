"""Models of how features depend on each other, fitted to rows; see README.md."""
