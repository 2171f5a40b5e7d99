"""Rescaled values through channels, against the sum over every pair of rows that defines them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import fouriershap as fs
import oracles
from fouriershap._base import parallel
from fouriershap._base.links import EXP, EXPM1, LOGISTIC, MEAN, PROBIT, Link
from fouriershap._base.progress import Progress
from fouriershap._shapley.outputs.kinds import LogLoss, Output, Response
from fouriershap._shapley.outputs.slopes import cross, find_channels, slope
from fouriershap._shapley.outputs.transformed import Rescaled, load_output, make_output
from fouriershap._shapley.trees import channels, stream
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model
from strategies import generators
from tree_kernel_cases import ensembles
from tree_oracles import RandomTrees

Floats = NDArray[np.float64]
OUTPUTS: list[Output] = [Response(LOGISTIC), Response(EXP), Response(EXPM1), Response(PROBIT)]
OUTPUTS += [LogLoss(LOGISTIC), LogLoss(MEAN)]


def engine_of(
    e: Any, players: Any, background: Floats, weights: Any, output: Output, **options: Any
) -> Rescaled:
    given = {"memory": 1 << 30, "dtype": np.dtype("f8")} | options
    trees = make_model(e, players, given.pop("memory"), given.pop("dtype"), link=output.link, **given)
    return Rescaled(TreeEngine(trees, make_background(trees, background, weights)), output)


def exact_slope(link: Link, loss: bool, a: Any, b: Any, y: float) -> Any:
    """By formulas that lose no digits where margins are close."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        half, middle = (a - b) / 2, (a + b) / 2
        ratio = np.where(half == 0, 1.0, np.sinh(half) / np.where(half == 0, 1.0, half))
        if loss and link is MEAN:
            return a + b - 2 * y
        if loss:
            bent = (np.logaddexp(0, a) - np.logaddexp(0, b)) / (a - b)
            return np.where(np.abs(a - b) < 1e-4, 1 / (1 + np.exp(-middle)), bent) - y
        if link is LOGISTIC:
            return ratio / (4 * np.cosh(a / 2) * np.cosh(b / 2))
        if link is PROBIT:
            from scipy.special import ndtr

            density = np.exp(-(middle**2) / 2) / np.sqrt(2 * np.pi)
            return np.where(np.abs(a - b) < 1e-7, density, (ndtr(a) - ndtr(b)) / (a - b))
        return np.exp(middle) * ratio


def pairwise(engine: Rescaled, rows: Floats, labels: Floats) -> tuple[Floats, float]:
    """The definition: a game per pair of rows; and the largest slope."""
    raw, background = engine.inner, engine.inner.tree_background
    assert background.rows is not None
    n = len(background.rows)
    share = np.full(n, 1 / n) if background.weights is None else background.weights
    out = np.zeros((len(rows), engine.n_players, engine.n_outputs))
    steepest = 0.0
    margins, others = raw.predict(rows), raw.predict(background.rows)
    link, loss = engine.output.link, engine.output.needs_labels
    for r, row in enumerate(rows):
        for b in range(n):
            game = oracles.coalition_values(raw.predict, row, background.rows[b : b + 1], raw.player)
            factor = exact_slope(link, loss, margins[r], others[b], labels[r])
            steepest = max(steepest, np.abs(factor).max())
            out[r] += share[b] * factor * oracles.shapley_values(game, engine.n_players)
    return out, steepest


def close(got: Floats, want: Floats, tolerance: float, least: float = 1e-13) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= tolerance * max(np.abs(want).max(), least)


@given(
    ensembles(most_features=5),
    st.sampled_from(OUTPUTS),
    st.booleans(),
    st.sampled_from([1e-6, 1.0, 12.0]),
    st.sampled_from(["auto", "tables", "stream", "walk"]),
    st.sampled_from([("f8", 1e-8), ("f4", 2e-6)]),
)
@settings(max_examples=120, deadline=None)
def test_values_are_those_of_the_definition(
    model: Any, output: Output, weighted: bool, scale: float, strategy: str, precision: Any
) -> None:
    """Groups, missing values, categories, several outputs, ties, margins from all equal to +-40, few rows and one."""
    coded, players, rng = model
    players = np.unique(players, return_inverse=True)[1].astype(np.int32)
    e = coded.ensemble
    base = rng.choice([0.0, 3.0, -8.0]) if scale > 1e-3 else 0.0
    e = e.replace(values=scale * np.clip(e.values, -3, 3), base=e.base + base)
    choices = [*np.arange(-1.0, 9.0), np.nan]
    n_background = int(rng.choice([1, 2, 7]))
    background, rows = (rng.choice(choices, size=(n, e.n_features)) for n in (n_background, 3))
    weights = rng.dirichlet(np.ones(n_background)) if weighted else None
    engine = engine_of(
        e, players, background, weights, output, strategy=strategy, dtype=np.dtype(precision[0])
    )
    labels = rng.integers(2, size=3).astype(float)
    asked = engine.labelled(labels, 3) if output.needs_labels else engine
    got = asked.shap_values(rows, 1)
    want, steepest = pairwise(engine, rows, labels)
    # Where leaves cancel each other, and where a probability is 1 to all digits but the last.
    least = max(0.1 * scale * steepest, 1e-7)
    close(got, want, precision[1], least)
    gap = got.sum(axis=1) + asked.expected - asked.predict(rows)
    change, size = np.abs(asked.predict(rows) - asked.expected).max(), np.abs(asked.expected).max()
    assert np.abs(gap).max() <= precision[1] * max(change, least) + 1e-14 * (1 + size)


def forest(rng: Any, depth: int, n_features: int = 8) -> Any:
    grown = RandomTrees(rng, n_features)
    for _ in range(6):
        grown.grow(depth, p_leaf=0.15)
    return grown.coded().ensemble


@pytest.mark.parametrize("strategy", ["tables", "stream"])
@pytest.mark.parametrize("output", OUTPUTS, ids=repr)
@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 2e-6), ("f8", 1e-8)])
def test_many_rows_agree_with_walking_every_pair(
    strategy: str, output: Output, dtype: str, tolerance: float
) -> None:
    """An outlier in the background; explained rows beyond its range, and a threaded call."""
    rng = np.random.default_rng(0)
    e = forest(rng, 6)
    e = e.replace(values=e.values * 3)
    background, rows = rng.integers(-1, 7, size=(400, 8)) * 1.0, rng.integers(-1, 7, size=(90, 8)) * 1.0
    margins = e.predict(background)[:, 0]
    background, rows = background[np.argsort(margins)[50:]], np.concatenate([rows, background[:5]])
    players, y = np.arange(8, dtype=np.int32), rng.integers(2, size=len(rows)) * 1.0
    engine = engine_of(e, players, background, None, output, strategy=strategy, dtype=np.dtype(dtype))
    walked = engine_of(e, players, background, None, output, strategy="walk")
    want = np.zeros((len(rows), 8, 1))
    mine, others = e.predict(rows), e.predict(background)
    for b, other in enumerate(others):
        raw = walked.inner.with_background(background[b : b + 1], None).shap_values(rows)
        factor = exact_slope(output.link, output.needs_labels, mine, other, y[:, None])
        want += factor[:, :, None] * raw / len(others)
    for asked in (engine, walked):
        labelled = asked.labelled(y, len(rows)) if output.needs_labels else asked
        close(labelled.shap_values(rows), want, tolerance)
    assert engine.plan(len(rows)).strategy == strategy and walked.plan(len(rows)).strategy == "walk"


def test_trees_without_tables_are_streamed_or_walked_beside_the_others() -> None:
    rng = np.random.default_rng(1)
    e = forest(rng, 7, 24)
    background, rows = rng.integers(-1, 7, size=(60, 24)) * 1.0, rng.integers(-1, 7, size=(50, 24)) * 1.0
    players = np.arange(24, dtype=np.int32)
    whole = engine_of(e, players, background, None, Response(LOGISTIC), strategy="walk")
    large = engine_of(e, players, background, None, Response(LOGISTIC))
    large.build()
    memory = large.margins.trees[0].info.table_bytes // 2
    small = engine_of(e, players, background, None, Response(LOGISTIC), memory=memory)
    small.build()
    in_tables = small.margins.trees[0].in_tables
    assert in_tables.any() and not in_tables.all()
    close(small.shap_values(rows), whole.shap_values(rows), 1e-8)
    close(small.shap_values(rows[:2], 2), whole.shap_values(rows[:2]), 1e-8)
    # The file holds the background then.
    arrays, header = small.to_contents(False)
    assert "background" in arrays and "channels" not in header


@pytest.mark.parametrize("weighted", [False, True])
def test_files_need_no_background(weighted: bool) -> None:
    rng = np.random.default_rng(2)
    e = forest(rng, 4)
    background, rows = rng.integers(-1, 7, size=(200, 8)) * 1.0, rng.integers(-1, 7, size=(20, 8)) * 1.0
    weights = rng.dirichlet(np.ones(200)) if weighted else None
    for output in (Response(LOGISTIC), LogLoss(LOGISTIC)):
        engine = engine_of(e, np.arange(8, dtype=np.int32), background, weights, output)
        arrays, header = engine.to_contents(False)
        assert "background" not in arrays
        raw = TreeEngine.from_contents(arrays, header)
        loaded = load_output(raw, arrays, header)
        y = rng.integers(2, size=20) * 1.0
        one, other = ((x.labelled(y, 20) if output.needs_labels else x) for x in (engine, loaded))
        np.testing.assert_array_equal(other.shap_values(rows), one.shap_values(rows))
        np.testing.assert_array_equal(other.expected, one.expected)
        again, _ = loaded.to_contents(False)
        assert again.keys() == arrays.keys()


def test_another_background_has_other_channels() -> None:
    rng = np.random.default_rng(3)
    e = forest(rng, 4)
    first, second = rng.integers(-1, 7, size=(2, 50, 8)) * 1.0
    players = np.arange(8, dtype=np.int32)
    engine = engine_of(e, players, first, None, Response(EXP))
    engine.build()
    moved, fresh = engine.with_background(second, None), engine_of(e, players, second, None, Response(EXP))
    close(moved.shap_values(first), fresh.shap_values(first), 1e-9)


def test_values_under_xla() -> None:
    pytest.importorskip("jax")
    rng = np.random.default_rng(4)
    e = forest(rng, 4)
    background, rows = rng.integers(-1, 7, size=(2, 50, 8)) * 1.0
    engine = engine_of(e, np.arange(8, dtype=np.int32), background, None, Response(LOGISTIC))
    other = engine.to("jax")
    assert other.device == "jax"
    close(other.shap_values(rows), engine.shap_values(rows), 1e-8)


def test_long_calls_are_told_before_they_start(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    e = forest(rng, 5)
    background, rows = rng.integers(-1, 7, size=(300, 8)) * 1.0, rng.integers(-1, 7, size=(200, 8)) * 1.0
    engine = engine_of(e, np.arange(8, dtype=np.int32), background, None, Response(EXP), strategy="walk")
    plan = engine.plan(200)
    assert plan.strategy == "walk" and 0.001 < plan.seconds < 20  # type: ignore[attr-defined]
    assert engine.plan(2000).seconds > 5 * plan.seconds  # type: ignore[attr-defined]
    monkeypatch.setattr(parallel, "_LONG", 1e-4)
    with pytest.warns(fs.CostWarning, match="6 trees without tables, 200 rows and 300 background rows"):
        engine.shap_values(rows, 1)
    with pytest.warns(fs.CostWarning, match="all coalitions, for 2 rows"):
        make_output(engine.inner, engine.output, True).shap_values(rows[:2], 1)


def test_progress_counts_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    e = forest(rng, 5)
    background, rows = rng.integers(-1, 7, size=(40, 8)) * 1.0, rng.integers(-1, 7, size=(60, 8)) * 1.0
    monkeypatch.setattr(channels, "_WALK_WEIGHTS", 400)
    monkeypatch.setattr(stream, "_WORTH_PARTS", 0.0)
    for strategy, n_least in (("walk", 6), ("stream", 3), ("tables", 1)):
        engine = engine_of(
            e, np.arange(8, dtype=np.int32), background, None, Response(EXP), strategy=strategy
        )
        engine.build()
        seen: list[tuple[str, float]] = []
        with Progress(lambda done, total, stage: seen.append((stage.name, stage.share))):  # noqa: B023
            engine.shap_values(rows, 1)
        name = {"walk": "walking", "stream": "streaming", "tables": "looking up"}[strategy]
        shares = [share for stage, share in seen if stage == name]
        assert len(shares) >= n_least and shares == sorted(shares) and shares[-1] == 1.0


# Slopes


@given(generators(), st.sampled_from([0.0, 1e-9, 0.3, 5.0, 40.0]), st.sampled_from([0.0, 20.0, -30.0]))
@settings(max_examples=60, deadline=None)
def test_few_margins_tell_the_slopes_of_all(rng: Any, spread: float, centre: float) -> None:
    """For explained margins anywhere; the errors of a row add up to less than the tolerance of its mean slope."""
    margins = centre + spread * np.clip(rng.normal(size=3000), -3, 3) / 3
    own = np.concatenate([rng.uniform(-60, 60, 40), margins[:20], centre + rng.normal(size=20) * spread])
    for link, loss in ((LOGISTIC, False), (EXP, False), (PROBIT, False), (LOGISTIC, True), (MEAN, True)):
        if link is PROBIT and abs(centre) > 10:  # where it is below 1e-80, and a slope has no digits
            continue
        if loss:
            functions = [lambda m, f=link.loss: f(m, 0.0), lambda m, f=link.loss: f(m, 1.0) - f(m, 0.0)]
        else:
            functions = [link.response]
        channels = find_channels(functions, margins, None, 1e-7)  # type: ignore[arg-type]
        assert len(channels.margins) <= 30
        found = slope(functions[0], own[:, None], channels.margins) @ channels.shares.T  # type: ignore[arg-type]
        want = exact_slope(link, loss, own[:, None], margins, 0.0)
        error = np.abs(found - want).mean(axis=1)
        assert (error <= 3e-7 * np.abs(want).mean(axis=1) + 2e-13).all()


def test_slopes_where_margins_are_close() -> None:
    a = np.linspace(-20, 12, 33)[:, None]
    for link in (LOGISTIC, EXP):
        b = a + np.array([0.0, 1e-12, 1e-7, 1e-4, 3e-3, 7e-3, 0.1, 3.0])
        got = slope(link.response, a, b)  # type: ignore[arg-type]
        np.testing.assert_allclose(got, exact_slope(link, False, a, b, 0.0), rtol=1e-10, atol=2e-13)


def test_cross_determines_a_matrix() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 20))
    rows, columns = cross(matrix, 1e-10)
    assert len(rows) == len(columns) == 4
    again = matrix[:, columns] @ np.linalg.solve(matrix[np.ix_(rows, columns)], matrix[rows])
    np.testing.assert_allclose(again, matrix, atol=1e-10)
    assert cross(np.zeros((3, 2)), 1e-10) == ([], [])
    assert len(cross(rng.normal(size=(3, 5)), 0.0)[0]) == 3


def test_one_background_row_is_one_channel() -> None:
    rng = np.random.default_rng(5)
    e = forest(rng, 3)
    one = rng.integers(-1, 7, size=(1, 8)) * 1.0
    engine = engine_of(e, np.arange(8, dtype=np.int32), one, None, Response(LOGISTIC))
    assert [len(found) for found in engine.margins.channels] == [1]
    constant = replace(e, values=np.zeros_like(e.values))
    engine = engine_of(constant, np.arange(8, dtype=np.int32), one, None, Response(LOGISTIC))
    np.testing.assert_array_equal(engine.shap_values(one), np.zeros((1, 8, 1)))
