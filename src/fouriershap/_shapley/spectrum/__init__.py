"""Spectra against a background: tables of terms, and the closed form."""
