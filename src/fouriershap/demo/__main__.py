"""Run the demo: ``python -m fouriershap.demo``; report pages go to the folder demo/."""

from pathlib import Path

from fouriershap.demo import blackbox, spectrum, trees
from fouriershap.demo._section import show


def main() -> None:
    """Explain a tree model, a neural network, and a function of bits."""
    folder = Path("demo")
    folder.mkdir(exist_ok=True)
    for part in (trees, blackbox, spectrum):
        show(part.run(folder))


if __name__ == "__main__":
    main()
