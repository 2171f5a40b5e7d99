"""Answers in a Parquet file: what it holds, what it takes back, and what it refuses."""

from __future__ import annotations

import functools
import pickle
import stat
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fouriershap as fs
from asking_models import Counting, fingerprint, not_asked

BITS = np.random.default_rng(0).integers(0, 2, size=(60, 6))
OPTIONS = {"method": "exact", "budget": 100, "batch_size": 10}


def total(rows):
    return rows[:, 0] * rows[:, 1] + 2.0 * rows[:, 2] - rows[:, 5]


@functools.cache
def n_asked():
    """Rows that a fit asks which knows nothing yet: all 64, and some of them again."""
    return fs.BlackBoxExplainer(total, BITS, n_jobs=1, **OPTIONS).fidelity.n_queries


def fit(model, path, data=BITS, **more):
    return fs.BlackBoxExplainer(model, data, n_jobs=1, answers=path, **{**OPTIONS, **more})


def mixed_frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.choice([0.5, 1.25, np.nan], 50),
            "colour": pd.Categorical(rng.choice(["rot", "grün", None], 50)),
            "big": rng.choice([2**60 + 1, 7], 50),
            "on": rng.choice([True, False], 50),
            "far": rng.choice([np.inf, -1.0], 50),
        }
    )


def about_frame(rows):
    colour = np.array([value == "grün" for value in rows["colour"].to_list()])
    size = np.array([-1.0 if pd.isna(value) else value for value in rows["size"].to_list()])
    return np.stack([size * colour, 1.0 * np.asarray(rows["on"])], axis=1)


def as_objects(frame):
    return frame.astype(object).to_numpy()


@pytest.mark.parametrize("made", ["pandas", "nullable", "polars", "objects"])
def test_a_file_says_what_the_model_saw_and_saves_asking_again(made, tmp_path):
    frame = mixed_frame()
    data = {
        "pandas": lambda: frame,
        "nullable": lambda: frame.convert_dtypes(),
        "polars": lambda: pl.from_pandas(frame),
        "objects": lambda: as_objects(frame),
    }[made]()
    function = about_frame
    if made == "objects":
        function = lambda rows: about_frame(pd.DataFrame(rows, columns=frame.columns))  # noqa: E731
    path = tmp_path / "run.parquet"
    model = Counting(function)
    explainer = fit(model, path, data, budget=200)
    n_rows = 3 * 3 * 2 * 2 * 2
    assert explainer.fidelity.n_queries == model.n_rows == explainer.n_asked > n_rows
    assert [p.name for p in tmp_path.iterdir()] == ["run.parquet"]

    read = pd.read_parquet(path)
    names = [f"Feature {i}" for i in range(5)] if made == "objects" else list(frame.columns)
    assert list(read.columns) == [*names, "answer_0", "answer_1"] and len(read) == model.n_rows
    assert set(read[names[0]].dropna()) == {0.5, 1.25} and read[names[0]].isna().sum() >= n_rows // 3
    assert set(read[names[1]].dropna()) == {"rot", "grün"} and read[names[1]].isna().sum() >= n_rows // 3
    assert set(read[names[2]]) == {2**60 + 1, 7} and set(read[names[3]]) == {True, False}
    assert set(read[names[4]]) == {np.inf, -1.0}
    rows = read[names].set_axis(frame.columns, axis=1)
    np.testing.assert_array_equal(about_frame(rows), read[["answer_0", "answer_1"]])

    again = fit(not_asked, path, data, budget=200)
    assert again.n_asked == 0 and again.fidelity == explainer.fidelity
    assert fingerprint(again) == fingerprint(explainer)


def test_columns_in_another_order_are_the_same_rows(tmp_path):
    frame = mixed_frame()
    first = Counting(about_frame)
    fit(first, tmp_path / "run.parquet", frame, budget=200)
    turned = frame[frame.columns[::-1]]
    model = Counting(about_frame)
    fit(model, tmp_path / "run.parquet", turned, budget=200)
    assert model.n_rows <= first.n_rows - 72  # others may be asked twice, but none for the first time


def test_unused_rows_are_kept_and_more_are_added(tmp_path):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(60, 3))
    function = lambda rows: rows[:, 0] + rows[:, 1]  # noqa: E731
    options = {"method": "trees", "min_fidelity": -9, "batch_size": 200}
    path = tmp_path / "run.parquet"
    sizes = []
    for budget, seed in ((300, 0), (400, 0), (300, 1)):
        model = Counting(function)
        explainer = fit(model, path, data, budget=budget, random_state=seed, **options)
        known = fs.BlackBoxExplainer(function, data, n_jobs=1, budget=budget, random_state=seed, **options)
        assert fingerprint(explainer) == fingerprint(known)
        sizes.append(model.n_rows)
    assert sizes[0] == 300 and sizes[1] < 400 and sizes[2] <= 300
    assert len(pd.read_parquet(path)) == sum(sizes)


def test_without_a_random_state_the_file_has_one(tmp_path):
    data = np.random.default_rng(0).normal(size=(60, 3))
    options = {"method": "trees", "budget": 300, "min_fidelity": -9, "batch_size": 50}
    function = lambda rows: rows[:, 0] + rows[:, 1]  # noqa: E731
    model = Counting(function, stop=2)
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(model, tmp_path / "run.parquet", data, **options)
    assert caught.value.answers == str(tmp_path / "run.parquet")
    assert "100 answers so far are kept in" in caught.value.__notes__[0]
    assert len(pd.read_parquet(tmp_path / "run.parquet")) == 100  # folded in, and nothing beside it
    assert [p.name for p in tmp_path.iterdir()] == ["run.parquet"]
    rest = Counting(function)
    explainer = fit(rest, caught.value.answers, data, **options)
    assert rest.n_rows == 200 and explainer.fidelity.n_queries == 300
    again = fit(not_asked, tmp_path / "run.parquet", data, **options)
    assert fingerprint(again) == fingerprint(explainer)


def test_an_error_of_the_model_names_the_file(tmp_path):
    model = Counting(total, stop=2, error=ConnectionError)
    with pytest.raises(fs.QueryError, match=r"20 answers so far are kept in .*run\.parquet") as caught:
        fit(model, tmp_path / "run.parquet")
    assert caught.value.answers == str(tmp_path / "run.parquet")
    assert sum(map(len, caught.value.rows)) == 20
    rest = Counting(total)
    fs.Explainer(rest, BITS, answers=caught.value.answers, n_jobs=1, **OPTIONS)
    assert rest.n_rows == n_asked() - 20


def test_repeated_answers_of_a_noisy_model(tmp_path):
    noise = np.random.default_rng(0)
    with pytest.warns(fs.NoiseWarning):
        first = fit(
            lambda rows: total(rows) + noise.normal(size=len(rows)), tmp_path / "run.parquet", random_state=0
        )
    with pytest.warns(fs.NoiseWarning):
        again = fit(not_asked, tmp_path / "run.parquet", random_state=0)
    assert again.fidelity == first.fidelity and fingerprint(again) == fingerprint(first)


def test_what_is_asked_later_goes_into_the_file(tmp_path):
    path = tmp_path / "run.parquet"
    model = Counting(total)
    explainer = fit(model, path)
    before = model.n_rows
    explainer.gap(BITS[:3])
    explainer.shap_values(BITS[:2] * 1.0, refine=1)
    assert model.n_rows == before  # every row is known
    twice = np.random.default_rng(0).normal(size=(60, 6))
    trees = fs.BlackBoxExplainer(
        model,
        twice[:5],
        data=twice,
        method="trees",
        budget=300,
        min_fidelity=-9,
        n_jobs=1,
        answers=tmp_path / "b.parquet",
    )
    before = model.n_rows
    new = np.random.default_rng(9).normal(size=(4, 6))
    gap = trees.gap(new)
    asked = model.n_rows - before
    assert asked >= 4 and len(pd.read_parquet(tmp_path / "b.parquet")) == 300 + asked
    np.testing.assert_array_equal(trees.gap(new), gap)
    assert model.n_rows == before + asked


def test_answers_from_elsewhere_are_taken(tmp_path):
    """A file that pandas wrote, with categories and without our seed."""
    frame = pd.DataFrame({"a": ["x", "y"] * 10, "b": [0, 0, 1, 1] * 5})
    own = frame.drop_duplicates().assign(answer=[1.0, 2.0, 3.0, 4.0])
    own["a"] = own["a"].astype("category")
    own.to_parquet(tmp_path / "own.parquet")
    explainer = fit(not_asked, tmp_path / "own.parquet", frame, budget=4)
    np.testing.assert_allclose(explainer.predict(frame[:4]), [1, 2, 3, 4])


def test_whole_numbers_then_fractions_in_a_column(tmp_path):
    path = tmp_path / "run.parquet"
    counts = np.random.default_rng(0).integers(0, 2, size=(20, 2))
    fit(lambda rows: rows.sum(axis=1), path, counts, budget=4)
    assert pq.read_schema(path).field("Feature 0").type == pa.int64()
    fit(lambda rows: rows.sum(axis=1), path, counts + 0.5, budget=4)
    read = pd.read_parquet(path)
    assert set(read["Feature 0"]) == {0.0, 1.0, 0.5, 1.5} and set(read["answer"]) == {0.0, 1.0, 2.0, 3.0}
    for data in (counts, counts + 0.5, counts.astype(bool)):
        fit(not_asked, path, data, budget=4)


def test_a_file_that_cannot_be_written_in_the_end_costs_nothing(tmp_path):
    """The fit is done and the answers are in the journal: that is no reason to throw either away."""
    path = tmp_path / "run.parquet"

    def predict(rows):
        path.write_text("somebody else has written here")
        return total(rows)

    with pytest.warns(fs.FourierShapWarning, match=r"The answers are safe in .*run\.parquet\.journal"):
        explainer = fit(predict, path)
    assert explainer.fidelity.n_queries == n_asked()
    path.unlink()
    again = fit(not_asked, path)
    assert fingerprint(again) == fingerprint(explainer) and len(pd.read_parquet(path)) == n_asked()


@pytest.mark.parametrize("kept", ["file", "dict", None])
def test_an_explainer_can_be_copied_and_still_asks(kept, tmp_path):
    answers = {"file": tmp_path / "run.parquet", "dict": {}, None: None}[kept]
    explainer = fit(total, answers)
    other = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(other.gap(BITS[:3]), explainer.gap(BITS[:3]))
    assert other.n_asked == explainer.n_asked


# What is refused


def good_file(path, data=BITS, function=total):
    fit(function, path, data, random_state=0)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda b: b[: len(b) // 2], fs.FileFormatError, "no Parquet file, or damaged"),
        (lambda b: b[:-1], fs.FileFormatError, "no Parquet file, or damaged"),
        (lambda b: b"", fs.FileFormatError, "no Parquet file, or damaged"),
        (lambda b: b"a,b\n1,2\n", fs.FileFormatError, "no Parquet file, or damaged"),
    ],
)
def test_a_damaged_file_is_an_error_and_left_alone(spoil, error, message, tmp_path):
    path = tmp_path / "run.parquet"
    spoiled = spoil(good_file(path))
    path.write_bytes(spoiled)
    model = Counting(total)
    with pytest.raises(error, match=message):
        fit(model, path)
    assert not model.calls and path.read_bytes() == spoiled
    assert [p.name for p in tmp_path.iterdir()] == ["run.parquet"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda f: f.rename(columns={"Feature 1": "age"}),
            fs.InputError,
            "about other data: it has no column 'Feature 1'",
        ),
        (lambda f: f.assign(when=1), fs.InputError, r"has the columns \['answer', 'when'\]"),
        (lambda f: f.drop(columns="answer"), fs.InputError, "has the columns"),
        (lambda f: f.rename(columns={"answer": "answer_1"}), fs.InputError, "has the columns"),
        (lambda f: f.assign(answer=np.nan), fs.FileFormatError, "no finite numbers"),
        (lambda f: f.assign(answer=np.inf), fs.FileFormatError, "no finite numbers"),
        (lambda f: f.assign(answer="a"), fs.FileFormatError, "no finite numbers"),
        (
            lambda f: f.assign(answer_0=1.0, answer_1=2.0).drop(columns="answer")[:3],
            fs.QueryError,
            r"returned 1 numbers a row, but 2 in .*run\.parquet",
        ),
    ],
)
def test_a_file_of_other_answers_is_an_error_and_left_alone(change, error, message, tmp_path):
    path = tmp_path / "run.parquet"
    good_file(path)
    change(pd.read_parquet(path)).to_parquet(path)
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        fit(total, path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["run.parquet"]


def test_a_file_of_a_newer_version(tmp_path):
    path = tmp_path / "run.parquet"
    good_file(path)
    table = pq.read_table(path)
    newer = table.replace_schema_metadata({b"fouriershap_answers": b'{"version": 2}'})
    pq.write_table(newer, path)
    with pytest.raises(fs.FileFormatError, match="has version 2; this fouriershap reads up to version 1"):
        fit(total, path)


@pytest.mark.parametrize(
    "metadata", [b"not json", b"[1, 2]", b'{"random_state": "x", "journal": 3}', b"[" * 100_000]
)
def test_metadata_that_say_nothing(metadata, tmp_path):
    path = tmp_path / "run.parquet"
    good_file(path)
    pq.write_table(pq.read_table(path).replace_schema_metadata({b"fouriershap_answers": metadata}), path)
    if metadata.startswith(b"{"):
        fit(not_asked, path, random_state=0)
    else:
        with pytest.raises(fs.FileFormatError, match="damaged"):
            fit(total, path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("run.csv", r"the path '.*run\.csv'; give one that ends in \.parquet"),
        ("gone/run.parquet", "in a folder that does not exist"),
        ("folder.parquet", "a folder; give that of a file"),
    ],
)
def test_paths_that_cannot_be(path, message, tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    model = Counting(total)
    with pytest.raises(fs.InputError, match=message):
        fit(model, tmp_path / path)
    assert not model.calls


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame({"answer": [0, 1], "b": [0, 1]}), "the data have a column 'answer'"),
        (pd.DataFrame({"answer_3": [0, 1], "b": [0, 1]}), "the data have a column 'answer_3'"),
        (np.array([[1, "a"], ["1", "b"]], dtype=object), "'Feature 0' has int and str among its labels"),
        (np.array([[(1, 2), "a"], [(3, 4), "b"]], dtype=object), "'Feature 0' has a tuple among"),
    ],
)
def test_data_that_a_file_cannot_hold_but_a_dict_can(data, message, tmp_path):
    model = Counting(lambda rows: np.ones(len(rows)))
    with pytest.raises(fs.InputError, match=message):
        fit(model, tmp_path / "run.parquet", data, budget=4)
    assert not model.calls
    known = {}
    fit(model, known, data, budget=4)
    assert len(known) == 4


def test_pyarrow_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(fs.MissingDependencyError, match="pip install pyarrow"):
        fit(total, tmp_path / "run.parquet")


def test_permissions_and_links_stay(tmp_path):
    real, link = tmp_path / "real", tmp_path / "run.parquet"
    real.mkdir()
    link.symlink_to(real / "kept.parquet")
    seen = []

    def predict(rows):
        seen.append(stat.S_IMODE((real / "kept.parquet.journal").stat().st_mode))
        return total(rows)

    with pytest.raises(fs.QueryError):
        fit(Counting(total, stop=2, error=ConnectionError), link)
    (real / "kept.parquet").chmod(0o600)
    fit(predict, link)
    assert link.is_symlink() and len(pd.read_parquet(real / "kept.parquet")) == n_asked()
    assert set(seen) == {0o600}  # nobody else may read the journal either
