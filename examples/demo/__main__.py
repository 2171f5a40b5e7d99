"""Run the demo: ``python examples/demo``; report pages go to the folder demo/."""

from pathlib import Path

import demo_blackbox
import demo_spectrum
import demo_trees
from demo_section import show


def main() -> None:
    """Explain a tree model, a neural network, and a function of bits."""
    folder = Path("demo")
    folder.mkdir(exist_ok=True)
    for part in (demo_trees, demo_blackbox, demo_spectrum):
        show(part.run(folder))


if __name__ == "__main__":
    main()
