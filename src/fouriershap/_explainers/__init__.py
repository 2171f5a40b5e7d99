"""Explainers: names, how rows become codes, a representation and an engine."""
