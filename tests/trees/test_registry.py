"""The registry of libraries: one that another package offers, and test models for every class that is read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import product_models
import sum_models
from fouriershap import libraries
from fouriershap._libraries.registry import BUILT_IN
from models import CASES

# A model library, the package that adapts it, and a program that knows of neither.
LIBRARY = """
import numpy as np

class Stump:
    def __init__(self, threshold):
        self.threshold = threshold

    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] >= self.threshold, 3.0, 1.0)

class Table:
    def __init__(self, cells):
        self.cells = cells
"""
ADAPTER = """
import numpy as np
from fouriershap._base.links import IDENTITY
from fouriershap._libraries.reading import Answer, Format, Library, tree_reading
from fouriershap._trees.assemble import Tree, join

def make(threshold):
    nodes = join([Tree(
        feature=np.array([0, -1, -1]),
        threshold=np.array([threshold, 0, 0]),
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        missing_left=np.zeros(3, dtype=bool),
        cover=np.zeros(3),
        values=np.array([[0.0], [1.0], [3.0]]),
    )])
    return tree_reading("acme Stump", nodes, 2, np.float64, np.zeros(1), np.zeros(1), link=IDENTITY)

LIBRARY = Library(
    name="Acme",
    package="acme_models",
    supported_trees=("stumps of Acme",),
    trees={"Stump": lambda model: make(model.threshold)},
    ask=lambda reading, question: [Answer(reading.model.predict(question.asked))],
    formats=(Format(".acme", lambda path: make(float(path.read_text()))),),
    rows={"Table": lambda X, name: X.cells},
)
"""
PROGRAM = """
import sys
from pathlib import Path

import numpy as np
import fouriershap as fs
from acme_models import Stump, Table

assert "acme_adapter" not in sys.modules
X = np.array([[0.0, 5.0], [1.0, 5.0]])
explainer = fs.Explainer(Stump(0.5), X)
assert explainer.kind == "trees" and explainer.checked
np.testing.assert_allclose(explainer.shap_values(X), [[-1, 0], [1, 0]], atol=1e-6)
np.testing.assert_array_equal(explainer.shap_values(Table(X)), explainer.shap_values(X))
Path("model.acme").write_text("0.25")
assert fs.read_model("model.acme").library.name == "Acme"
assert fs.libraries()[-1].name == "Acme"
try:
    fs.read_model(object())
except fs.UnsupportedModelError as error:
    assert "stumps of Acme" in str(error)

Stump.predict = lambda self, X: np.zeros(len(X))
try:
    fs.Explainer(Stump(0.5), X)
except fs.UnsupportedModelError as error:
    assert "disagrees with Acme" in str(error)
else:
    raise AssertionError("a model that is read wrongly passes the check")
"""


def test_another_package_adds_a_library(tmp_path: Path) -> None:
    installed = tmp_path / "site"
    about = installed / "acme_adapter-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-adapter\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fouriershap.libraries]\nacme_models = acme_adapter:LIBRARY\n")
    (installed / "acme_models.py").write_text(LIBRARY)
    (installed / "acme_adapter.py").write_text(ADAPTER)
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_built_in_libraries_come_by_their_packages() -> None:
    assert [library.package for library in libraries()][: len(BUILT_IN)] == list(BUILT_IN)


def fitted_models(package: str) -> Iterator[Any]:
    """Yield the models that the tests fit for the library of ``package``."""
    for makers, needed in (
        ((product_models.linear, product_models.kernels, product_models.networks), "sklearn"),
        ((product_models.statsmodels,), "statsmodels"),
        ((product_models.gblinear,), "xgboost"),
    ):
        for make in makers if needed == package else ():
            yield from (case.model for case in make().values())
    yield from (sum_models.fitted(name) for name in sum_models.MODELS if package == "sklearn")
    yield from (make().model for make in CASES.get(package, {}).values())


@pytest.mark.parametrize("package", BUILT_IN)
def test_every_class_that_is_read_has_a_test_model(package: str) -> None:
    if find_spec(package) is None or (package != "statsmodels" and not CASES.get(package)):
        pytest.skip(f"{package} is not installed, or tested by its files")
    library = next(library for library in libraries() if library.package == package)
    left = (library.trees.keys() | library.products.keys()) - {"AdaBoostRegressor"}  # which is refused
    for model in fitted_models(package):
        left -= {base.__name__ for base in type(model).__mro__}
        if not left:
            break
    assert not left
