"""One HTML file that shows a model's SHAP values, and computes new ones in the browser.

A renderer: it takes plain data, and knows no model and no explainer. `Explainer.report` gathers the data.
"""

from fouriershap.report._content import Actual, Comparison, Content, Input, Interactions, Output, Sets, WhatIf
from fouriershap.report._write import write_report

__all__ = [
    "Actual",
    "Comparison",
    "Content",
    "Input",
    "Interactions",
    "Output",
    "Sets",
    "WhatIf",
    "write_report",
]
