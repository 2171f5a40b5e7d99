"""What the bits of a black box's spectrum are called, and its R^2 on the cube."""

from __future__ import annotations

import numpy as np
import pytest

import fouriershap as fs
from fitted_models import explain_fitted

pd = pytest.importorskip("pandas")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 300
    temp = pd.Categorical(rng.choice(["low", "high"], n), categories=["low", "high"], ordered=True)
    colour = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "temp": temp,
            "pressure": rng.integers(0, 2, n),
            "gear": rng.choice([1, 2, 3, 4], n),
            "size": rng.choice(list("abcdefgh"), n),
            "hole": rng.choice([np.nan, 7.0], n),
            "colour_red": colour,
            "colour_blue": 1 - colour,
        }
    )


def test_labels_of_levels(frame):
    def predict(rows):
        hot = (rows["temp"] == "high").to_numpy(float)
        return 3 * hot * rows["pressure"] + 0.5 * (rows["gear"] == 4) + 0.1 * rows["colour_red"]

    groups = {"colour": ["colour_red", "colour_blue"]}
    explainer = explain_fitted(predict, frame, groups=groups, method="enumerate", random_state=0)
    names = explainer.fitted.bit_names
    expected = ["temp=high", "pressure", "gear in {2, 4}", "gear in {3, 4}"]
    expected += [f"size[bit {bit}]" for bit in range(3)] + ["hole=missing"]
    assert [name for name in names if not name.startswith("colour")] == expected
    assert {name for name in names if name.startswith("colour")} <= {"colour=red", "colour=blue"}
    top = explainer.fitted.top_terms(3)
    assert set(top.labels) == {"temp=high", "pressure", "temp=high × pressure"}
    np.testing.assert_allclose(np.abs(top.coefficients), 0.75)
    assert explainer.representation.top_terms(3, explainer.fitted.bit_names).labels == top.labels


@pytest.mark.parametrize("method", ["enumerate", "swht"])
def test_every_label_is_true_of_the_rows(frame, tmp_path, method):
    """A model of one condition has one term, whose label is that condition; files keep the names."""
    levels = frame[["temp", "pressure", "size"]].assign(gear=frame["gear"].astype(str))
    if method == "swht":  # needs a cube that is larger than its budget
        bits = np.random.default_rng(1).integers(0, 2, (len(frame), 12))
        levels = levels.join(pd.DataFrame(bits, columns=[f"bit {j}" for j in range(12)]))
    for label in ("gear in {2, 4}", "gear in {3, 4}"):
        marked = label.split("{")[1][:-1].split(", ")
        explainer = explain_fitted(
            lambda rows, marked=marked: rows["gear"].isin(marked).to_numpy(float),
            levels,
            method=method,
            budget=4000,
            random_state=0,
        )
        explainer.save(tmp_path / "box.fshap")
        for one in (explainer, fs.load(tmp_path / "box.fshap")):
            top = one.fitted.top_terms(1)
            assert top.labels == (label,)
            np.testing.assert_allclose([*top.coefficients, *top.share], [-0.5, 1.0], atol=1e-6)


def test_intervals():
    """Two intervals are named by the edge, eight by the number of the bit."""
    rng = np.random.default_rng(1)
    rare = np.where(rng.random(400) < 0.95, 0.0, rng.uniform(1, 2, 400))
    X = np.column_stack([rng.normal(size=400), rare, rng.integers(0, 2, (400, 12))])
    explainer = explain_fitted(
        lambda x: x[:, 2] + (x[:, 1] > 0), X, method="swht", budget=3000, random_state=0
    )
    least = rare[rare > 0].min()
    assert explainer.fitted.bit_names[:4] == (
        *(f"Feature 0[bit {bit}]" for bit in range(3)),
        f"Feature 1>={least:.6g}",
    )
    assert set(explainer.fitted.top_terms(2).labels) == {"Feature 2", f"Feature 1>={least:.6g}"}
    assert explainer.fidelity.r2 > 0.999


def test_trees_have_no_bits():
    X = np.random.default_rng(0).normal(size=(300, 3))
    explainer = explain_fitted(lambda x: x[:, 0], X, method="trees", budget=400, random_state=0)
    with pytest.raises(fs.InputError, match="no bits"):
        explainer.fitted.top_terms()


# The cube
