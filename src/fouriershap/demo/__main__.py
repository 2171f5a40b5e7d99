"""Run the demo: ``python -m fouriershap.demo``; the pictures go to the folder demo/."""

from pathlib import Path

from fouriershap.demo import spectrum, trees


def main() -> None:
    """Explain a tree model, then a function on bits."""
    folder = Path("demo")
    folder.mkdir(exist_ok=True)
    print("── A tree model ──────────────────────────────────────────────────────────────────\n")
    pictures = [trees.run(folder)]
    print("── A function on bits ────────────────────────────────────────────────────────────\n")
    pictures.append(spectrum.run(folder))
    print("\npictures: " + ", ".join(map(str, pictures)))


if __name__ == "__main__":
    main()
