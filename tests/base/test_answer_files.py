"""Answers in a SQLite file: what it holds, what it takes back, and what it refuses."""

from __future__ import annotations

import functools
import json
import pickle
import sqlite3
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fouriershap as fs
from asking_models import Counting, fingerprint, not_asked
from fitted_models import explain_fitted

BITS = np.random.default_rng(0).integers(0, 2, size=(60, 6))
OPTIONS = {"method": "enumerate", "budget": 100, "batch_size": 10}


def total(rows):
    return rows[:, 0] * rows[:, 1] + 2.0 * rows[:, 2] - rows[:, 5]


@functools.cache
def n_asked():
    """Rows that a fit asks which knows nothing yet: all 64, and some of them again."""
    return explain_fitted(total, BITS, n_jobs=1, **OPTIONS).fidelity.n_queries


def fit(model, path, data=BITS, **more):
    return explain_fitted(model, data, n_jobs=1, answers=path, **{**OPTIONS, **more})


def change(path, *statements):
    with sqlite3.connect(path) as file:
        for statement in statements:
            file.execute(statement)
    file.close()


def read(path):
    """Names of the columns, rows and answers of a file."""
    file = sqlite3.connect(path)
    found = file.execute('SELECT "row", answer FROM answers ORDER BY id').fetchall()
    (names,) = file.execute("SELECT value FROM about WHERE name = 'columns'").fetchone()
    file.close()
    return json.loads(names), [json.loads(row) for row, _ in found], [json.loads(a) for _, a in found]


def count(path):
    return len(read(path)[1])


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
    path = tmp_path / "run.sqlite"
    model = Counting(function)
    explainer = fit(model, path, data, budget=200)
    n_rows = 3 * 3 * 2 * 2 * 2
    assert explainer.fidelity.n_queries == model.n_rows == explainer.fitted.n_asked > n_rows
    assert [p.name for p in tmp_path.iterdir()] == ["run.sqlite"]

    names, rows, answers = read(path)
    assert names == ([f"Feature {i}" for i in range(5)] if made == "objects" else list(frame.columns))
    assert len(rows) == model.n_rows
    columns = [set(column) for column in zip(*rows, strict=True)]
    assert columns == [
        {0.5, 1.25, None},
        {"rot", "grün", None},
        {2**60 + 1, 7},
        {True, False},
        {np.inf, -1.0},
    ]
    np.testing.assert_array_equal(about_frame(pd.DataFrame(rows, columns=frame.columns)), answers)

    again = fit(not_asked, path, data, budget=200)
    assert again.fitted.n_asked == 0 and again.fidelity == explainer.fidelity
    assert fingerprint(again) == fingerprint(explainer)


def test_columns_in_another_order_are_the_same_rows(tmp_path):
    frame = mixed_frame()
    first = Counting(about_frame)
    fit(first, tmp_path / "run.sqlite", frame, budget=200)
    turned = frame[frame.columns[::-1]]
    model = Counting(about_frame)
    fit(model, tmp_path / "run.sqlite", turned, budget=200)
    assert model.n_rows <= first.n_rows - 72  # others may be asked twice, but none for the first time


def test_unused_rows_are_kept_and_more_are_added(tmp_path):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(60, 3))
    function = lambda rows: rows[:, 0] + rows[:, 1]  # noqa: E731
    options = {"method": "trees", "batch_size": 200}
    path = tmp_path / "run.sqlite"
    sizes = []
    for budget, seed in ((300, 0), (400, 0), (300, 1)):
        model = Counting(function)
        explainer = fit(model, path, data, budget=budget, random_state=seed, **options)
        known = explain_fitted(function, data, n_jobs=1, budget=budget, random_state=seed, **options)
        assert fingerprint(explainer) == fingerprint(known)
        sizes.append(model.n_rows)
    assert sizes[0] == 300 and sizes[1] < 400 and sizes[2] <= 300
    assert count(path) == sum(sizes)


def test_without_a_random_state_the_file_has_one(tmp_path):
    data = np.random.default_rng(0).normal(size=(60, 3))
    options = {"method": "trees", "budget": 300, "batch_size": 50}
    function = lambda rows: rows[:, 0] + rows[:, 1]  # noqa: E731
    model = Counting(function, stop=2)
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(model, tmp_path / "run.sqlite", data, **options)
    assert caught.value.answers == str(tmp_path / "run.sqlite")
    assert "100 answers so far are kept in" in caught.value.__notes__[0]
    assert count(tmp_path / "run.sqlite") == 100
    assert [p.name for p in tmp_path.iterdir()] == ["run.sqlite"]
    rest = Counting(function)
    explainer = fit(rest, caught.value.answers, data, **options)
    assert rest.n_rows == 200 and explainer.fidelity.n_queries == 300
    again = fit(not_asked, tmp_path / "run.sqlite", data, **options)
    assert fingerprint(again) == fingerprint(explainer)


def test_an_error_of_the_model_names_the_file(tmp_path):
    model = Counting(total, stop=2, error=ConnectionError)
    with pytest.raises(fs.QueryError, match=r"20 answers so far are kept in .*run\.sqlite") as caught:
        fit(model, tmp_path / "run.sqlite")
    assert caught.value.answers == str(tmp_path / "run.sqlite")
    assert sum(map(len, caught.value.rows)) == 20
    rest = Counting(total)
    fs.Explainer(rest, BITS, answers=caught.value.answers, n_jobs=1, **OPTIONS)
    assert rest.n_rows == n_asked() - 20


def test_repeated_answers_of_a_noisy_model(tmp_path):
    noise = np.random.default_rng(0)
    with pytest.warns(fs.NoiseWarning):
        first = fit(
            lambda rows: total(rows) + noise.normal(size=len(rows)), tmp_path / "run.sqlite", random_state=0
        )
    with pytest.warns(fs.NoiseWarning):
        again = fit(not_asked, tmp_path / "run.sqlite", random_state=0)
    assert again.fidelity == first.fidelity and fingerprint(again) == fingerprint(first)


def test_whole_numbers_then_fractions_in_a_column(tmp_path):
    path = tmp_path / "run.sqlite"
    counts = np.random.default_rng(0).integers(0, 2, size=(20, 2))
    fit(lambda rows: rows.sum(axis=1), path, counts, budget=4)
    fit(lambda rows: rows.sum(axis=1), path, counts + 0.5, budget=4)
    _, rows, answers = read(path)
    assert {row[0] for row in rows} == {0, 1, 0.5, 1.5} and {a for (a,) in answers} == {0, 1, 2, 3}
    for data in (counts, counts + 0.5, counts.astype(bool)):
        fit(not_asked, path, data, budget=4)


def test_a_file_in_use(tmp_path):
    path = tmp_path / "run.sqlite"
    fit(total, path)
    before = count(path)
    program = (
        "import fouriershap as fs, numpy as np, sys\n"
        "fs.BlackBoxExplainer(lambda r: r[:, 0], np.eye(6), answers=sys.argv[1]).fit()"
    )

    def predict(rows):
        with pytest.raises(fs.InputError, match="is in use by another explainer or process"):
            fit(total, path)
        done = subprocess.run(
            [sys.executable, "-c", program, path], capture_output=True, text=True, check=False
        )
        assert "is in use by another explainer or process" in done.stderr, done.stderr
        return rows @ np.ones(6)

    rows = np.random.default_rng(0).integers(3, 5, size=(60, 6))
    fit(predict, path, rows, batch_size=1000)
    assert count(path) > before
    # In a notebook the first explainer is still there when the next one is made.
    first = fit(total, path)
    second = fit(total, path)
    np.testing.assert_array_equal(first.shap_values(BITS[:2]), second.shap_values(BITS[:2]))


@pytest.mark.parametrize("kept", ["file", "dict", None])
def test_an_explainer_can_be_copied_and_still_asks(kept, tmp_path):
    answers = {"file": tmp_path / "run.sqlite", "dict": {}, None: None}[kept]
    explainer = fit(total, answers)
    other = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(other.shap_values(BITS[:3]), explainer.shap_values(BITS[:3]))
    assert other.fitted.n_asked == explainer.fitted.n_asked


# What is refused


@pytest.mark.parametrize(
    "spoil", [lambda b: b[: len(b) // 2], lambda b: b[:-1], lambda b: b"a,b\n1,2\n" * 100, lambda b: b[:50]]
)
def test_a_damaged_file_is_an_error_and_left_alone(spoil, tmp_path):
    path = tmp_path / "run.sqlite"
    fit(total, path, random_state=0)
    spoiled = spoil(path.read_bytes())
    path.write_bytes(spoiled)
    model = Counting(total)
    with pytest.raises(fs.FileFormatError, match=r"run\.sqlite is not a SQLite file of answers, or damaged"):
        fit(model, path)
    assert not model.calls and path.read_bytes() == spoiled
    assert [p.name for p in tmp_path.iterdir()] == ["run.sqlite"]


def test_an_empty_file_is_a_new_one(tmp_path):
    (tmp_path / "run.sqlite").touch()
    fit(total, tmp_path / "run.sqlite")
    assert count(tmp_path / "run.sqlite") == n_asked()


def about(name, value):
    return f"UPDATE about SET value = '{json.dumps(value)}' WHERE name = '{name}'"


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        (about("columns", ["a", "b"]), fs.InputError, "is about other data, with a column 'a'"),
        (
            about("columns", [f"Feature {i}" for i in (0, 1, 2, 3, 4, 6)]),
            fs.InputError,
            "a column 'Feature 6'",
        ),
        (about("columns", 3), fs.FileFormatError, "damaged"),
        ("UPDATE about SET value = '[' WHERE name = 'columns'", fs.FileFormatError, "damaged"),
        ("DELETE FROM about", fs.FileFormatError, "damaged"),
        ("DROP TABLE about", fs.FileFormatError, "damaged"),
        ("UPDATE answers SET answer = '[NaN]' WHERE id = 3", fs.FileFormatError, "damaged"),
        ("UPDATE answers SET answer = '[\"a\"]' WHERE id = 3", fs.FileFormatError, "damaged"),
        ("UPDATE answers SET answer = '1.0' WHERE id = 3", fs.FileFormatError, "damaged"),
        ("UPDATE answers SET dtype = 'O' WHERE id = 3", fs.FileFormatError, "damaged"),
        ("UPDATE answers SET \"row\" = '[1, 2]' WHERE id = 3", fs.FileFormatError, "damaged"),
        ("UPDATE answers SET \"row\" = '[[], 2, 3, 4, 5, 6]' WHERE id = 3", fs.FileFormatError, "damaged"),
        ("UPDATE answers SET \"row\" = '{}' WHERE id = 3", fs.FileFormatError, "damaged"),
        (
            "UPDATE answers SET answer = '[1.0, 2.0]'",
            fs.QueryError,
            r"1 numbers a row, but 2 in .*run\.sqlite",
        ),
        (
            "PRAGMA user_version = 2",
            fs.FileFormatError,
            "has version 2; this fouriershap reads up to version 1",
        ),
        ("PRAGMA application_id = 7", fs.FileFormatError, "is a SQLite file of something else"),
    ],
)
def test_a_file_of_other_answers_is_an_error_and_left_alone(statement, error, message, tmp_path):
    path = tmp_path / "run.sqlite"
    fit(total, path, random_state=0)
    change(path, statement, "DELETE FROM answers WHERE id > 10")
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        fit(total, path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["run.sqlite"]


@pytest.mark.parametrize(
    ("path", "message"),
    [("gone/run.sqlite", "in a folder that does not exist"), ("folder.sqlite", "is a folder")],
)
def test_paths_that_cannot_be(path, message, tmp_path):
    (tmp_path / "folder.sqlite").mkdir()
    model = Counting(total)
    with pytest.raises(fs.InputError, match=message):
        fit(model, tmp_path / path)
    assert not model.calls


def test_labels_that_a_file_cannot_hold_but_a_dict_can(tmp_path):
    data = np.empty((2, 2), dtype=object)
    data[:] = [[(1, 2), "a"], [(3, 4), "b"]]
    model = Counting(lambda rows: np.ones(len(rows)))
    with pytest.raises(fs.InputError, match="'Feature 0' has a tuple among its labels"):
        fit(model, tmp_path / "run.sqlite", data, budget=4)
    assert not model.calls
    known = {}
    fit(model, known, data, budget=4)
    assert len(known) == 4


def test_labels_of_several_types_in_a_column(tmp_path):
    data = np.array([[1, "a"], ["1", "b"], [2**70, None]], dtype=object)
    explainer = fit(lambda rows: np.array([len(str(row)) for row in rows]), tmp_path / "run.sqlite", data)
    again = fit(not_asked, tmp_path / "run.sqlite", data)
    assert fingerprint(again) == fingerprint(explainer)


def test_permissions_and_links_stay(tmp_path):
    real, link = tmp_path / "real", tmp_path / "run.sqlite"
    real.mkdir()
    link.symlink_to(real / "kept.sqlite")
    seen = []

    def predict(rows):
        seen.extend(stat.S_IMODE(path.stat().st_mode) for path in real.iterdir())
        return total(rows)

    with pytest.raises(fs.QueryError):
        fit(Counting(total, stop=2, error=ConnectionError), link)
    (real / "kept.sqlite").chmod(0o600)
    fit(predict, link)
    assert link.is_symlink() and count(real / "kept.sqlite") == n_asked()
    assert set(seen) == {0o600}  # nobody else may read what SQLite puts beside the file either
