"""Draw the picture of docs/interactions.md: `python docs/images/orders.py`."""

from questions import HERE, session


def main() -> None:
    """Draw it."""
    axes = session("interactions.md")["found"].plot()  # type: ignore[attr-defined]
    axes.figure.savefig(HERE / "orders.png", dpi=110)


if __name__ == "__main__":
    main()
