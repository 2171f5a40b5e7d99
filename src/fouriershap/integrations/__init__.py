"""Engines that explain beyond one machine: the explainer travels to where the rows are."""
