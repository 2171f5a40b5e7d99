"""Models that can only be asked, trained anew by each seed, and their true SHAP values."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

N_ROWS, N_BACKGROUND, N_DATA = 50, 100, 1000
MOST_ENUMERATED = 10  # players
_HYBRIDS = 1 << 17
_PAIRS = 24  # of permutations for each row and background row, where coalitions are too many
WORDS = np.array(["north", "south", "east", "west", "centre"], dtype=object)


@dataclass(frozen=True, eq=False)
class Subject:
    """A model on a table: rows to explain are in neither background nor data.

    Attributes
    ----------
    model : callable
        Of an array (n, n_columns) of numbers, (n,) or (n, n_outputs).
    table : (n, n_columns) float64
        Strings are numbers of `WORDS`, missing values NaN.
    words : tuple of int
        Columns that a user sees as strings.
    """

    model: Callable[[np.ndarray], np.ndarray]
    table: np.ndarray
    words: tuple[int, ...] = ()

    def part(self, name: str) -> np.ndarray:
        first = {"rows": 0, "background": N_ROWS, "data": N_ROWS + N_BACKGROUND}[name]
        return self.table[first : first + {"rows": N_ROWS, "background": N_BACKGROUND, "data": N_DATA}[name]]

    def frame(self, rows: np.ndarray) -> Any:
        """Return rows as a user has them."""
        if not self.words:
            return rows
        import pandas as pd

        columns: dict[str, Any] = {f"c{j}": rows[:, j] for j in range(rows.shape[1])}
        for j in self.words:
            columns[f"c{j}"] = WORDS[rows[:, j].astype(int)]
        return pd.DataFrame(columns)


@dataclass(eq=False)
class Asked:
    """A subject's model as a user has it; it counts queries and CPU seconds."""

    subject: Subject
    queries: int = 0
    seconds: float = 0.0
    _codes: dict[str, float] = field(default_factory=lambda: {word: float(k) for k, word in enumerate(WORDS)})

    def __call__(self, rows: Any) -> np.ndarray:
        begin = time.process_time()
        if self.subject.words:
            given, rows = rows, np.empty(rows.shape)
            for j in range(rows.shape[1]):
                column = given.iloc[:, j]
                rows[:, j] = column.map(self._codes) if j in self.subject.words else column
        answers = self.subject.model(np.asarray(rows))
        self.queries += len(rows)
        self.seconds += time.process_time() - begin
        return answers


def _table(seed: int, n_columns: int) -> np.ndarray:
    """Correlated numbers."""
    rng = np.random.default_rng([seed, 1])
    mixed = rng.normal(size=(n_columns, n_columns)) / math.sqrt(n_columns)
    return rng.normal(size=(N_ROWS + N_BACKGROUND + N_DATA, n_columns)) @ (
        0.8 * np.eye(n_columns) + 0.6 * mixed
    )


def _target(X: np.ndarray) -> np.ndarray:
    rest = X[:, 5:].sum(axis=1) / math.sqrt(X.shape[1])
    return 2 * np.sin(X[:, 0] * X[:, 1]) + (X[:, 2] - 0.5) ** 2 + 1.5 * X[:, 3] - X[:, 4] * X[:, 0] + rest


def _fitted(
    seed: int, n_columns: int, make: Callable[[], Any], classes: int = 0, noise: float = 0.3
) -> Subject:
    """Train an estimator on the data of a table."""
    X = _table(seed, n_columns)
    rng = np.random.default_rng([seed, 2])
    data = X[N_ROWS + N_BACKGROUND :]
    y = _target(data) + noise * rng.normal(size=len(data))
    if classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(data, y)
    if not classes:
        return Subject(model.predict, X)
    return Subject(model.predict_proba if classes > 2 else lambda rows: model.predict_proba(rows)[:, 1], X)


def _net(seed: int, layers: tuple[int, ...], classes: bool = False, **options: Any) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPClassifier if classes else MLPRegressor
    return kind(hidden_layer_sizes=layers, random_state=seed, **({"max_iter": 80} | options))


def _knn(seed: int) -> Subject:
    from sklearn.neighbors import KNeighborsRegressor

    return _fitted(seed, 8, lambda: KNeighborsRegressor(7, algorithm="brute"))


def _knn_classes(seed: int) -> Subject:
    from sklearn.neighbors import KNeighborsClassifier

    return _fitted(seed, 8, lambda: KNeighborsClassifier(9, algorithm="brute"), classes=2)


def _svc(seed: int) -> Subject:
    from sklearn.svm import SVC

    X = _table(seed, 8)
    data = X[-400:]
    model = SVC(C=10, gamma=0.2).fit(data, _target(data) > np.median(_target(data)))
    return Subject(lambda rows: 1 / (1 + np.exp(-2 * model.decision_function(rows))), X)


def _gp(seed: int) -> Subject:
    from sklearn.gaussian_process import GaussianProcessClassifier

    X = _table(seed, 7)
    data = X[-150:]
    model = GaussianProcessClassifier(random_state=seed).fit(data, _target(data) > np.median(_target(data)))
    return Subject(lambda rows: model.predict_proba(rows)[:, 1], X)


def _quantile(seed: int) -> Subject:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return _fitted(
        seed, 10, lambda: HistGradientBoostingRegressor(loss="quantile", quantile=0.9, max_iter=60)
    )


def _forest(seed: int) -> Subject:
    from sklearn.ensemble import ExtraTreesRegressor

    return _fitted(seed, 8, lambda: ExtraTreesRegressor(30, max_depth=8, random_state=seed))


def _stacked(seed: int) -> Subject:
    from sklearn.ensemble import GradientBoostingRegressor, StackingRegressor
    from sklearn.svm import SVR

    members = [("trees", GradientBoostingRegressor(n_estimators=40, random_state=seed)), ("svr", SVR(C=5))]
    return _fitted(seed, 8, lambda: StackingRegressor(members, _net(seed, (10,)), passthrough=False, cv=2))


def _calibrated(seed: int) -> Subject:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import HistGradientBoostingClassifier

    boosted = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8)
    return _fitted(seed, 9, lambda: CalibratedClassifierCV(boosted, method="isotonic", cv=2), classes=2)


def _missing(seed: int) -> Subject:
    """A network behind an imputer with indicators; a sixth of the cells is missing."""
    subject = _fitted(seed, 18, lambda: _net(seed, (40, 20)))
    X = _table(seed, 9)
    X[np.random.default_rng([seed, 3]).random(X.shape) < 1 / 6] = np.nan

    def model(rows: np.ndarray) -> np.ndarray:
        return np.asarray(subject.model(np.column_stack([np.nan_to_num(rows), 2.0 * np.isnan(rows)])))

    return Subject(model, X)


def _strings(seed: int, n_numbers: int = 6) -> Subject:
    """A network on numbers and three columns of strings, one-hot."""
    subject = _fitted(seed, n_numbers + 15, lambda: _net(seed, (40, 20)))
    rng = np.random.default_rng([seed, 3])
    words = rng.integers(0, 5, (N_ROWS + N_BACKGROUND + N_DATA, 3)).astype(float)

    def model(rows: np.ndarray) -> np.ndarray:
        hot = np.eye(5)[rows[:, n_numbers:].astype(int)].reshape(len(rows), -1)
        return np.asarray(subject.model(np.column_stack([rows[:, :n_numbers], 2.0 * hot])))

    return Subject(
        model, np.column_stack([_table(seed, n_numbers), words]), tuple(range(n_numbers, n_numbers + 3))
    )


def _drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng([seed, 4]).normal(size=shape)


def _by_formula(n_columns: int, formula: Callable[[np.ndarray, int], np.ndarray]) -> Callable[[int], Subject]:
    return lambda seed: Subject(lambda rows: formula(rows, seed), _table(seed, n_columns))


def _rules(rows: np.ndarray, seed: int) -> np.ndarray:
    out, decided = np.zeros(len(rows)), np.zeros(len(rows), dtype=bool)
    cuts, worth = _drawn(seed, 8, 3) * 0.6, _drawn(seed + 1, 9)
    for k, cut in enumerate(cuts):
        columns = [(k + j * (k % 3 + 1)) % rows.shape[1] for j in range(3)]
        now = (rows[:, columns] > cut).all(axis=1) & ~decided
        out[now], decided = worth[k], decided | now
    return np.where(decided, out, worth[-1])


def _spike(rows: np.ndarray, seed: int) -> np.ndarray:
    return (
        8 * np.exp(-1.5 * ((rows[:, :4] - _drawn(seed, 4) * 0.3) ** 2).sum(axis=1))
        + rows[:, 4:].sum(axis=1) * 0.3
    )


def _maxmin(rows: np.ndarray, seed: int) -> np.ndarray:
    half = rows.shape[1] // 2
    return rows[:, :half].max(axis=1) - 0.7 * rows[:, half:].min(axis=1) * (1 + 0.1 * seed)


def _bayes(rows: np.ndarray, seed: int) -> np.ndarray:
    return 1 / (1 + np.exp(-(rows * (1 + _drawn(seed, rows.shape[1]))).sum(axis=1)))


def _products(rows: np.ndarray, seed: int) -> np.ndarray:
    return (
        np.prod(1 + 0.4 * np.tanh(rows[:, :6] + _drawn(seed, 6)), axis=1)
        + rows[:, 6] * rows[:, 7] * rows[:, 8]
    )


MODELS: dict[str, Callable[[int], Subject]] = {
    "network": lambda seed: _fitted(seed, 10, lambda: _net(seed, (50, 25))),
    "network, tanh": lambda seed: _fitted(
        seed, 10, lambda: _net(seed, (60,), activation="tanh", max_iter=200)
    ),
    "network, overfitted": lambda seed: _fitted(
        seed, 10, lambda: _net(seed, (100, 100), alpha=0, max_iter=300), noise=2.0
    ),
    "network, five classes": lambda seed: _fitted(seed, 9, lambda: _net(seed, (40, 20), True), classes=5),
    "network, missing values": _missing,
    "network, strings": _strings,
    "network, 20 columns": lambda seed: _fitted(seed, 20, lambda: _net(seed, (80, 40))),
    "network, 64 columns": lambda seed: _fitted(seed, 64, lambda: _net(seed, (64, 32))),
    "network, 128 columns": lambda seed: _fitted(seed, 128, lambda: _net(seed, (64, 32))),
    "nearest neighbours": _knn,
    "nearest neighbours, classes": _knn_classes,
    "support vectors, probability": _svc,
    "Gaussian process, probability": _gp,
    "quantile boosting": _quantile,
    "extra trees": _forest,
    "stacked": _stacked,
    "calibrated": _calibrated,
    "rule list": _by_formula(10, _rules),
    "parity of 3 in 8": _by_formula(
        8, lambda x, _: np.sign(x[:, 0] * x[:, 1] * x[:, 2]) + 0.2 * x.sum(axis=1)
    ),
    "parity of 5 in 7": _by_formula(7, lambda x, _: np.sign(x[:, :5].prod(axis=1)) + 0.3 * x[:, 5]),
    "maximum and minimum": _by_formula(10, _maxmin),
    "spike": _by_formula(8, _spike),
    "saturated, 30 columns": _by_formula(30, _bayes),
    "products": _by_formula(9, _products),
    "waves of a sum": _by_formula(8, lambda x, _: np.sin(2 * x.sum(axis=1)) + x[:, 0]),
    "steps": _by_formula(
        9, lambda x, _: np.floor(x[:, :3].sum(axis=1)) + np.floor(2 * x[:, 3]) * (x[:, 4] > 0)
    ),
    "median": _by_formula(9, lambda x, _: np.median(x, axis=1)),
    "sum, 64 columns": _by_formula(64, lambda x, s: np.tanh(x @ _drawn(s, 64, 8)).sum(axis=1)),
}


def _ask(model: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    parts = [model(rows[k : k + _HYBRIDS]) for k in range(0, len(rows), _HYBRIDS)]
    answers = np.concatenate(parts).astype(float)
    return answers[:, None] if answers.ndim == 1 else answers


class Truth(NamedTuple):
    """SHAP values (n_rows, n_columns, n_outputs), their standard errors, and R^2 of one half of the work."""

    values: np.ndarray
    errors: np.ndarray
    ceiling: float


def truth(subject: Subject) -> Truth:
    """Return the true SHAP values: exact, or by many permutations."""
    rows, background = subject.part("rows"), subject.part("background")
    n = rows.shape[1]
    if n <= MOST_ENUMERATED:
        values = np.stack([_by_definition(subject.model, row, background) for row in rows])
        return Truth(values, np.zeros_like(values), 1.0)
    halves = [_by_permutations(subject.model, rows, background, seed) for seed in (0, 1)]
    errors = np.sqrt(((halves[0] - halves[1]) ** 2).mean(axis=0, keepdims=True)) / 2
    return Truth((halves[0] + halves[1]) / 2, np.broadcast_to(errors, halves[0].shape), r_squared(*halves))


def _by_definition(
    model: Callable[[np.ndarray], np.ndarray], row: np.ndarray, background: np.ndarray
) -> np.ndarray:
    n = len(row)
    member = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
    hybrids = np.where(member[:, None], row, background).reshape(-1, n)
    worth = _ask(model, hybrids).reshape(2**n, len(background), -1).mean(axis=1)
    size, out = member.sum(axis=1), np.empty((n, worth.shape[1]))
    for j in range(n):
        without = np.flatnonzero(~member[:, j])
        chance = np.array([1 / (n * math.comb(n - 1, k)) for k in size[without]])
        out[j] = chance @ (worth[without | 1 << j] - worth[without])
    return out


def _by_permutations(
    model: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, background: np.ndarray, seed: int
) -> np.ndarray:
    """Return means over permutations and their reverses, as many against each background row."""
    rng, n, out = np.random.default_rng(seed), rows.shape[1], []
    pairs = max(_PAIRS * 20 // n, 4)
    for row in rows:
        total = 0.0
        for _ in range(pairs):
            order = rng.random((len(background), n)).argsort(axis=1)
            both = np.concatenate([order, order[:, ::-1]])
            place = both.argsort(axis=1)
            inside = np.arange(n + 1)[None, :, None] > place[:, None]
            hybrids = np.where(inside, row, np.concatenate([background] * 2)[:, None]).reshape(-1, n)
            steps = np.diff(_ask(model, hybrids).reshape(len(both), n + 1, -1), axis=1)
            total = total + np.take_along_axis(steps, place[:, :, None], axis=1).mean(axis=0)
        out.append(total / pairs)
    return np.stack(out)


def r_squared(values: np.ndarray, true: np.ndarray) -> float:
    return float(1 - ((values - true) ** 2).sum() / ((true - true.mean(axis=0)) ** 2).sum())
