"""What was paid for: answers in a mapping, and answers that an exception carries."""

from __future__ import annotations

import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
from asking_models import Counting, fingerprint, not_asked
from fitted_models import explain_fitted

BITS = np.random.default_rng(0).integers(0, 2, size=(80, 8))
X = np.random.default_rng(1).normal(size=(60, 3))


def cubic(rows):
    return rows[:, 0] * rows[:, 1] * rows[:, 2] - rows[:, -1] + 0.5


def smooth(rows):
    return np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2]


FITS = {
    "exact": (cubic, BITS, {"method": "enumerate", "budget": 400}),
    "trees": (smooth, X, {"method": "trees", "budget": 300}),
    "swht": (cubic, np.tile(BITS, 3), {"method": "swht", "budget": 2000}),
}


@functools.cache
def n_asked():
    """Rows that the exact fit asks: all 256, and some of them again."""
    return fit(cubic, BITS, FITS["exact"][2]).fidelity.n_queries


def fit(model, data, options, **more):
    return explain_fitted(model, data, batch_size=50, n_jobs=1, **options, **more)


@pytest.mark.parametrize("random_state", [None, 3])
@pytest.mark.parametrize("name", list(FITS))
def test_ctrl_c_leaves_the_answers_with_the_exception(name, random_state):
    function, data, options = FITS[name]
    stopped = Counting(function, stop=3)
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(stopped, data, options, random_state=random_state)
    assert len(caught.value.answers) == stopped.n_rows == 150
    assert "150 answers" in caught.value.__notes__[0] and "answers=" in caught.value.__notes__[0]
    for row, answers in caught.value.answers.items():
        assert answers == [(function(np.array([row]))[0],)]

    given = caught.value.answers
    seed = given.random_state if random_state is None else random_state
    whole = Counting(function)
    expected = fit(whole, data, options, random_state=seed)
    rest = Counting(function)
    resumed = fit(rest, data, options, random_state=random_state, answers=given)
    assert rest.n_rows == whole.n_rows - 150 == resumed.fitted.n_asked
    assert resumed.fidelity == expected.fidelity
    assert fingerprint(resumed) == fingerprint(expected)


def raise_late(done, total):
    if done > 200:
        raise RuntimeError("the window was closed")


@pytest.mark.parametrize("name", list(FITS))
def test_an_error_of_the_progress_carries_the_answers_and_stays_what_it_is(name):
    function, data, options = FITS[name]
    model = Counting(function)
    with pytest.raises(RuntimeError, match="the window was closed") as caught:
        fit(model, data, options, random_state=0, progress=raise_late)
    assert type(caught.value) is RuntimeError and str(caught.value) == "the window was closed"
    assert len(caught.value.answers) == model.n_rows == 250
    again = Counting(function)
    fit(again, data, options, random_state=0, answers=caught.value.answers)
    whole = Counting(function)
    fit(whole, data, options, random_state=0)
    assert again.n_rows == whole.n_rows - 250


def test_an_error_after_the_asking_carries_the_answers():
    """Here the data are too few: no model was at fault."""
    few = Counting(lambda rows: rows[:, 0].astype(float))
    with pytest.raises(fs.InputError, match="different hybrids") as caught:
        fit(few, BITS[:, :4], {"method": "trees", "budget": 300}, random_state=0)
    assert 0 < few.n_rows == len(caught.value.answers)


def test_a_warning_that_is_an_error_carries_the_answers():
    noise = np.random.default_rng(0)
    model = Counting(lambda rows: noise.normal(size=len(rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fs.FourierShapWarning) as caught:
            fit(model, BITS, {"method": "enumerate", "budget": 300}, random_state=0)
    kept = caught.value.answers
    assert sum(map(len, kept.values())) == model.n_rows > 256 == len(kept)


def test_an_error_of_the_model_carries_the_answers():
    model = Counting(cubic, stop=2, error=ConnectionError)
    with pytest.raises(fs.QueryError, match="ConnectionError") as caught:
        fit(model, BITS, FITS["exact"][2], random_state=0)
    assert not getattr(caught.value, "__notes__", [])  # the message says it
    assert "`.answers`" in str(caught.value)
    rest = Counting(cubic)
    fit(rest, BITS, FITS["exact"][2], random_state=0, answers=caught.value.answers)
    assert model.n_rows + rest.n_rows == n_asked()


def test_the_good_answers_of_a_bad_batch_are_kept():
    def predict(rows):
        return np.where((rows[:, 0] == 1) & (rows[:, 5] == 1) & is_ill, np.nan, cubic(rows))

    is_ill = True
    model = Counting(predict)
    with pytest.raises(fs.QueryError, match=r"batch 0 .queries 0 to 49.* are not finite") as caught:
        fit(model, BITS, FITS["exact"][2], random_state=0)
    n_good = len(caught.value.answers)
    assert 0 < n_good < 50 and f"{n_good} answers so far" in str(caught.value)
    is_ill = False
    fit(model, BITS, FITS["exact"][2], random_state=0, answers=caught.value.answers)
    assert model.n_rows == n_asked() + 50 - n_good


def test_a_model_that_uses_its_array_again():
    buffer = np.empty(50)

    def predict(rows):
        buffer[: len(rows)] = cubic(rows)
        return buffer[: len(rows)]

    known = {}
    explainer = fit(predict, BITS, FITS["exact"][2], random_state=0, answers=known)
    assert fingerprint(explainer) == fingerprint(fit(cubic, BITS, FITS["exact"][2], random_state=0))
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(Counting(predict, stop=3), BITS, FITS["exact"][2], random_state=0)
    for row, answers in caught.value.answers.items():
        assert answers == known[row][:1]


def test_answers_of_an_exception_can_be_pickled():
    frame = pd.DataFrame(BITS, columns=list("abcdefgh"))
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(Counting(lambda rows: rows["a"], stop=2), frame, FITS["exact"][2])
    kept = pickle.loads(pickle.dumps(caught.value.answers))
    assert kept == caught.value.answers and kept.random_state == caught.value.answers.random_state is not None
    assert len(kept) == 100 and "100 rows" in repr(kept)


def test_a_dict_of_the_callers_is_filled_and_read():
    known = {}
    first = Counting(cubic, stop=2)
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(first, BITS, FITS["exact"][2], answers=known)
    assert caught.value.answers is known and len(known) == 100
    second = Counting(cubic)
    explainer = fit(second, BITS, FITS["exact"][2], answers=known)
    assert len(known) == 256 and first.n_rows + second.n_rows == explainer.fidelity.n_queries == n_asked()
    assert explainer.fitted.n_asked == second.n_rows == n_asked() - 100
    third = Counting(cubic)
    again = fit(third, BITS, FITS["exact"][2], answers=known)
    assert third.n_rows == again.fitted.n_asked == 0 and again.fidelity.n_queries == n_asked()
    assert fingerprint(again) == fingerprint(explainer)


def test_answers_that_the_caller_knows_already():
    rows = [tuple(row) for row in np.unique(BITS[:, :4], axis=0).tolist()]
    function = lambda rows: rows.sum(axis=1) + 0.0  # noqa: E731
    model = Counting(function)
    known = dict(zip(rows, [sum(row) for row in rows], strict=True))  # a number for each
    options = {"method": "enumerate", "budget": 200}
    explainer = fit(model, BITS[:, :4], options, answers=known)
    assert model.n_rows == explainer.fidelity.n_queries - 16  # only those that are asked again
    np.testing.assert_allclose(explainer.shap_values(BITS[:3, :4]), BITS[:3, :4] - BITS[:, :4].mean(axis=0))
    assert sum(map(np.size, known.values())) == explainer.fidelity.n_queries > len(known) == 16
    both = Counting(lambda rows: np.stack([function(rows), -function(rows)], axis=1))
    two = {row: (sum(row), -sum(row)) for row in rows}  # one answer of two outputs
    assert fit(both, BITS[:, :4], options, answers=two).shap_values(BITS[:3, :4]).shape == (3, 4, 2)
    assert both.n_rows == model.n_rows


def test_every_answer_of_a_noisy_model_is_kept_in_its_order():
    noise = np.random.default_rng(0)
    known = {}
    noisy = Counting(lambda rows: cubic(rows) + noise.normal(size=len(rows)))
    with pytest.warns(fs.NoiseWarning):
        first = fit(noisy, BITS, FITS["exact"][2], random_state=0, answers=known)
    assert sum(map(len, known.values())) == noisy.n_rows > 256 == len(known)
    with pytest.warns(fs.NoiseWarning):
        second = fit(not_asked, BITS, FITS["exact"][2], random_state=0, answers=known)
    assert second.fidelity == first.fidelity and second.fidelity.noise > 0.1
    assert fingerprint(second) == fingerprint(first)


def test_a_model_that_writes_into_its_rows():
    def predict(rows):
        out = rows["a"] + 2.0 * rows["b"]
        rows.loc[:, "a"] = 7
        return out

    frame = pd.DataFrame(BITS[:, :3], columns=["a", "b", "c"])
    known = {}
    fit(predict, frame, {"method": "enumerate", "budget": 20}, answers=known)
    assert {row: answers[0] for row, answers in known.items()} == {
        row: (row[0] + 2.0 * row[1],) for row in np.ndindex(2, 2, 2)
    }


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([1, 2], "answers is a list; give the path"),
        (np.zeros((3, 1)), "answers is a ndarray; give the path"),
        ({(0, 1): 2.0}, "tuples of 2 values; its keys are rows, here tuples of 8 values"),
        ({b"row": 2.0}, "has bytes keys"),
        ({(0,) * 8: "a"}, r"answers\[\(0, 0, 0, 0, 0, 0, 0, 0\)\] is 'a'; give a number"),
        ({(0,) * 8: np.nan}, "is nan; give a number"),
        ({(0,) * 8: [[1.0], [2.0, 3.0]]}, "give a number"),
        ({(0,) * 8: "long" * 100}, r"is 'longlong[long]*\.\.\.[long]*'; give a number"),
        ({(0,) * 8: 1.0, (1,) * 8: (1.0, 2.0)}, "2 numbers for a row, but 1 for others"),
        ({(0,) * 8: (1.0, 2.0)}, "returned 1 numbers a row, but 2 in `answers`"),
    ],
)
def test_answers_that_cannot_be(answers, message):
    with pytest.raises(fs.InputError, match=message):
        fit(cubic, BITS, FITS["exact"][2], answers=answers)


def test_a_mapping_that_fails_loses_nothing():
    class Full(dict):
        def __setitem__(self, row, answers):
            if len(self) == 120:
                raise OSError("no room")
            super().__setitem__(row, answers)

    model = Counting(cubic)
    with pytest.raises(OSError, match="no room") as caught:
        fit(model, BITS, FITS["exact"][2], answers=Full())
    assert len(caught.value.answers) == model.n_rows == 150


# The sparse transform on its own


def sparse(rows):
    signs = 1.0 - 2.0 * rows
    return 2.0 + signs[:, 3] - 0.5 * signs[:, 7] * signs[:, 11]


def same(one, other):
    return np.array_equal(one.frequencies, other.frequencies) and np.array_equal(
        one.coefficients, other.coefficients
    )


@pytest.mark.parametrize("n_bits", [9, 30])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ConnectionError])
def test_a_transform_that_was_stopped_goes_on(n_bits, error):
    table = np.random.default_rng(0).normal(size=n_bits)
    h = lambda rows: np.cos(rows @ table)  # noqa: E731
    options = {"budget": 900, "batch_size": 64}
    stopped = Counting(h, stop=3, error=error)
    with pytest.raises((KeyboardInterrupt, fs.QueryError)) as caught:
        fs.sparse_walsh_hadamard(stopped, n_bits, **options)
    kept = caught.value.answers
    assert sum(map(len, kept.values())) == stopped.n_rows > 100
    whole, rest = Counting(h), Counting(h)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        expected = fs.sparse_walsh_hadamard(whole, n_bits, random_state=kept.random_state, **options)
        resumed = fs.sparse_walsh_hadamard(rest, n_bits, answers=kept, **options)
    assert rest.n_rows == whole.n_rows - stopped.n_rows
    assert same(resumed, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_a_transform_remembers_the_precision_of_its_answers(dtype, tmp_path):
    """In single precision, what is below its rounding is no term."""
    h = lambda rows: (100 * sparse(rows)).astype(dtype)  # noqa: E731
    first, known = Counting(h), {}
    expected = fs.sparse_walsh_hadamard(first, 14, random_state=0, answers=known)
    in_file = fs.sparse_walsh_hadamard(Counting(h), 14, random_state=0, answers=tmp_path / "a.sqlite")
    for answers in (known, tmp_path / "a.sqlite"):
        again = fs.sparse_walsh_hadamard(not_asked, 14, random_state=0, answers=answers)
        assert same(again, expected) and same(in_file, expected)
    assert np.array(list(known.values())).dtype == dtype
