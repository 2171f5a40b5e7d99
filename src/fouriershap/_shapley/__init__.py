"""Stage 2: from a representation and a background to SHAP values. `engine.py` is the protocol."""
