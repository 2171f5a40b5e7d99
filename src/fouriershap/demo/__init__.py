"""The demo (`make demo`): a tree model on real data beside shap, and a function on bits as a spectrum."""
