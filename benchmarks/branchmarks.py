"""A neutral harness: TreeBranchMarks' data sets of scikit-learn, shap, WoodelfHD and us, by its own clock.

    git clone https://github.com/ron-wettenstein/TreeBranchMarks
    pip install pyarrow plotly && pip install --no-deps --target old woodelf-explainer==0.4.0  # the newest it takes
    PYTHONPATH=TreeBranchMarks:old python benchmarks/branchmarks.py

Its own page, with its authors' code in it, stays in benchmarks/.cache/branchmarks; results/branchmarks.md is a table of
it. Set PYTHONPATH for this script alone: with it, every other benchmark would take the old woodelf, too.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _cells import Cells
from _common import RESULTS, cores, seconds
from _pages import markdown_table

CACHE = Path(__file__).parent / ".cache" / "branchmarks"
CELL = "experiment"  # one: the framework runs it as a whole
PACKAGES = ("shap", "xgboost", "scikit-learn")  # woodelf, an old one for this alone, is told apart
DEPTHS = (4, 8, 16)
SETS = {
    "breast_cancer": (200, 100),
    "diabetes": (300, 100),
    "digits": (100, 100),
}  # trees, rows, as it has them, but for the rows of digits: 400 against ten classes take shap many minutes
N_BACKGROUND = 100
NAMES = ("fouriershap", "WoodelfHD", "SHAP")


def run() -> dict[str, Any]:
    """The experiment, in the framework's own words; nothing of an earlier one is taken."""
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)
    from treebranchmarks import Experiment, Mission, MissionConfig, datasets
    from treebranchmarks.core.model import ModelConfig
    from treebranchmarks.core.params import EnsembleType
    from treebranchmarks.core.task import Task, TaskType
    from treebranchmarks.methods.shap_method import SHAPApproach
    from treebranchmarks.methods.woodelf_original_and_hd_method import WoodelfHDApproach
    from treebranchmarks.models.xgboost_model import XGBoostWrapper

    from branchmarks_adapter import FourierShapApproach

    approaches = [SHAPApproach(), WoodelfHDApproach(), FourierShapApproach()]
    sources = {
        "breast_cancer": (datasets.BreastCancerDataset(), "classification"),
        "diabetes": (datasets.DiabetesDataset(), "regression"),
        "digits": (datasets.DigitsDataset(), "classification"),
    }
    missions = []
    for name, (dataset, kind) in sources.items():
        trees, rows = SETS[name]
        models = {
            ModelConfig(
                ensemble_type=EnsembleType.XGBOOST,
                hyperparams={
                    "tree_method": "hist",
                    "learning_rate": 0.1,
                    "min_child_weight": 0.0,
                    "max_depth": depth,
                    "n_estimators": trees,
                },
                random_state=42,
            ): XGBoostWrapper(task_type=kind)
            for depth in DEPTHS
        }
        for task, background in ((TaskType.PATH_DEPENDENT_SHAP, 0), (TaskType.BACKGROUND_SHAP, N_BACKGROUND)):
            missions.append(
                Mission(
                    MissionConfig(
                        name=f"{name}: {'path-dependent' if not background else 'background'}",
                        dataset=dataset,
                        model_wrappers=models,
                        tasks=[Task(task, approaches, n_repeats=2, cache_root=CACHE)],
                        n_values=[rows],
                        m_values=[background],
                        cache_root=CACHE,
                    )
                )
            )
    experiment = Experiment(name="fouriershap", missions=missions, results_dir=CACHE)
    with contextlib.chdir(CACHE):  # it keeps data sets where it runs
        result = experiment.run()
        experiment.generate_html()  # a page of its own, beside its data
    lines = []
    for mission in result.as_dict()["missions"]:
        for task in mission["task_results"]:
            cells = [_cell(task["approach_results"], name) for name in NAMES]
            lines.append((mission["mission_name"], str(task["params"]["D"]), *cells))
    return {"lines": lines, "woodelf": version("woodelf-explainer")}


def page(kept: Cells) -> str:
    """Its results as a table."""
    text = (
        "TreeBranchMarks' clock (wall, the mean of its repeats; making the explainer counts for WoodelfHD and us, for "
        "SHAP it does not: so its authors call it), XGBoost on the data sets that "
        f"come with scikit-learn, {N_BACKGROUND} background rows. ~: by its own extrapolation. The first two cells of "
        "ours hold the first calls of the process, which load what is loaded when needed."
    )
    text += f" woodelf-explainer {kept.found[CELL]['woodelf']}, the newest that it takes."
    table = markdown_table(("task", "depth", *NAMES), kept.found[CELL]["lines"])
    return "\n".join(["# A neutral harness", "", kept.told(), "", text, "", table, ""])


def _cell(took: dict[str, Any], name: str) -> str:
    entry = next((entry for key, entry in took.items() if key.lower() == name.lower()), None)
    if entry is None or entry["not_supported"]:
        return "-"
    if entry["memory_crash"] or entry["runtime_error"]:
        return "out of memory" if entry["memory_crash"] else "fails"
    return ("~" if entry["is_estimated"] else "") + seconds(entry["running_time"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    kept = Cells(RESULTS / "branchmarks.json", PACKAGES, wanted=(CELL,))
    kept.page = lambda: page(kept)
    kept.measure(CELL, run, threads=cores())
    print(page(kept))


if __name__ == "__main__":
    main()
