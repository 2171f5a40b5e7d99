"""Trees against a background: tables, the walk, and the plan that chooses between them."""
