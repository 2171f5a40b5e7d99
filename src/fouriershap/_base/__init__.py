"""Errors, checks, bits, threads, progress, queries, files: what every package needs. It imports nothing of ours."""
