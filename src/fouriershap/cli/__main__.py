"""``python -m fouriershap.cli`` is the command ``fouriershap``."""

from fouriershap.cli import main

if __name__ == "__main__":
    main()
