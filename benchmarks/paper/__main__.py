"""The paper's experiments on its real data, in one command: `make paper`, or quickly `make paper QUICK=1`.

cd benchmarks
python -m paper                   # everything; finished cells are not run again
python -m paper --quick           # small settings, into results/paper-quick
python -m paper --only fig3       # some parts
python -m paper --report          # figures and pages from the results, without a run
python -m paper --readme ../docs/reproduce.md   # write the table of results between the page's markers
"""

from __future__ import annotations

import argparse
import warnings
from itertools import chain
from pathlib import Path

from paper import fig1, fig2, fig3, figures, readme, report, store, tables
from paper.settings import FULL, QUICK


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small settings, a few minutes")
    parser.add_argument("--only", nargs="+", metavar="PART", help="truth, fig1 to fig5, table2, table4")
    parser.add_argument("--report", action="store_true", help="no run: figures and pages from the results")
    parser.add_argument("--readme", type=Path, help="the page whose benchmark table is written")
    arguments = parser.parse_args()
    settings = QUICK if arguments.quick else FULL
    warnings.filterwarnings("ignore", category=UserWarning, module="sklearn|shap|lightgbm")
    warnings.filterwarnings("ignore", message=".*(Maximum iterations|Stochastic Optimizer).*")
    if not arguments.report:
        # What others build on comes first; a part that is asked for alone brings its models along.
        cells = chain(*(part.cells(settings) for part in (fig3, fig1, fig2, tables)))
        wanted = [cell for cell in cells if not arguments.only or cell.part in arguments.only]
        store.run(wanted, settings)
    where = store.folder(settings)
    results = store.read(where)
    if not results:
        raise SystemExit(f"benchmarks/results/{where.name} holds no results; run without --report first.")
    figures.draw(results, where)
    page = where.parent / "README.md" if settings is FULL else where / "README.md"
    page.write_text(report.page(results, where.name if settings is FULL else "."))
    print(f"written: benchmarks/results/{page.relative_to(where.parent)}")
    if arguments.readme:
        readme.update(arguments.readme, results)
        print(f"written: the benchmark table of {arguments.readme.name}")


if __name__ == "__main__":
    main()
