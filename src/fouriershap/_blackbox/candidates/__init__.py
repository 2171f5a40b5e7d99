"""Candidates: ways to fit answers, one file each."""
