"""One HTML file that shows a model's SHAP values, and computes new ones in the browser."""

from fouriershap.report._report import write_report

__all__ = ["write_report"]
