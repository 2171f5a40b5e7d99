"""Lines in two columns."""

import sys

from fouriershap import about, libraries


def print_lines(lines: list[tuple[str, str]]) -> None:
    """Print (name, value) in two columns."""
    width = max(len(what) for what, _ in lines)
    sys.stdout.write("".join(f"{what:{width}}  {value}\n" for what, value in lines))


def installed() -> list[tuple[str, str]]:
    """Return versions, kernels and machine, and the models of each library that can be read."""
    lines = list(about().items())
    for library in libraries():
        tested = f" (tested with {library.tested})" if library.tested else ""
        lines.append((library.name, "; ".join(library.supported) + tested))
    return lines
