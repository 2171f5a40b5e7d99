"""Random models of every library and version: does our reading say what the library itself says?

    python benchmarks/fuzz.py                              # 20,000 models; goes on where it stopped
    python benchmarks/fuzz.py --models 3000 --jobs 1
    python benchmarks/fuzz.py --environments .venv .venv-oldest
    .venv-3.12/bin/python benchmarks/fuzz.py --seed 17     # one model, in this environment

The environments are those of `make test` and `make test-versions`, as far as they are there; models are dealt out to
them in turn. Each model is a number, from which its settings, its rows and what is asked of it follow. How far each
environment has come is kept in benchmarks/.cache/fuzz, until the package or this benchmark changes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CACHE = HERE / ".cache" / "fuzz"
RESULTS = HERE / "results" / "fuzz.json"
MODELS = 20_000


def environments(given: list[str] | None) -> dict[str, Path]:
    """Interpreters by the names of their folders."""
    folders = [Path(name) for name in given] if given else sorted(HERE.parent.glob(".venv*"))
    found = {folder.resolve().name: folder.absolute() / "bin" / "python" for folder in folders}
    lacking = [str(python) for python in found.values() if not python.exists()]
    if lacking or not found:
        raise SystemExit(
            f"no environment at {', '.join(lacking) or HERE.parent}: make test, make test-versions"
        )
    return found


def run_all(chosen: dict[str, Path], models: int, jobs: int) -> None:
    """A process per environment, ``jobs`` at a time; the page is written whatever happens."""
    # Small models: threads would only wait for each other.
    alone = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}

    def run(first: int, name: str) -> int:
        command = [str(chosen[name]), __file__, "--child", name, str(first), str(len(chosen)), str(models)]
        return subprocess.run(command, env=alone, check=False).returncode

    try:
        with ThreadPoolExecutor(jobs) as pool:
            ended = dict(zip(chosen, pool.map(run, range(len(chosen)), chosen), strict=True))
    finally:
        write(list(chosen), models)
    for name, code in ended.items():
        if code:
            print(f"{name}: ended with {code} at seed {(CACHE / f'{name}.seed').read_text()}")
    raise SystemExit(any(ended.values()) or _wrong(list(chosen)))


def _states(names: list[str]) -> dict[str, Any]:
    paths = {name: CACHE / f"{name}.json" for name in names}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def _wrong(names: list[str]) -> bool:
    return any(state["failures"] for state in _states(names).values())


def write(names: list[str], models: int) -> None:
    from fuzz_cells import report

    found = _states(names)
    RESULTS.write_text(json.dumps({"asked": models, "environments": found}, indent=1) + "\n")
    RESULTS.with_suffix(".md").write_text(report.page(found, models))
    print(f"{sum(state['done'] for state in found.values()):,} models: {RESULTS.with_suffix('.md')}")


def tell(seed: int) -> None:
    """One model, for people."""
    from fuzz_cells.run import draw, try_one

    _, library, trial = draw(seed)
    print(f"seed {seed}: {library} {trial.kind}\n{trial.model!r}\nrows: {trial.table.form}")
    for column in trial.table.columns:
        print(f"  {column.dtype}: {', '.join(map(repr, column.pool[:12]))}")
    _, outcome = try_one(seed)
    print(
        f"refused: {outcome.refused}" if outcome.refused else "differences, as shares of the largest output:"
    )
    for check, difference in outcome.differences.items():
        print(f"  {check}: {difference:.1e}")
    for check, text in outcome.failures.items():
        print(f"WRONG {check}: {text}")
    raise SystemExit(bool(outcome.failures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=MODELS, help="over all environments together")
    parser.add_argument("--environments", nargs="+", metavar="FOLDER", help="by default every .venv* here")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="environments at a time")
    parser.add_argument("--seed", type=int, help="try this model alone, here")
    parser.add_argument(
        "--child", nargs=4, metavar=("NAME", "FIRST", "STEP", "UNTIL"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.child is None and options.seed is None:
        run_all(environments(options.environments), options.models, options.jobs)
    from fuzz_cells.checks import quiet

    quiet()
    if options.seed is not None:
        tell(options.seed)
    from fuzz_cells.run import try_many

    name, *numbers = options.child
    try_many(CACHE / f"{name}.json", *map(int, numbers))


if __name__ == "__main__":
    sys.exit(main())
