"""The cellar: errors, checks, arrays and bits, threads, progress, memory, files. It imports nothing of ours."""
