"""Parts of parquet files, as workers of any engine take them: shared out, named, explained, and told in errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fouriershap as fs
from engine_files import answer_of, check_answer, names_in, write_file, write_rows
from engines import make_explainer
from fouriershap._base.messages import MOST
from fouriershap.integrations import _parts
from fouriershap.integrations._distribute import make_job


@pytest.mark.parametrize("part_rows", [1, 25, 10**6])
@pytest.mark.parametrize("sizes", [(40,), (1,), (0,), (30, 0, 41)])
def test_parts_hold_every_row_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], part_rows: int
) -> None:
    monkeypatch.setattr(_parts, "_PART_ROWS", part_rows)
    explainer, rows = write_rows(tmp_path / "rows", sizes, group_rows=10)
    (tmp_path / "rows" / "_unfinished.parquet").write_text("not a file of rows")
    target = tmp_path / "answer"
    target.mkdir()
    job = make_job(explainer, ["key"], "columns", 3, 1)
    parts = _parts.plan_parts(tmp_path / "rows", target, "spark")
    _parts.check_parts(job, parts)
    assert all(part.n_rows <= max(part_rows, 10) for part in parts)
    for part in reversed(parts):
        assert _parts.explain_part(job, part) == part.n_rows
    assert _parts.explain_part(job, parts[0]) == parts[0].n_rows  # a task that is repeated
    if sum(sizes):
        check_answer(answer_of(target), explainer, rows)
    else:
        assert answer_of(target).columns[0] == "key" and answer_of(target).empty
    assert {path.suffix for path in target.iterdir()} == {".parquet"}


def test_what_cannot_be_explained_is_said_before_any_work(tmp_path: Path) -> None:
    explainer, _ = write_rows(tmp_path / "rows", (5,), group_rows=10)
    job = make_job(explainer, None, "columns", 3, 1)  # the key is no feature
    with pytest.raises(fs.InputError, match=r"0\.parquet: batch 0: the batch has the column 'key'"):
        _parts.check_parts(job, _parts.plan_parts(tmp_path / "rows", tmp_path / "answer", "spark"))
    for source, message in [("nothing", "does not exist"), (".", r"has no \*\.parquet files")]:
        with pytest.raises(fs.InputError, match=f"source .*{message}.*give a parquet file"):
            _parts.plan_parts(tmp_path / source, tmp_path / "answer", "spark")
    with pytest.raises(fs.InputError, match=r"target .* exists already.*new or empty"):
        _parts.plan_parts(tmp_path / "rows", tmp_path / "rows", "spark")


def test_a_part_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    explainer, _ = write_rows(tmp_path / "rows", (5,), group_rows=10)
    (part,) = _parts.plan_parts(tmp_path / "rows", tmp_path / "answer", "spark")
    (tmp_path / "answer").mkdir()
    with pytest.raises(fs.InputError, match="key"):
        _parts.explain_part(make_job(explainer, None, "columns", 3, 1), part)
    assert not list((tmp_path / "answer").iterdir())


@pytest.mark.parametrize(
    ("part_rows", "places"),
    [(20, [", row groups 0 to 1", ", row group 2"]), (30, [", row groups 0 to 2"])],
)
def test_errors_tell_where_the_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_rows: int, places: list[str]
) -> None:
    monkeypatch.setattr(_parts, "_PART_ROWS", part_rows)
    folder = tmp_path / ("deep" * 30)  # a path of which a message shows both ends
    explainer, rows = write_rows(folder, (30,), group_rows=10)
    write_file(folder / "second.parquet", rows.assign(a="much"), group_rows=10)
    job = make_job(explainer, ["key"], "columns", 3, 1)
    (tmp_path / "answer").mkdir()
    said = []
    for part in _parts.plan_parts(folder, tmp_path / "answer", "dask"):
        try:
            _parts.explain_part(job, part)
        except fs.InputError as error:
            said.append(str(error).partition(": batch 0: X has a column 'a' of type String")[0])
    assert [text[MOST:] for text in said] == places
    assert all(text[:MOST].endswith("deep/second.parquet") and "..." in text[:MOST] for text in said)


def test_an_error_in_a_file_without_row_groups_names_the_file_alone(tmp_path: Path) -> None:
    explainer, rows = make_explainer("several outputs")
    pq.ParquetWriter(tmp_path / "0.parquet", pa.Schema.from_pandas(rows.assign(key=1))).close()
    (part,) = _parts.plan_parts(tmp_path / "0.parquet", tmp_path / "answer", "dask")
    (tmp_path / "answer").mkdir()
    with pytest.raises(fs.InputError, match=r"0\.parquet: batch 0: .*'key'"):
        _parts.explain_part(make_job(explainer, None, "columns", 3, 1), part)


@pytest.mark.parametrize(("n_parts", "last"), [(1, "00000"), (100_000, "99999"), (100_001, "100000")])
def test_names_sort_as_their_parts_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_parts: int, last: str
) -> None:
    write_rows(tmp_path / "rows", (5,), group_rows=10)
    monkeypatch.setattr(_parts, "_share_out", lambda metadata: [((0,), 1)] * n_parts)
    names = [Path(part.target).name for part in _parts.plan_parts(tmp_path / "rows", tmp_path / "a", "dask")]
    assert len(set(names)) == n_parts and names == sorted(names)
    assert names[-1] == f"part-{last}.parquet" and len(names[0]) == len(names[-1])


def test_what_killed_workers_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    explainer, rows = write_rows(tmp_path / "rows", (5, 5), group_rows=10)
    target, job = tmp_path / "answer", make_job(explainer, ["key"], "columns", 3, 1)
    left = [f".part-0000{number}.parquet.0123456789ab.part" for number in (0, 0, 1)]
    left[1] = left[1].replace("0123", "ffff")
    strange = [
        ".part-00002.parquet.0123456789ab.part",  # there is no such part
        ".part-00000.parquet.0123456789.part",
        ".part-00000.parquet.0123456789AB.part",
        ".part-00000.parquet.0123456789ab.part.kept",
        "part-00000.parquet.0123456789ab.part",
        ".part-00000xparquet.0123456789ab.part",
        ".rows.parquet.0123456789ab.part",
    ]

    def send(job: Any, parts: list[_parts.Part]) -> list[int]:
        done = [_parts.explain_part(job, part) for part in parts]
        for name in [*left, *strange]:
            (target / name).write_text("half of it")
        (target / ".part-00001.parquet.ba9876543210.part").mkdir()
        return done

    assert _parts.explain_parts(job, tmp_path / "rows", target, "dask", send) == len(rows)
    kept = ["part-00000.parquet", "part-00001.parquet", ".part-00001.parquet.ba9876543210.part", *strange]
    assert names_in(target) == sorted(kept)
    check_answer(answer_of(target), explainer, rows)


def test_what_others_may_still_write_is_not_removed_when_a_part_fails(tmp_path: Path) -> None:
    explainer, _ = write_rows(tmp_path / "rows", (5,), group_rows=10)
    target, name = tmp_path / "answer", ".part-00000.parquet.0123456789ab.part"

    def send(job: Any, parts: list[_parts.Part]) -> list[int]:
        (target / name).write_text("half of it")
        raise RuntimeError("the cluster is gone")

    job = make_job(explainer, ["key"], "columns", 3, 1)
    with pytest.raises(RuntimeError, match="gone"):
        _parts.explain_parts(job, tmp_path / "rows", target, "dask", send)
    assert names_in(target) == [name]
