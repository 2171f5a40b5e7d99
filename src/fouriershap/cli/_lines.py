"""Facts in two columns."""

import sys


def print_lines(lines: list[tuple[str, str]]) -> None:
    """(What, value) in two columns, to standard output."""
    width = max(len(what) for what, _ in lines)
    sys.stdout.write("".join(f"{what:{width}}  {value}\n" for what, value in lines))
