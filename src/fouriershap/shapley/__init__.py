"""Stage 2: from terms and a background to SHAP values."""
