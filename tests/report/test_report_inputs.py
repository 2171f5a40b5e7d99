"""What the page computes with: tables and leaves that give the values of every model."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from fouriershap._shapley.lookups import TableLookup
from fouriershap._shapley.trees.leaves import LeafLookup, leaf_lookup
from fouriershap.report._subject import make_what_if
from models import CASES
from report_pages import small


def leaf_values(lookup: LeafLookup, rows: np.ndarray) -> np.ndarray:
    """What the page's `Leaves` does, from the same arrays, for all rows at once."""
    a, header = lookup.arrays(), lookup.header()
    codes = lookup.book.encode(rows)
    out = np.zeros((len(rows), header["n_players"], header["n_outputs"]))
    missing = lookup.book.n_codes - 1
    node, leaf, first = 0, 0, 0

    def visit(fails: np.ndarray, path: list[int], ratios: list[float], output: int) -> None:
        nonlocal node, leaf, first
        head, test = int(a["head"][node]), int(a["test"][node])
        node += 1
        if head < 0:
            holds = ~(fails[:, None] >> np.arange(len(path)) & 1).astype(bool)
            share = np.zeros((len(rows), len(path)))
            if header["by_path"]:
                for t, weight in zip(header["points"], header["point_weights"], strict=True):
                    factor = t * holds + (1 - t) * np.array(ratios)
                    for j in range(len(path)):
                        others = np.delete(factor, j, axis=1).prod(axis=1)
                        share[:, j] += weight * (holds[:, j] - ratios[j]) * others
            else:
                last = first + int(a["set_count"][leaf])
                z = (~holds).sum(axis=1)
                for X, n in zip(
                    a["sets"][first:last].tolist(), a["shares"][first:last].tolist(), strict=True
                ):
                    alive, size = (fails & X) == 0, X.bit_count()
                    for j in range(len(path)):
                        mine = [0.0] * len(z)
                        for r in np.flatnonzero(alive):
                            if X >> j & 1:
                                mine[r] = n * factorial(size - 1) * factorial(z[r]) / factorial(size + z[r])
                            elif not holds[r, j]:
                                mine[r] = -n * factorial(size) * factorial(z[r] - 1) / factorial(size + z[r])
                        share[:, j] += np.array(mine) / header["total"]
                first = last
            values = a["values"][leaf]
            columns = slice(None) if output < 0 else slice(output, output + 1)
            mine = values if output < 0 or len(values) == 1 else values[output : output + 1]
            for j, player in enumerate(path):
                out[:, player, columns] += share[:, j, None] * mine
            leaf += 1
            return
        f = head >> 1
        if test < 0:
            left = (a["set_bits"][-1 - test][codes[f] >> 3] >> (codes[f] & 7) & 1).astype(bool)
        else:
            left = (codes[f] < test) | ((codes[f] == missing[f]) & bool(head & 1))
        player = int(a["players"][f])
        at = path.index(player) if player in path else len(path)
        for side in (left, ~left):
            r = float(a["ratio"][node]) if "ratio" in a else 1.0
            mine = [*ratios, 1.0] if at == len(path) else list(ratios)
            mine[at] *= r
            visit(
                fails | np.where(side, 0, 1 << at), [*path, player] if at == len(path) else path, mine, output
            )

    for output in a["tree_output"].tolist():
        visit(np.zeros(len(rows), dtype=np.int64), [], [], output)
    assert (node, leaf) == (len(a["head"]), len(a["values"]))
    assert first == len(a["sets"])
    return out


def model_values(inputs: list[Any]) -> np.ndarray:
    """Rows as the page hands them to its tables."""
    columns = []
    for entry in inputs:
        numbers = np.array([*entry.numbers, np.nan])
        positions = np.where(np.isnan(entry.values), len(entry.numbers), entry.values).astype(int)
        columns.append(entry.values if entry.labels is None else numbers[positions])
    return np.column_stack(columns)


TREES = [(library, name) for library, cases in CASES.items() for name in cases]


@pytest.mark.parametrize(("library", "name"), TREES)
def test_inputs_and_look_ups_give_the_values_of_every_library(library: str, name: str) -> None:
    case = CASES[library][name]()
    explainer = fs.TreeExplainer(case.model, case.X, precision="double").compile()
    read = explainer.inputs.encode(case.X)
    fields = explainer.inputs.fields(read)
    (leaves,) = explainer.engine.raw.lookups(15_000_000)
    assert isinstance(leaves, LeafLookup)
    rows = explainer.inputs.encoder.rules.clean(model_values(fields))
    values = explainer.engine.shap_values(read.codes)
    tables = explainer.engine.table_lookup()
    assert tables is not None
    np.testing.assert_allclose(tables.shap_values(rows), values, atol=1e-9 * np.abs(values).max())
    np.testing.assert_allclose(leaf_values(leaves, rows[:9]), values[:9], atol=1e-9 * np.abs(values).max())
    for entry in fields:
        if entry.labels is not None:
            assert (
                len(entry.labels)
                == len(entry.numbers)
                == len(set(zip(entry.labels, entry.numbers, strict=True)))
            )


@pytest.mark.parametrize("rule", ["number", "zero"])
def test_numbers_that_count_as_missing_do_so_on_the_page(rule: str) -> None:
    """Engines get rows in which they are NaN already, but a reader types numbers."""
    explainer, X = small()
    reading = fs.read_model(explainer.representation)
    rules = {"missing_value": -1.0} if rule == "number" else {"zero_as_missing": (1,)}
    explainer = fs.TreeExplainer(reading.replace(**rules), X[:50])
    (part,) = make_what_if(explainer, explainer.inputs.encode(X), 4, 15_000_000)
    assert part.header["missing_value"] == (-1.0 if rule == "number" else None)
    assert part.arrays["zero_as_missing"].tolist() == [False, rule == "zero", False, False]


@pytest.mark.parametrize("kind", ["groups", "weights", "by path"])
def test_leaves_with_groups_weights_and_without_a_background(kind: str) -> None:
    case = CASES["lightgbm"][next(iter(CASES["lightgbm"]))]()
    n = fs.TreeExplainer(case.model, case.X).representation.n_features
    options: dict[str, Any] = {
        "groups": {"groups": {"two": [0, n - 1]}},
        "weights": {"weights": np.arange(1.0, len(case.X) + 1)},
        "by path": {},
    }[kind]
    explainer = fs.TreeExplainer(case.model, None if kind == "by path" else case.X, **options)
    read = explainer.inputs.encode(case.X)
    lookup = leaf_lookup(explainer.engine.model, explainer.engine.tree_background)
    assert lookup is not None
    values = explainer.engine.shap_values(read.codes)
    np.testing.assert_allclose(
        leaf_values(lookup, read.codes[:12]), values[:12], atol=1e-6 * np.abs(values).max()
    )


def test_rounded_tables_tell_their_error() -> None:
    explainer, X = small()
    lookup = explainer.compile().engine.table_lookup()
    assert lookup is not None
    rows = explainer.inputs.encode(X).codes
    exact = lookup.shap_values(rows)
    np.testing.assert_allclose(exact, explainer.shap_values(X)[:, :, None], atol=1e-6)
    errors = []
    for bits in (16, 12, 9):
        coarser = lookup.rounded(bits)
        whole = coarser.arrays()["values"]
        assert whole.dtype == np.int16
        assert np.abs(whole).max() == 2 ** (bits - 1) - 1
        np.testing.assert_allclose(
            whole * np.float32(coarser.header()["step"]), coarser.tables.values, rtol=1e-5, atol=1e-9
        )
        errors.append(np.abs(coarser.shap_values(rows) - exact).max())
    assert errors[0] < errors[1] < errors[2] < 0.02 * np.abs(exact).max()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 12), st.integers(1, 3))
def test_inputs_and_tables_of_spectra(seed: int, n_bits: int, n_terms: int, n_outputs: int) -> None:
    rng = np.random.default_rng(seed)
    h = fs.Spectrum(rng.integers(0, 2, size=(n_terms, n_bits)), rng.normal(size=(n_terms, n_outputs)))
    X = rng.integers(0, 2, size=(9, n_bits))
    groups = [str(g) for g in rng.integers(0, 3, size=n_bits)]
    explainer = fs.Explainer(h, X[:4], groups=groups)
    read = explainer.inputs.encode(X)
    fields = explainer.inputs.fields(read)
    (lookup,) = explainer.engine.raw.lookups(15_000_000)
    assert isinstance(lookup, TableLookup)
    found = lookup.shap_values(model_values(fields))
    np.testing.assert_allclose(found, explainer.engine.shap_values(read.codes), atol=1e-9)
