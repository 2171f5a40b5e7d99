"""Run the demo: ``python -m fouriershap.demo``; pictures and a page go to the folder demo/."""

from pathlib import Path

from fouriershap.demo import blackbox, spectrum, trees
from fouriershap.demo._page import show, write_page


def main() -> None:
    """Explain a tree model, a neural network, and a function on bits."""
    folder = Path("demo")
    folder.mkdir(exist_ok=True)
    sections = []
    for part in (trees, blackbox, spectrum):
        sections.append(part.run(folder))
        show(sections[-1])
    page = folder / "index.html"
    write_page(page, "fouriershap: what it does", sections)
    print(f"The same with pictures: {page}")
    print(f'The tree model as a page that answers "what if": {folder / trees.REPORT}')


if __name__ == "__main__":
    main()
