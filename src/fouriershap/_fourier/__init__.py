"""Spectra: functions on bits as sums of characters, and the transforms that find them."""
