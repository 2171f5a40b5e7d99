"""Parts of `growth.py`."""
