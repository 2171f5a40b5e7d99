"""What is asked of every model: our reading, our SHAP values and our files against the library's own answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

import fouriershap as fs
from fuzz_cells import frames
from fuzz_cells.definition import Truth, by_definition
from fuzz_cells.rows import Rows, beside_thresholds, sample, take
from fuzz_cells.trial import SINGLE, Trial

N_PROBES = 150
_SHARE_OF_FILES, _SHARE_OF_FRAMES = 0.15, 0.5
_TABLES = 1e-6  # tables of single precision
# To LightGBM this one number, negated, is zero in arrays, but less than zero in sparse matrices. We follow arrays.
_ZERO_OF_LIGHTGBM = float(np.float32(1e-35))


class Outcome(NamedTuple):
    """What came of a model."""

    kind: str
    refused: str = ""  # why it is not explained at all
    differences: dict[str, float] = {}  # the largest by check, as a share of the largest output  # noqa: RUF012
    failures: dict[str, str] = {}  # check -> what is wrong  # noqa: RUF012


class Case(NamedTuple):
    """A model, the rows that it is tried on, and what is true of them."""

    trial: Trial
    probes: Rows
    answers: np.ndarray  # (n_probes, n_outputs), the library's own
    rows: Rows
    background: Rows
    weights: np.ndarray
    player: np.ndarray  # a random partition of the columns
    truth: Truth
    truth_of_groups: Truth
    scale: float  # the largest of answers, leaves and base: what sums are rounded to

    def explainer(self, background: Rows = None, **options: Any) -> fs.Explainer:
        return fs.TreeExplainer(self.trial.model, background, n_jobs=1, **options)

    def groups(self) -> list[str]:
        return [f"group {p}" for p in self.player]


def examine(rng: np.random.Generator, trial: Trial, folder: Path) -> Outcome:
    """Every check, each on its own: one that fails does not hide another."""
    try:
        case = _case(rng, trial)
    except fs.UnsupportedModelError as error:
        return Outcome(trial.kind, refused=str(error))
    except fs.FourierShapError as error:
        return Outcome(trial.kind, failures={"reading": f"{type(error).__name__}: {error}"})
    if not np.isfinite(case.answers).all():
        return Outcome(trial.kind, refused="the library's own answer is not finite")
    checks: dict[str, Callable[[], tuple[float, float]]] = {
        "reading": lambda: _reading(case),
        "tables": lambda: _values(case, max(trial.tolerance, _TABLES), strategy="tables"),
        "stream": lambda: _values(case, max(trial.tolerance, _TABLES), strategy="stream"),
        "walk": lambda: _values(case, trial.tolerance, strategy="walk", precision="double"),
        "path": lambda: _path(case, ("tables", "walk")[int(walk)]),
        "groups": lambda: _groups(case, ("tables", "walk")[1 - int(walk)]),
    }
    if not fs.read_model(trial.model).representation.has_cover:
        del checks["path"]  # where nobody counted rows there is no such value, and an error says so
    walk = rng.random() < 0.5
    if rng.random() < _SHARE_OF_FILES:
        checks["files"] = lambda: _files(case, folder)
    if trial.suffix and rng.random() < _SHARE_OF_FILES:
        checks["model files"] = lambda: _model_files(case, folder)
    if (
        isinstance(case.probes, pd.DataFrame)
        and frames.has_twins(case.probes)
        and rng.random() < _SHARE_OF_FRAMES
    ):
        checks["frames"] = lambda: _frames(case)
    if trial.admits.sparse and trial.table.form.startswith("float") and rng.random() < _SHARE_OF_FILES:
        checks["sparse"] = lambda: _sparse(case, rng)
    differences: dict[str, float] = {}
    failures: dict[str, str] = {}
    for name, check in checks.items():
        try:
            differences[name], tolerance = check()
        except Exception as error:  # noqa: BLE001, whatever it is, it is what a user would see
            failures[name] = f"{type(error).__name__}: {error}"
            continue
        if not differences[name] <= tolerance:
            failures[name] = f"differs by {differences[name]:.1e} of the largest output"
    return Outcome(trial.kind, "", differences, failures)


def _case(rng: np.random.Generator, trial: Trial) -> Case:
    ensemble = fs.read_model(trial.model).representation
    cuts = [np.unique(ensemble.threshold[ensemble.feature == f]) for f in range(ensemble.n_features)]
    _, probes = sample(rng, beside_thresholds(rng, trial.table, trial.admits, cuts), N_PROBES)
    few = rng.permutation(N_PROBES)[: int(rng.integers(4, 7))]
    rows, background = take(probes, few[:2]), take(probes, few[2:])
    weights = rng.integers(1, 5, len(background)).astype(float)
    n = len(trial.table.columns)
    player = np.unique(rng.integers(0, n, size=n), return_inverse=True)[1]
    # As an explainer numbers groups: in the order in which they come.
    player = np.array([list(dict.fromkeys(player.tolist())).index(p) for p in player.tolist()])
    answers = np.asarray(trial.margin(probes), dtype=np.float64).reshape(N_PROBES, -1)
    return Case(
        trial,
        probes,
        answers,
        rows,
        background,
        weights,
        player,
        by_definition(trial.margin, rows, background, np.arange(n)),
        by_definition(trial.margin, rows, background, player, weights),
        float(max(np.abs(part).max(initial=0) for part in (answers, ensemble.values, ensemble.base))),
    )


def _with_outputs(values: np.ndarray) -> np.ndarray:
    return values if values.ndim == 3 else values[:, :, None]


def _largest(got: np.ndarray, want: np.ndarray, scale: float) -> float:
    if got.shape != want.shape:
        raise ValueError(f"shape {got.shape}, not {want.shape}")
    if not np.isfinite(want).all():
        raise ValueError("the library's own answer is not finite")
    return float(np.abs(got - want).max(initial=0) / max(scale, 1e-30))


def _sums(case: Case, explainer: fs.Explainer, rows: Rows, answers: np.ndarray) -> float:
    """Values and expected value against the library's answers."""
    values = _with_outputs(explainer.shap_values(rows)).sum(axis=1) + explainer.expected_value
    return _largest(values, answers, case.scale)


def _reading(case: Case) -> tuple[float, float]:
    explainer = case.explainer(case.background, precision="double")
    return _sums(case, explainer, case.probes, case.answers), case.trial.tolerance


def _path(case: Case, strategy: str) -> tuple[float, float]:
    difference = _sums(case, case.explainer(strategy=strategy), case.probes, case.answers)
    return difference, max(case.trial.tolerance, _TABLES)


def _against(case: Case, truth: Truth, explainer: fs.Explainer) -> float:
    values = _with_outputs(explainer.shap_values(case.rows))
    expected = np.atleast_1d(explainer.expected_value)
    return max(_largest(values, truth.values, case.scale), _largest(expected, truth.expected, case.scale))


def _values(case: Case, tolerance: float, **options: Any) -> tuple[float, float]:
    return _against(case, case.truth, case.explainer(case.background, **options)), tolerance


def _groups(case: Case, strategy: str) -> tuple[float, float]:
    explainer = case.explainer(case.background, groups=case.groups(), weights=case.weights, strategy=strategy)
    return _against(case, case.truth_of_groups, explainer), max(case.trial.tolerance, _TABLES)


def _files(case: Case, folder: Path) -> tuple[float, float]:
    """A saved explainer says what it said before, to the last bit."""
    explainer = case.explainer(case.background, groups=case.groups(), weights=case.weights, strategy="tables")
    path = folder / "explainer.fshap"
    explainer.save(path)
    want = _with_outputs(explainer.shap_values(case.rows))
    return _largest(_with_outputs(fs.load(path).shap_values(case.rows)), want, 1.0), 0.0


def _model_files(case: Case, folder: Path) -> tuple[float, float]:
    """The file that the library saves is explained as the model."""
    path = folder / f"model{case.trial.suffix}"
    assert case.trial.save is not None
    case.trial.save(str(path))
    explainer = fs.TreeExplainer(str(path), case.background, n_jobs=1, precision="double")
    return _against(case, case.truth, explainer), max(case.trial.tolerance, SINGLE / 10)


def _frames(case: Case) -> tuple[float, float]:
    """Frames of polars and Arrow are explained as the same frame of pandas."""
    explainer = case.explainer(case.background, precision="double")
    want = _with_outputs(explainer.shap_values(case.probes))
    scale = float(np.abs(want).max(initial=0))
    same = [frames.as_polars(case.probes)]
    if not any(column.is_categorical for column in case.trial.table.columns):  # Arrow's have no order
        same.append(frames.as_arrow(case.probes))
    return max(_largest(_with_outputs(explainer.shap_values(X)), want, scale) for X in same), 0.0


def _sparse(case: Case, rng: np.random.Generator) -> tuple[float, float]:
    """Sparse rows, of which some stored values are zero: what is not stored is what the library takes it for."""
    matrix = scipy.sparse.csr_matrix(np.where(rng.random(case.probes.shape) < 0.5, case.probes, 0))
    matrix.data[rng.random(matrix.nnz) < 0.1] = 0
    matrix.data[matrix.data == -_ZERO_OF_LIGHTGBM] = 0
    answers = np.asarray(case.trial.margin(matrix), dtype=np.float64).reshape(N_PROBES, -1)
    explainer = case.explainer(matrix[:3], precision="double")
    return _sums(case, explainer, matrix, answers), case.trial.tolerance


def quiet() -> None:
    """Libraries warn about what is drawn on purpose: few labels, columns without names, constant columns."""
    warnings.filterwarnings("ignore")
