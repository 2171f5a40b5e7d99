"""Pages of the documentation, each in an environment made by its own install line: ``make docs-check``.

A reader copies the first line with ``pip install`` on a page, then the code below. So does this: the line as it stands,
with this checkout in place of the release; then the page's code, by doctest. Pages of one line share one.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
_LINE = re.compile(r"pip install ([^`\n]*fouriershap[^`\n]*)")


def install_line(text: str) -> tuple[str, ...] | None:
    """What the first install line of a page installs; None where it has none."""
    found = _LINE.search(text)
    return None if found is None else tuple(shlex.split(found[1]))


def has_code(text: str) -> bool:
    return bool(doctest.DocTestParser().get_examples(text))


def run(page: Path) -> int:
    """The number of examples that fail; what each prints may be cut by ``...``, as in `make test`."""
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    return doctest.testfile(str(page), module_relative=False, optionflags=options, encoding="utf-8").failed


def attempt(line: tuple[str, ...], pages: list[Path], wheel: Path) -> list[str]:
    """Names of the pages that fail in an environment made by this line."""
    ours = [re.sub(r"^fouriershap", str(wheel), part) for part in line]
    # pandas shows frames as wide as the terminal is; of a plot nothing is shown.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean |= {"MPLBACKEND": "Agg", "COLUMNS": "80"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *ours], check=True)
        failed = []
        for page in pages:
            command = [python, str(Path(__file__).resolve()), "--run", str(page.resolve())]
            if subprocess.run(command, cwd=folder, env=clean, check=False).returncode:
                failed.append(page.name)
            print(
                f"{page.name}: {'FAILED' if page.name in failed else 'runs'} after pip install {shlex.join(line)}",
                flush=True,
            )
    return failed


def main(arguments: list[str]) -> int:
    """The number of pages that fail."""
    if arguments[:1] == ["--run"]:
        return run(Path(arguments[1]))
    chosen = [Path(name) for name in arguments] or sorted((ROOT / "docs").rglob("*.md"))
    pages: defaultdict[tuple[str, ...], list[Path]] = defaultdict(list)
    failed = []
    for page in chosen:
        text = page.read_text(encoding="utf-8")
        if "FOURIERSHAP_DATA" in text and has_code(text) and not os.environ.get("FOURIERSHAP_DATA"):
            print(f"{page.name}: left out, FOURIERSHAP_DATA does not name the folder of its data", flush=True)
        elif has_code(text):
            line = install_line(text)
            if line is None:
                failed.append(page.name)
                print(f"{page.name}: FAILED, it has code, and no line that says what to install", flush=True)
            else:
                pages[line].append(page)
    with tempfile.TemporaryDirectory() as folder:
        build = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            folder,
            str(ROOT),
        ]
        subprocess.run(build, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        for line, some in pages.items():
            failed += attempt(line, some, wheel)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
