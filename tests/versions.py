"""Readers, explainers and files under other Pythons: the newest libraries there, and the oldest that are allowed.

``make test-versions`` runs it; it needs nothing but a Python. Each environment is a folder ``.venv-...`` that is
kept until what it was made from changes. A Python that is not found is skipped, and a line says so.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST = "3.11"  # the Python under which the lower bounds are tried
# What depends on the versions of other libraries: their models, frames, files and plots.
TESTS = (
    "readers",
    "readers_sklearn",
    "readers_sums",
    "readers_no_sums",
    "arithmetic",
    "through_steps",
    "readers_xgboost",
    "readers_lightgbm",
    "readers_catboost",
    "readers_xgboost_layouts",
    "readers_formats",
    "covers",
    "product_explainer",
    "readers_onnx",
    "readers_spark",
    "model_check",
    "casts",
    "dispatch",
    "opening",
    "drop_in",
    "shap_arguments",
    "tree_explainer",
    "tree_input",
    "pipelines",
    "recipes",
    "frames",
    "frame_names",
    "batches",
    "explanations",
    "io",
    "malformed",
    "cli",
    "cli_black_box",
    "cli_options",
)
_MOST_SECONDS = 1500  # of an environment: what hangs is a failure
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<lowest>[0-9][0-9.]*)")


class Environment(NamedTuple):
    """A virtual environment to test in; ``constraints`` are lines for pip, empty for the newest of everything."""

    name: str
    python: str
    constraints: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return ROOT / f".venv-{self.name}"

    @property
    def extra(self) -> str:
        """Of pyproject.toml: what is tested in such an environment alone."""
        return "versions-oldest" if self.constraints else "versions-newest"

    @property
    def interpreter(self) -> str:
        return str(self.folder / "bin" / "python")


def lower_bounds(document: dict[str, Any]) -> tuple[str, ...]:
    """``name==lowest`` for every ``name>=lowest`` in a pyproject.toml, those of the build included."""
    project = document["project"]
    requirements = [*document["build-system"]["requires"], *project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        requirements += extra
    found: dict[str, str] = {}
    for match in filter(None, map(_REQUIREMENT.fullmatch, requirements)):
        lowest = found.setdefault(match["name"], match["lowest"])
        if lowest != match["lowest"]:
            raise SystemExit(
                f"pyproject.toml has {match['name']}>={lowest} and {match['name']}>={match['lowest']}: state one bound."
            )
    return tuple(f"{name}=={lowest}" for name, lowest in sorted(found.items()))


def find_python(version: str) -> str | None:
    """A Python of this version that runs, or None."""
    return next((path for path in _candidates(version) if _says(path) == version), None)


def _candidates(version: str) -> Iterator[str]:
    # All of PATH: pyenv's shim may come first, and fails where pyenv was not told to use this version.
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield str(Path(folder) / f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True))
    yield sys.executable


def _says(python: str) -> str | None:
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def fingerprint(environment: Environment) -> str:
    """What an environment was made from, as a digest: the project's requirements and its kernels."""
    digest = hashlib.sha256(repr(environment).encode())
    kernels = sorted(
        path
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".cpp", ".h") or path.name == "CMakeLists.txt"
    )
    for path in [ROOT / "pyproject.toml", ROOT / "CMakeLists.txt", *kernels]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def install(environment: Environment) -> None:
    """Make the environment, unless it is there and made from the same."""
    stamp = environment.folder / ".versions"
    wanted = fingerprint(environment)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    _run(environment.python, "-m", "venv", "--clear", str(environment.folder))
    pip = (environment.interpreter, "-m", "pip", "install", "--quiet")
    _run(*pip, "--upgrade", "pip")
    options: tuple[str, ...] = ()
    if environment.constraints:
        file = environment.folder / "constraints.txt"
        file.write_text("\n".join(environment.constraints) + "\n")
        # Wheels alone: a bound for which there is none is a bound that nobody can use.
        options = ("--constraint", str(file), "--build-constraint", str(file), "--only-binary", ":all:")
    _run(*pip, *options, "--editable", f".[versions,{environment.extra}]")
    stamp.write_text(wanted)


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def test(environment: Environment) -> bool:
    """Whether the tests pass."""
    files = [str(next((ROOT / "tests").rglob(f"test_{name}.py"))) for name in TESTS]
    # Not "loadgroup", as `make test` has it: where a process crashes, that waits for good (pytest-xdist 3.8).
    command = [environment.interpreter, "-m", "pytest", "-q", "-n", "auto", "--dist", "load", *files]
    # As many processes as cores: threads of OpenMP beside them would take twice the time.
    alone = {"OMP_NUM_THREADS": "1"} | os.environ
    if _passes(command, alone):
        return True
    # Old libraries crash now and then in company (CatBoost 1.2.8 did while it trained, and while it saved). What
    # failed gets a second chance in a process of its own; what is wrong fails again.
    _say(f"{environment.name}: failed; what failed is tried again, by itself")
    return _passes([environment.interpreter, "-m", "pytest", "-q", "--last-failed", *files], alone)


def _passes(command: list[str], variables: dict[str, str]) -> bool:
    try:
        done = subprocess.run(command, cwd=ROOT, env=variables, check=False, timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def environments() -> Iterator[Environment]:
    """The oldest libraries first, then the newest under every Python that is found."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pythons = {version: find_python(version) for version in PYTHONS}
    for version, python in pythons.items():
        if python is None:
            _say(f"Python {version}: not found, skipped")
            continue
        if version == OLDEST:
            yield Environment("oldest", python, lower_bounds(document))
        yield Environment(version, python)


def _say(text: str) -> None:
    print(text, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The number of environments in which something failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="environments, e.g. oldest 3.12 (default: all)")
    parser.add_argument("--tested", type=Path, help="an environment in which every test has passed already")
    parser.add_argument("--install", action="store_true", help="make the environments, and run nothing")
    parser.add_argument(
        "--find", nargs="+", metavar="VERSION", help="print the first of these Pythons that runs"
    )
    options = parser.parse_args(arguments)
    if options.find:
        print(next(filter(None, map(find_python, options.find)), ""))
        return 0
    tested = _says(str(options.tested / "bin" / "python")) if options.tested else None
    chosen = [found for found in environments() if not options.names or found.name in options.names]
    if any(found.name == tested for found in chosen):
        _say(f"Python {tested}, newest libraries: tested in {options.tested}, skipped")
        chosen = [found for found in chosen if found.name != tested]
    results: dict[str, bool] = {}
    with ThreadPoolExecutor(1) as pool:  # the next environments are made while one is tested
        made = {found: pool.submit(install, found) for found in chosen}
        for found, making in made.items():
            making.result()
            _say(f"{found.name}: {found.folder.name}, {found.python}")
            results[found.name] = options.install or test(found)
    for name, passed in results.items():
        _say(f"{name}: {'ready' if options.install else 'passed' if passed else 'FAILED'}")
    return sum(not passed for passed in results.values())


if __name__ == "__main__":
    sys.exit(main())
