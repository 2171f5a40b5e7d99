"""What is asked of every model: our reading, our SHAP values and our files against the library's own answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse

import fouriershap as fs
from fuzz_cells.definition import Truth, by_definition
from fuzz_cells.forms import Form, draw_form
from fuzz_cells.rows import Rows, beside_thresholds, sample, take
from fuzz_cells.trial import SINGLE, Trial

N_PROBES = 150
N_FORMS = 3
_SHARE_OF_FILES = 0.15
_TABLES = 1e-6  # tables of single precision
# To LightGBM this one number, negated, is zero in arrays, but less than zero in sparse matrices and Arrow. We follow
# arrays.
_ZERO_OF_LIGHTGBM = float(np.float32(1e-35))


class Outcome(NamedTuple):
    """What came of a model."""

    kind: str
    refused: str = ""  # why it is not explained at all
    differences: dict[str, float] = {}  # the largest by check, as a share of the largest output  # noqa: RUF012
    failures: dict[str, str] = {}  # check -> what is wrong  # noqa: RUF012
    forms: tuple[str, ...] = ()  # who answered rows in each form


class _RefusedError(Exception):
    """The library refuses some rows."""


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
        if self.trial.has_steps:
            options["groups"] = "input"
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
    if trial.has_steps:
        del checks["groups"]  # of columns that trees have, not rows
    if not _ensemble(trial).has_cover:
        del checks["path"]  # where nobody counted rows there is no such value, and an error says so
    walk = rng.random() < 0.5
    if rng.random() < _SHARE_OF_FILES and not trial.has_steps:
        checks["files"] = lambda: _files(case, folder)
    if trial.suffix and rng.random() < _SHARE_OF_FILES:
        checks["model files"] = lambda: _model_files(case, folder)
    forms: list[str] = []
    checks["forms"] = lambda: (max(_form(case, rng, folder, forms) for _ in range(N_FORMS)), trial.tolerance)
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
    return Outcome(trial.kind, "", differences, failures, tuple(forms))


def _case(rng: np.random.Generator, trial: Trial) -> Case:
    ensemble = _ensemble(trial)
    cuts = [np.unique(ensemble.threshold[ensemble.feature == f]) for f in range(ensemble.n_features)]
    table = trial.table if trial.has_steps else beside_thresholds(rng, trial.table, trial.admits, cuts)
    _, probes = sample(rng, table, N_PROBES)
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


def _ensemble(trial: Trial) -> Any:
    return fs.read_model(trial.model[-1] if trial.has_steps else trial.model).representation


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


def _form(case: Case, rng: np.random.Generator, folder: Path, forms: list[str]) -> float:
    """Rows in another form: live, from a file, and as background, what the library says of the very same rows."""
    form = draw_form(rng, _as_pandas(case.rows), _as_pandas(case.background))
    live = case.explainer(case.background, precision="double")
    live.save(folder / "forms.fshap")
    X = form.contain(form.rows)
    loaded = fs.load(folder / "forms.fshap")
    ours, kept = _answered(lambda: _sums_of(live, X)), _answered(lambda: _sums_of(loaded, X))
    theirs = _library_answered(case, form, form.rows)
    if case.trial.has_steps:
        _check_steps(case, form, ours, kept if loaded.has_pipeline else ours)
    elif isinstance(ours, str) != isinstance(kept, str) or not (
        isinstance(ours, str) or np.array_equal(ours, kept)
    ):
        raise ValueError(f"{form.name}: live {ours}, from the file {kept}")
    difference = _compared(form, ours, theirs, case.scale, forms)

    def margin(frame: pd.DataFrame) -> np.ndarray:
        found = _library_answered(case, form, frame)
        if isinstance(found, str):
            raise _RefusedError(found)
        return found

    def values() -> np.ndarray:
        explainer = case.explainer(form.contain(form.background), precision="double")
        return _with_outputs(explainer.shap_values(X))

    columns = np.arange(len(case.trial.table.columns))
    try:
        truth = by_definition(margin, form.rows, form.background, columns).values
    except _RefusedError as error:
        truth = str(error)
    except (TypeError, pa.ArrowException):
        return difference  # not all hybrids can be put into this container
    return max(difference, _compared(form, _answered(values), truth, case.scale, forms))


def _as_pandas(rows: Rows) -> pd.DataFrame:
    frame = rows.copy() if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows).add_prefix("c")
    for name in frame.columns[[dtype in (np.float32, np.float64, object) for dtype in frame.dtypes]]:
        frame[name] = frame[name].where(frame[name] != -_ZERO_OF_LIGHTGBM, 0.0)
    return frame


def _check_steps(case: Case, form: Form, ours: np.ndarray | str, kept: np.ndarray | str) -> None:
    """A file of a Pipeline takes rows from any container, and compares all values by their types."""
    if form.name.startswith("arrow"):
        return  # in which versions of scikit-learn read columns of labels in ways of their own
    if isinstance(ours, str) and not isinstance(kept, str):
        theirs = _library_answered(case, form._replace(contain=lambda frame: frame), form.rows)
        # Versions of scikit-learn differ in truth values and NA, and fail on numbers beside labels that are objects.
        odd = ("'isnan' not supported", "NAType", "pandas.NA")
        if "of truth values" not in form.name and not any(text in str(theirs) for text in odd):
            _compared(form, kept, theirs, case.scale, [])
    elif isinstance(ours, str) != isinstance(kept, str):
        if not any(text in str(kept) for text in ("is text", "there are numbers", "there are truth values")):
            raise ValueError(f"{form.name}: live {ours}, from the file {kept}")
    elif not isinstance(ours, str) and not np.array_equal(ours, kept):
        raise ValueError(f"{form.name}: live {ours}, from the file {kept}")


def _sums_of(explainer: fs.Explainer, X: Rows) -> np.ndarray:
    return _with_outputs(explainer.shap_values(X)).sum(axis=1) + explainer.expected_value


def _answered(ask: Callable[[], np.ndarray]) -> np.ndarray | str:
    """What we answer, or why not."""
    try:
        return ask()
    except fs.FourierShapError as error:
        return str(error)


def _library_answered(case: Case, form: Form, frame: pd.DataFrame) -> np.ndarray | str:
    """What the library answers, or why not. Frames that it may not know are asked about in pandas, too."""
    ways = [form.contain(frame)]
    if form.name.startswith(("polars", "arrow")) and ways[0] is not frame:
        # CatBoost crashes on labels in polars; others take labels from pandas' frames alone.
        crashes = type(case.trial.model).__module__.startswith("catboost")
        plain = ways[0].to_pandas()
        text = [name for name, dtype in plain.dtypes.items() if str(dtype) in ("object", "str", "string")]
        ways = [*([] if crashes else ways), plain, plain.astype(dict.fromkeys(text, "category"))]
    for way in ways:
        try:
            found = np.asarray(case.trial.margin(way), dtype=np.float64)
            return found.reshape(len(frame), -1)
        except Exception as error:  # noqa: BLE001, each library refuses in its own way
            reason = f"{type(error).__name__}: {error}"
    return reason


def _compared(
    form: Form, ours: np.ndarray | str, theirs: np.ndarray | str, scale: float, forms: list[str]
) -> float:
    """The largest difference; an error where we answer what the library refuses."""
    if isinstance(ours, str):
        forms.append("neither" if isinstance(theirs, str) else "the library alone")
        return 0.0
    forms.append("both")
    if isinstance(theirs, str):
        raise ValueError(f"{form.name}: answered, but the library says {theirs}")
    difference = _largest(ours, theirs, scale)
    if difference > 1e-5:
        raise ValueError(f"{form.name}: {ours.tolist()}, the library {theirs.tolist()}")
    return difference


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
