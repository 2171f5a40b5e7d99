"""Lines in two columns."""

import sys


def print_lines(lines: list[tuple[str, str]]) -> None:
    """Print (name, value) in two columns."""
    width = max(len(what) for what, _ in lines)
    sys.stdout.write("".join(f"{what:{width}}  {value}\n" for what, value in lines))
