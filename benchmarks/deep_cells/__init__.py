"""The parts of `deep_trees.py`."""
