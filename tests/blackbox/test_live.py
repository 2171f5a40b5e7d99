"""Black boxes that are asked when rows come: values against the definition, and errors that are honest."""

from __future__ import annotations

import math
import pickle
import time
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fouriershap as fs
import oracles
from fouriershap._blackbox.draws import Chains, Decks, Ends, Pairs, components, spread_of
from fouriershap._blackbox.sampler import Game, Sampler, StandIn
from fouriershap._shapley.indices import find_index

N = 7
B = np.random.default_rng(0).normal(size=(60, N))
X = np.random.default_rng(1).normal(size=(25, N))


def net(rows):
    w = np.random.default_rng(2).normal(size=(rows.shape[1], 12))
    return np.tanh(np.asarray(rows, dtype=float) @ w).sum(axis=1)


def kinked(rows):
    return rows[:, :3].max(axis=1) - rows[:, 3:].min(axis=1)


def parity(rows):
    return np.sign(rows[:, 0] * rows[:, 1] * rows[:, 2]) + 0.1 * rows.sum(axis=1)


def rules(rows):
    return np.where((rows[:, 0] > 0.5) & (rows[:, 1] > 0), 1.0, 0.0) + 2.0 * (rows[:, 2] > 1)


MODELS = [net, kinked, parity, rules]


def as_columns(answers):
    return answers[:, None] if answers.ndim == 1 else answers


def game_of(model, rows=X, background=B, weights=None, index="shapley"):
    share = np.full(len(background), 1 / len(background)) if weights is None else weights
    return Game(
        lambda row, other, masks: as_columns(model(np.where(masks, rows[row], background[other]))),
        find_index(index),
        as_columns(model(rows)),
        as_columns(model(background)),
        share,
        rows.shape[1],
    )


@cache
def usual_truth(model):
    return truth_of(model)


def truth_of(model, rows=X, background=B, **options):
    return oracles.shap_values(lambda r: as_columns(model(r)), rows, background, **options)


def finished(game, tolerance, seed, stand_in=None):
    sampler = Sampler(game, tolerance, seed)
    sampler.start()
    if stand_in is not None:
        sampler.use(stand_in)
    while len(sampler.unfinished):
        sampler.advance()
    return sampler


# Sampling


@pytest.mark.parametrize("with_stand_in", [False, True])
def test_errors_are_honest(with_stand_in):
    """Of all values about 95 % lie within 1.96 standard errors, and errors are as large as they say."""
    covered, ratio = [], []
    for model in MODELS:
        truth, stand_in = truth_of(model), None
        if with_stand_in:  # it misses a tenth, and a little more

            def other(rows, model=model):
                return 0.9 * model(rows) + 0.05 * np.cos(rows[:, 0] * rows[:, 1])

            stand_in = StandIn(game_of(other), truth_of(other))
        for seed in range(4):
            values, errors = finished(game_of(model), 0.05, seed, stand_in).estimates
            within = np.abs(values - truth) <= 1.96 * errors + 1e-12
            covered.append(within.mean())
            ratio.append(((values - truth) ** 2).sum() / (errors**2).sum())
            assert within.mean() > 0.85
    assert 0.92 < np.mean(covered) < 0.985
    assert 0.6 < np.mean(ratio) < 1.3


@pytest.mark.parametrize("kind", [Pairs, Chains])
def test_draws_have_no_bias(kind):
    """The mean of many estimates is the truth, and their scores tell how they spread."""
    truth, game, ends = truth_of(parity)[0], game_of(parity), None
    ends = Ends(game.rows[0], game.others, game.mean)
    found, told = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        draws, deck = kind(N), Decks(game.weights)
        z = deck.deal(40, rng, is_first=True)
        masks = draws.draw(z, rng)
        each = len(masks) // len(z)
        draws.add(game.ask(np.zeros(len(masks), dtype=int), np.repeat(z, each), masks))
        settled = draws.settle(None, ends)
        np.testing.assert_allclose(settled.values.sum(axis=0), ends.row - ends.mean, atol=1e-9)
        found.append(settled.values)
        told.append((settled.scores**2).sum(axis=0))
        np.testing.assert_array_equal(draws.masks, masks)
    spread = np.std(found, axis=0)
    assert (np.abs(np.mean(found, axis=0) - truth) < 5 * spread / math.sqrt(150) + 1e-12).all()
    assert 0.8 < np.mean(told) / np.mean(spread**2) < 1.6


def test_a_deck_deals_each_row_as_often_as_its_weight():
    rng = np.random.default_rng(0)
    deck = Decks(np.full(20, 0.05))
    dealt = np.concatenate([deck.deal(8, rng, is_first=True), *(deck.deal(9, rng) for _ in range(20))])
    counts = np.bincount(dealt, minlength=20)
    assert counts.max() - counts.min() <= 2
    weights = np.array([0.5, 0.3, 0.2, 0.0])
    dealt = Decks(weights).deal(4000, rng)
    np.testing.assert_allclose(np.bincount(dealt, minlength=4) / len(dealt), weights, atol=0.03)


@pytest.mark.parametrize("kind", [Chains])
def test_additive_games_are_exact_after_a_deck(kind):
    game = game_of(lambda rows: rows @ np.arange(N))
    draws, z = kind(N), np.random.default_rng(0).permutation(np.repeat(np.arange(len(B)), 2))
    masks = draws.draw(z, np.random.default_rng(1))
    draws.add(game.ask(np.zeros(len(masks), dtype=int), np.repeat(z, len(masks) // len(z)), masks))
    settled = draws.settle(None, Ends(game.rows[0], game.others, game.mean))
    np.testing.assert_allclose(settled.values, truth_of(lambda rows: rows @ np.arange(N))[0], atol=1e-9)
    spread = spread_of(settled, z, game.weights)
    variance = components([spread]).variance(np.array([len(z)]), np.array([spread.imbalance]))
    assert np.sqrt(variance).max() < 1e-6


def test_a_stand_in_that_is_no_help_is_dropped():
    def other(rows):
        return 3 * np.cos(5 * rows[:, 0] * rows[:, 1])

    sampler = Sampler(game_of(net), 0.03, 0)
    sampler.start()
    sampler.use(StandIn(game_of(other), truth_of(other)))
    assert sampler.stand_in is None


# Explainers


def ask(model, background=B, **options):
    return fs.BlackBoxExplainer(model, background, **({"random_state": 0} | options))


def quietly(call, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FourierShapWarning)
        return call(*args, **options)


@pytest.mark.parametrize("model", MODELS)
def test_values_are_within_their_errors_and_add_up(model):
    explainer = ask(model, tolerance=0.03)
    values, errors = explainer.shap_values(X, errors=True, check_additivity=True)
    truth = truth_of(model)[..., 0]
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, model(X), atol=1e-9)
    assert (np.abs(values - truth) <= 4.5 * errors + 1e-9).all()
    largest = np.abs(values).max(axis=1)
    scale = np.maximum(largest, 0.1 * np.median(largest))
    assert (errors.max(axis=1) <= 0.03 * scale * 1.0001).all()
    assert explainer.quality.tolerance == 0.03 and not explainer.quality.is_exact
    np.testing.assert_array_equal(explainer.shap_values(X), values)


def test_few_players_are_enumerated():
    rows, background = X[:, :3], B[:6, :3]
    explainer = ask(lambda r: r[:, 0] * r[:, 1] * r[:, 2], background)
    assert explainer.plan(25).strategy == "enumerate"
    values, errors = explainer.shap_values(rows, errors=True)
    assert not errors.any()
    np.testing.assert_allclose(
        values, truth_of(lambda r: r[:, 0] * r[:, 1] * r[:, 2], rows, background)[..., 0], atol=1e-9
    )


@pytest.mark.parametrize("n_players", [3, N])
def test_banzhaf_values(n_players):
    rows, background = X[:, :n_players], B[: 5 if n_players == 3 else 60, :n_players]
    model = lambda r: np.sign(r[:, 0] * r[:, 1]) + r[:, 2]  # noqa: E731
    explainer = ask(model, background, index="banzhaf", tolerance=0.05)
    values, errors = explainer.shap_values(rows, errors=True)
    players = np.arange(n_players)
    games = [oracles.coalition_values(model, row, background, players) for row in rows]
    truth = np.stack([oracles.banzhaf_values(game, n_players)[:, 0] for game in games])
    assert (np.abs(values - truth) <= 4.5 * errors + 1e-9).all()
    assert errors.any() == (n_players == N)


def test_weights_groups_and_several_outputs():
    def both(rows):
        return np.column_stack([net(rows), kinked(rows)])

    weights = np.random.default_rng(3).random(len(B))
    players = np.array([0, 1, 0, 2, 3, 3, 1])
    explainer = ask(both, weights=weights, groups=[f"g{p}" for p in players], tolerance=0.03)
    values, errors = explainer.shap_values(X, errors=True)
    truth = oracles.shap_values(both, X, B, weights=weights, players=players)
    assert values.shape == truth.shape == (25, 4, 2)
    np.testing.assert_allclose(explainer.expected_value, np.average(both(B), axis=0, weights=weights))
    assert (np.abs(values - truth) <= 4.5 * errors + 1e-9).all()
    assert (np.abs(values - truth) <= 1.96 * errors + 1e-9).mean() > 0.85


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_with_labels_and_missing_values(make):
    rng = np.random.default_rng(0)
    n = 80
    columns = {
        "colour": rng.choice(["red", "green", "blue"], n).tolist(),
        "size": [None if k % 9 == 0 else float(v) for k, v in enumerate(rng.normal(size=n))],
        "x": rng.normal(size=n).tolist(),
        "y": rng.normal(size=n).tolist(),
        "z": rng.normal(size=n).tolist(),
    }
    frame = make(columns)

    def model(rows):
        assert type(rows) is type(frame)
        red = np.array([value == "red" for value in rows["colour"]])
        size = np.array([np.nan if v is None else v for v in rows["size"]], dtype=float)
        x, y, z = (np.array(rows[name], dtype=float) for name in "xyz")
        return np.where(np.isnan(size), 1.0, size) * (red + 0.5 * x) + np.tanh(2 * y * z)

    explainer = ask(model, frame, tolerance=0.05)
    values, errors = explainer.shap_values(frame[:12], errors=True)
    codes = np.column_stack(
        [
            [("red", "green", "blue").index(c) for c in columns["colour"]],
            np.array([np.nan if v is None else v for v in columns["size"]]),
            *(columns[name] for name in "xyz"),
        ]
    )

    def coded(rows):
        size = np.where(np.isnan(rows[:, 1]), 1.0, rows[:, 1])
        return size * ((rows[:, 0] == 0) + 0.5 * rows[:, 2]) + np.tanh(2 * rows[:, 3] * rows[:, 4])

    truth = truth_of(coded, codes[:12], codes)[..., 0]
    assert (np.abs(values - truth) <= 4.5 * errors + 1e-9).all()
    shown = explainer.frame(frame, top_k=2)
    assert list(shown.columns) == ["row", "feature", "value", "contribution", "error", "rank"]


def test_labels_that_were_never_seen_are_told():
    frame = pd.DataFrame({"c": list("ab") * 20, "x": np.arange(40.0)})
    explainer = ask(lambda rows: (rows["c"] == "a") * rows["x"].to_numpy(), frame)
    with pytest.warns(fs.LabelWarning, match=r"labels in 'c' that neither background nor data have: 'z'"):
        values = explainer.shap_values(pd.DataFrame({"c": ["z"], "x": [3.0]}))
    assert values.sum() == pytest.approx(-explainer.expected_value)


def test_a_noisy_model_has_larger_errors():
    rng = np.random.default_rng(0)
    explainer = ask(lambda rows: net(rows) + 0.3 * rng.normal(size=len(rows)), tolerance=0.05)
    with pytest.warns(fs.NoiseWarning):
        values, errors = explainer.shap_values(X[:8], errors=True)
    within = np.abs(values - truth_of(net, X[:8])[..., 0]) <= 1.96 * errors
    assert within.mean() > 0.85


@pytest.mark.parametrize("n_players", [1, 2])
def test_one_and_two_columns_and_one_row(n_players):
    model = lambda rows: rows.prod(axis=1)  # noqa: E731
    explainer = ask(model, B[:, :n_players])
    values, errors = explainer.shap_values(X[0, :n_players], errors=True)
    assert values.shape == errors.shape == (n_players,)
    truth = truth_of(model, X[:1, :n_players], B[:, :n_players])[0, :, 0]
    np.testing.assert_allclose(values, truth, atol=1e-9)
    assert explainer.shap_values(X[:0, :n_players]).shape == (0, n_players)


def test_a_constant_model_explains_nothing():
    values, errors = ask(lambda rows: np.full(len(rows), 2.5)).shap_values(X, errors=True)
    assert np.abs(values).max() < 1e-12 and errors.max() < 1e-12


def test_a_representation_helps_where_queries_take_long():
    def slow(rows):
        time.sleep(2e-4 * len(rows))
        return net(rows)

    background, rows = (np.random.default_rng(seed).normal(size=(n, 9)) for seed, n in ((5, 60), (6, 25)))
    explainer = ask(slow, background, tolerance=0.01)
    values, errors = explainer.shap_values(rows, errors=True)
    assert explainer.engine.memory.fitted is not None
    truth = truth_of(net, rows, background)[..., 0]
    assert (np.abs(values - truth) <= 4.5 * errors + 1e-9).all()
    assert (np.abs(values - truth) <= 1.96 * errors + 1e-9).mean() > 0.85
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, net(rows), atol=1e-9)
    assert explainer.plan(1000).strategy == "fit"


def test_limits_stop_and_say_so():
    explainer = ask(parity, tolerance=0.001, max_queries=9000)
    with pytest.warns(fs.FidelityWarning, match="stopped at max_queries"):
        values, errors = explainer.shap_values(X, errors=True)
    assert explainer.info.n_queries <= 9000 + 80  # the background comes first
    assert (np.abs(values - truth_of(parity)[..., 0]) <= 1.96 * errors).mean() > 0.85


@pytest.mark.timeout(60)
@pytest.mark.parametrize("model", [net, parity])
@pytest.mark.parametrize("max_queries", [1, 2500, 4001, 9999])
def test_any_limit_ends(model, max_queries):
    """Also where what is left is too little for a draw."""
    explainer = ask(model, tolerance=1e-3, max_queries=max_queries)
    values, errors = quietly(explainer.shap_values, X[:20], errors=True)
    assert np.isfinite(values).all() and np.isfinite(errors).all()
    wanted = usual_truth(model)[:20, :, 0]
    assert np.mean(np.abs(values - wanted) <= 1.96 * errors + 1e-9) > 0.85


def test_what_takes_long_is_said_before():
    explainer = ask(parity, tolerance=1e-5, max_queries=20_000)
    with pytest.warns(fs.CostWarning, match="a minute is enough for about tolerance="):
        quiet = pytest.warns(fs.FidelityWarning)
        with quiet:
            explainer.shap_values(X)


def test_an_interruption_returns_what_there_is():
    asked = []

    def model(rows):
        asked.append(len(rows))
        if sum(asked) > 30_000:
            raise KeyboardInterrupt
        return parity(rows)

    explainer = ask(model, tolerance=0.005)
    with pytest.warns(fs.FidelityWarning, match="interrupted"):
        values, errors = explainer.shap_values(X, errors=True)
    assert np.isfinite(values).all()
    assert (np.abs(values - truth_of(parity)[..., 0]) <= 1.96 * errors).mean() > 0.85


def test_answers_are_kept_and_the_same_call_resumes(tmp_path):
    asked = []

    def model(rows):
        asked.append(len(rows))
        return parity(rows)

    def broken(rows):
        if sum(asked) > 6000:
            raise RuntimeError("the server is gone")
        return model(rows)

    options = {"answers": tmp_path / "answers.sqlite", "tolerance": 0.05, "batch_size": 500}
    with pytest.raises(fs.QueryError):
        ask(broken, **options).shap_values(X[:5])
    before = sum(asked)
    values = ask(model, **options).shap_values(X[:5])
    resumed = sum(asked) - before
    asked.clear()
    # The way depends on the time of a query, and known answers take none: values agree, queries may differ.
    others, errors = ask(model, tolerance=0.05, batch_size=500).shap_values(X[:5], errors=True)
    assert (np.abs(values - others) <= 6 * errors + 0.25 * np.abs(values).max()).all()
    assert resumed < sum(asked)


def test_a_fit_an_analysis_and_a_file_need_no_model_afterwards(tmp_path):
    asked = []

    def model(rows):
        asked.append(len(rows))
        return net(rows)

    explainer = quietly(ask, model)
    rows = np.concatenate([X, B])
    drift = quietly(explainer.drift, rows)
    before = sum(asked)
    quietly(explainer.importance, rows)
    quietly(explainer.interactions, rows, order=2, min_order=2, index="SII")
    assert sum(asked) == before and before <= 20_000
    assert drift.values.shape[1] == N
    quietly(explainer.save, tmp_path / "box.fshap")
    loaded = fs.load(tmp_path / "box.fshap")
    assert loaded.kind == "black box" and loaded.fidelity.shap is not None
    with pytest.raises(fs.InputError, match="fitted already"):
        loaded.fit()
    with pytest.raises(fs.InputError, match="have no errors of their own"):
        loaded.shap_values(X, errors=True)


def test_reasons_and_streams_ask_the_model():
    explainer = ask(net, tolerance=0.1)
    values = explainer.shap_values(X)
    reasons = explainer.reasons(X, top_k=1, direction="both")
    np.testing.assert_allclose(np.abs(reasons.contribution), np.abs(values).max(axis=1))
    assert (reasons.error > 0).all() and "±" in repr(reasons) and "error" in reasons.frame().columns
    (streamed,) = explainer.explain_batches([X])
    np.testing.assert_allclose(streamed[:, :-1], values)


def test_another_background_is_asked_about():
    other = ask(net).with_background(B[:20] + 1)
    values, errors = other.shap_values(X[:5], errors=True)
    truth = truth_of(net, X[:5], B[:20] + 1)[..., 0]
    assert (np.abs(values - truth) <= 4.5 * errors + 1e-9).all()


def test_it_can_be_pickled():
    explainer = ask(net)
    copied = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(copied.shap_values(X[:2]), explainer.shap_values(X[:2]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0}, "tolerance is 0; give a number above 0"),
        ({"tolerance": 2}, "tolerance is 2"),
        ({"max_queries": 0}, "max_queries is 0"),
        ({"max_seconds": -1}, "max_seconds"),
        ({"budget": 100}, "budget is not an argument"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(fs.InputError, match=message):
        ask(net, **options)


def test_exact_explainers_have_no_errors_and_nothing_to_fit():
    from sklearn.linear_model import LinearRegression

    explainer = fs.Explainer(LinearRegression().fit(B, B[:, 0]), B)
    values, errors = explainer.shap_values(X, errors=True)
    assert errors.shape == values.shape and not errors.any()
    assert "error" not in explainer.frame(X[:2]).columns
    with pytest.raises(fs.InputError, match="read exactly"):
        explainer.fit()


def test_equal_rows_are_asked_about_once_where_a_query_takes_long():
    levels = np.random.default_rng(0).integers(0, 2, size=(200, 9)).astype(float)
    asked = []

    def slow(rows):
        asked.append(len(rows))
        time.sleep(1e-5 * len(rows))
        return np.sin(rows @ np.arange(9)) + rows[:, 0] * rows[:, 3]

    explainer = ask(slow, levels[:100], tolerance=0.05)
    values, errors = explainer.shap_values(levels[100:110], errors=True)
    truth = truth_of(lambda r: np.sin(r @ np.arange(9)) + r[:, 0] * r[:, 3], levels[100:110], levels[:100])[
        ..., 0
    ]
    assert (np.abs(values - truth) <= 4.5 * errors + 1e-9).all()
    assert max(asked) <= 512


@pytest.mark.parametrize(("pace", "fits"), [(1e-6, False), (1e-3, True)])
def test_a_busy_machine_changes_no_way_and_no_value(monkeypatch, pace, fits):
    """By a clock of the model's own, which goes 1.4 times as fast the second time: slow models are worth a fit."""
    found = []
    for busy in (1.0, 1.4):
        clock = [0.0]

        def model(rows, clock=clock, busy=busy):
            clock[0] += busy * pace * len(rows)
            return net(rows)

        with monkeypatch.context() as patch:
            patch.setattr(time, "perf_counter", lambda clock=clock: clock[0])
            explainer = fs.Explainer(model, B, random_state=0)
            found.append(explainer.shap_values(X, errors=True))
        assert (explainer.engine.memory.fitted is not None) == fits
    np.testing.assert_array_equal(found[0], found[1])
