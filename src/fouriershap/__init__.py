"""Exact SHAP values, fast at any scale."""
