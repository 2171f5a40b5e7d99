"""`explain_game`: exact with all coalitions, honest standard errors with few."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from fouriershap._blackbox import one_game

Game = Callable[[np.ndarray], np.ndarray]


def by_definition(game: Game, n: int) -> np.ndarray:
    """SHAP values: marginal contributions averaged over all orders of players."""
    values = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        joined = np.zeros((n + 1, n), dtype=bool)
        for step, player in enumerate(order):
            joined[step + 1 :, player] = True
        values[list(order)] += np.diff(game(joined))
    return values / len(orders)


def unanimity(n: int, n_games: int, seed: int, most: int = 4) -> tuple[Game, np.ndarray]:
    """A sum of games that are worth something if all of a few players are in, and its SHAP values."""
    rng = np.random.default_rng(seed)
    sets = [rng.choice(n, rng.integers(1, most + 1), replace=False) for _ in range(n_games)]
    worth = rng.normal(size=n_games)
    values = np.zeros(n)
    for players, each in zip(sets, worth, strict=True):
        values[players] += each / len(players)
    return lambda c: sum(each * c[:, s].all(axis=1) for s, each in zip(sets, worth, strict=True)), values


def network(n: int, seed: int) -> Game:
    """A small network with random weights: interactions of every order."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(n, 8)) / np.sqrt(n), rng.normal(size=8)
    shift = rng.normal(size=8)
    return lambda c: np.tanh(2 * (c @ first) + shift) @ second


class Asked:
    """A game that remembers which coalitions were asked."""

    def __init__(self, game: Game) -> None:
        self.game, self.rows = game, []

    def __call__(self, coalitions: np.ndarray) -> np.ndarray:
        self.rows += [tuple(row) for row in coalitions.tolist()]
        return self.game(coalitions)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_with_all_coalitions_values_are_those_of_the_definition(n: int, seed: int) -> None:
    table = np.random.default_rng(seed).normal(size=2**n)
    game = Asked(lambda c: table[c @ 2 ** np.arange(n)])
    found = fs.explain_game(game, n, max_queries=64)
    np.testing.assert_allclose(found.values, by_definition(game.game, n), atol=1e-12)
    assert found.is_exact
    assert not found.error_std.any()
    assert found.n_queries == len(game.rows) == len(set(game.rows)) == 2**n


@pytest.mark.parametrize("order", [2, 3])
def test_exact_interactions_are_those_of_the_spectrum(order: int) -> None:
    table = np.random.default_rng(order).normal(size=2**5)

    def game(c):
        return table[c @ 2 ** np.arange(5)[::-1]]

    found = fs.explain_game(game, 5, order=order).interactions
    rows = (np.arange(32)[:, None] >> np.arange(5)[::-1]) & 1
    coefficients = np.array([np.mean(table * (-1.0) ** (rows @ f)) for f in rows])
    explainer = fs.SpectrumExplainer(fs.Spectrum(rows, coefficients), np.zeros((1, 5)))
    expected = explainer.interactions(np.ones((1, 5)), order=order)
    assert set(found.positions) == set(expected.positions)
    for players in found.positions:
        np.testing.assert_allclose(found.value_of(*players), expected.value_of(*players), atol=1e-12)


@pytest.mark.parametrize("max_queries", [60, 400])
def test_an_additive_game_is_found(max_queries: int) -> None:
    worth = np.random.default_rng(0).normal(size=25)
    found = fs.explain_game(lambda c: c @ worth + 3, 25, max_queries=max_queries, random_state=0)
    np.testing.assert_allclose(found.values, worth, atol=1e-3)
    assert found.base == 3


def test_values_and_pairs_of_a_pairwise_game() -> None:
    rng = np.random.default_rng(1)
    worth, together = rng.normal(size=18), np.triu(rng.normal(size=(18, 18)), 1)
    together[rng.random((18, 18)) < 0.8] = 0

    def game(c):
        return c @ worth + np.einsum("ci,ij,cj->c", c * 1.0, together, c * 1.0)

    found = fs.explain_game(game, 18, max_queries=2000, order=2, random_state=0)
    np.testing.assert_allclose(found.values, worth + (together + together.T).sum(axis=1) / 2, atol=1e-3)
    pairs = np.array([found.interactions.value_of(i, j)[0] for i, j in combinations(range(18), 2)])
    np.testing.assert_allclose(pairs, together[np.triu_indices(18, 1)], atol=0.02)
    mains = np.array([found.interactions.value_of(i)[0] for i in range(18)])
    np.testing.assert_allclose(mains, worth, atol=0.1)
    assert found.interactions.values.sum() == pytest.approx(found.full - found.base)


def test_interactions_of_three_players_are_found() -> None:
    def game(c):
        return 2.0 * c[:, 0] * c[:, 1] * c[:, 2] + c[:, 3] - c[:, 4] * c[:, 5]

    found = fs.explain_game(game, 14, max_queries=1500, order=3, random_state=0).interactions
    assert found.value_of(0, 1, 2)[0] == pytest.approx(2, abs=0.05)
    assert found.value_of(4, 5)[0] == pytest.approx(-1, abs=0.05)
    assert np.abs(found.values[0, 10:]).max() < 0.3


def test_standard_errors_are_honest() -> None:
    inside: dict[str, list[float]] = {"unanimity": [], "network": []}
    for seed in range(12):
        game, values = unanimity(20, 40, seed)
        found = fs.explain_game(game, 20, max_queries=300, random_state=seed)
        inside["unanimity"].append(np.mean(np.abs(found.values - values) < 1.96 * found.error_std))
        game = network(12, seed)
        values = fs.explain_game(game, 12, max_queries=2**12).values
        found = fs.explain_game(game, 12, max_queries=200, random_state=seed)
        inside["network"].append(np.mean(np.abs(found.values - values) < 1.96 * found.error_std))
        assert (found.error_std > 0).all()
    for kind, shares in inside.items():
        assert 0.90 <= np.mean(shares) <= 0.99, kind


def airport(seed: int) -> Game:
    """The cost of the most expensive member."""
    costs = np.random.default_rng(seed).exponential(size=12)
    return lambda c: np.where(c, costs, 0).max(axis=1)


def stairs(seed: int) -> Game:
    """A weighted vote that counts in steps."""
    worth = np.random.default_rng(seed).random(12)
    return lambda c: np.floor(4 * (c @ worth) / worth.sum() + 0.3)


def covering(seed: int) -> Game:
    """The weight of the things that some member covers."""
    rng = np.random.default_rng(seed)
    covers, weights = rng.random((12, 30)) < 0.2, rng.random(30)
    return lambda c: (c.astype(float) @ covers > 0) @ weights


@pytest.mark.parametrize("family", [airport, stairs, covering])
def test_standard_errors_are_honest_where_games_jump(family: Callable[[int], Game]) -> None:
    inside = []
    for seed in range(100, 112):
        values = fs.explain_game(family(seed), 12, max_queries=2**12).values
        found = fs.explain_game(family(seed), 12, max_queries=500, random_state=seed)
        slack = 1e-7 * np.abs(values).max()
        inside.append(np.mean(np.abs(found.values - values) <= 1.96 * found.error_std + slack))
    assert np.mean(inside) >= 0.9


def test_more_queries_mean_smaller_errors() -> None:
    game, values = unanimity(24, 60, 5)
    errors, told = [], []
    for max_queries in (100, 400, 1600):
        found = fs.explain_game(game, 24, max_queries=max_queries, random_state=0)
        errors.append(((found.values - values) ** 2).sum())
        told.append((found.error_std**2).sum())
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert told[0] > 3 * told[1] > 9 * told[2]


def test_coalitions_are_asked_once_and_with_their_complements() -> None:
    for n, max_queries in ((3, 6), (11, 500), (12, 4001), (40, 333)):
        game = Asked(unanimity(n, 20, 0, 3)[0])
        found = fs.explain_game(game, n, max_queries=max_queries, random_state=1, batch_size=50)
        assert max_queries - 3 <= found.n_queries == len(game.rows) == len(set(game.rows)) <= max_queries
        assert {tuple(not member for member in row) for row in game.rows} == set(game.rows)
        assert found.values.sum() == pytest.approx(found.full - found.base)


def test_small_sizes_are_taken_whole_and_others_evenly() -> None:
    pairs = one_game.draw_pairs(20, 500, np.random.default_rng(0))
    counts = np.bincount(pairs.coalitions.sum(axis=1), minlength=11)
    assert counts[1] == 20
    assert not pairs.missing[pairs.coalitions.sum(axis=1) == 1].any()
    assert counts[2:10].max() - counts[2:10].min() <= 1
    assert abs(counts[10] - counts[9] / 2) <= 1.5
    weights = np.bincount(pairs.coalitions.sum(axis=1), pairs.weights)
    np.testing.assert_allclose(weights[1:10], [2 / (k * (20 - k)) for k in range(1, 10)])


def test_noise_is_part_of_the_errors() -> None:
    worth = np.random.default_rng(0).normal(size=15)
    inside, all_asked = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)

        def noisy(c, rng=rng):
            return c @ worth[: c.shape[1]] + rng.normal(size=len(c))

        found = fs.explain_game(noisy, 15, max_queries=600, noisy=True, random_state=seed)
        inside.append(np.mean(np.abs(found.values - worth) < 1.96 * found.error_std))
        found = fs.explain_game(noisy, 6, max_queries=640, noisy=True)
        assert found.is_exact
        all_asked.append(np.mean(np.abs(found.values - worth[:6]) < 1.96 * found.error_std))
    assert 0.88 <= np.mean(inside) <= 0.99
    assert 0.85 <= np.mean(all_asked) <= 1


def test_pairs_that_the_process_does_not_see_correct_it(monkeypatch: pytest.MonkeyPatch) -> None:
    game, values = unanimity(20, 60, 3, 8)
    few = fs.explain_game(game, 20, max_queries=200, random_state=0)
    monkeypatch.setattr(one_game, "MOST_FITTED", 100)
    many = fs.explain_game(game, 20, max_queries=20_000, order=2, random_state=0)
    assert ((many.values - values) ** 2).sum() < ((few.values - values) ** 2).sum() / 10
    assert 0.75 <= np.mean(np.abs(many.values - values) < 1.96 * many.error_std) <= 1


def test_several_outputs_share_queries() -> None:
    game, values = unanimity(16, 20, 2, 2)
    both = Asked(lambda c: np.stack([game(c), -2 * game(c), np.ones(len(c))], axis=1))
    found = fs.explain_game(both, 16, max_queries=800, order=2, random_state=0)
    assert found.values.shape == found.error_std.shape == (16, 3)
    np.testing.assert_allclose(found.values[:, 0], values, atol=1e-3)
    np.testing.assert_allclose(found.values[:, 1], -2 * values, atol=2e-3)
    assert not found.values[:, 2].any()
    assert not found.error_std[:, 2].any()
    assert len(both.rows) == found.n_queries == 800
    assert list(found.frame().columns) == ["player", "output", "value", "error_std"]
    np.testing.assert_allclose(found.values.sum(axis=0), found.full - found.base, atol=1e-9)


def test_the_same_seed_gives_the_same_numbers() -> None:
    game = network(20, 0)
    one, same, other = (fs.explain_game(game, 20, random_state=seed).values for seed in (7, 7, 8))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_whatever_is_raised_has_the_answers_and_the_call_continues(error: type[BaseException]) -> None:
    game = Asked(network(15, 0))

    def fails(coalitions: np.ndarray) -> np.ndarray:
        if len(game.rows) >= 150:
            raise error("enough")
        return game(coalitions)

    options: dict[str, Any] = {"max_queries": 300, "batch_size": 50, "random_state": 3}
    with pytest.raises((fs.QueryError, KeyboardInterrupt)) as caught:
        fs.explain_game(fails, 15, **options)
    answers = caught.value.answers
    assert len(answers) == len(game.rows) == 152
    game.rows.clear()
    found = fs.explain_game(game, 15, answers=answers, **options)
    assert len(game.rows) == 300 - 152
    expected = fs.explain_game(network(15, 0), 15, **options)
    np.testing.assert_array_equal(found.values, expected.values)


def test_what_a_result_shows() -> None:
    game, values = unanimity(12, 20, 1)
    names = [f"word {i}" for i in range(12)]
    found = fs.explain_game(game, 12, max_queries=300, order=2, player_names=names, random_state=0)
    frame = found.frame()
    assert list(frame.columns) == ["player", "value", "error_std"]
    assert frame["player"].tolist() == names
    assert repr(found).startswith("GameExplanation(12 players, 300 queries, ± standard error)\n  word ")
    assert json.loads(found.to_json())["n_queries"] == 300
    ax = found.plot(top_k=5)
    shown = [label.get_text() for label in ax.get_yticklabels()]
    largest = names[int(np.argmax(np.abs(values)))]
    assert len(shown) == 6
    assert largest in shown
    assert found.interactions.plot(row=0, top_k=5) is not None


def test_a_game_without_value() -> None:
    found = fs.explain_game(lambda c: np.zeros(len(c)), 30, order=2)
    assert not found.values.any()
    assert not found.error_std.any()
    assert len(found.interactions) == 0


def test_a_game_of_one_player() -> None:
    assert fs.explain_game(lambda c: 2.0 * c[:, 0], 1, order=3).values.tolist() == [2.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_players": 0}, "n_players is 0"),
        ({"max_queries": 3}, "max_queries is 3"),
        ({"order": 0}, "order is 0"),
        ({"n_players": 100, "order": 5}, "give a lower order"),
        ({"player_names": ["a"]}, "player_names is"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"random_state": "x"}, "random_state is 'x'"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fs.InputError, match=message):
        fs.explain_game(lambda c: c.sum(axis=1), **({"n_players": 4} | options))


def test_answers_must_be_numbers() -> None:
    with pytest.raises(fs.QueryError, match="not finite"):
        fs.explain_game(lambda c: np.full(len(c), np.nan), 4)
    with pytest.raises(fs.QueryError, match="returned shape"):
        fs.explain_game(lambda c: 1.0, 4)


def test_hundreds_of_players():
    found = fs.explain_game(lambda inside: inside.sum(axis=1) * 1.0, 300, max_queries=700, random_state=0)
    np.testing.assert_allclose(found.values, 1.0, atol=1e-6)


def test_arguments_that_are_wrong_are_named():
    for wrong, word in (({"value": 3}, "value is 3"), ({"max_query": 9}, "Did you mean max_queries")):
        with pytest.raises(fs.InputError, match=word):
            fs.explain_game(**{"value": lambda inside: inside.sum(axis=1), "n_players": 3} | wrong)
