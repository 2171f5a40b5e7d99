"""Files explained by the workers of Dask themselves: every row once, in order, also when a worker dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

import fouriershap as fs
from engine_files import answer_of, check_answer, write_rows
from engines import nothing_left_running
from fouriershap.integrations import _parts
from fouriershap.integrations import dask as engine

pytestmark = pytest.mark.xdist_group("dask")  # one cluster


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with nothing_left_running():
        local = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
        with LocalCluster(processes=True, **local) as cluster, Client(cluster) as client:
            yield client


@pytest.mark.parametrize("given", ["object", "path"])
@pytest.mark.parametrize("scheduler", ["client", "threads", "synchronous"])
def test_workers_say_what_one_process_says(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, scheduler: str
) -> None:
    monkeypatch.setattr(_parts, "_PART_ROWS", 20)
    explainer, rows = write_rows(tmp_path / "rows", (45, 30), group_rows=10)
    explainer.save(tmp_path / "e.fshap")
    source = explainer if given == "object" else tmp_path / "e.fshap"
    options = {"out": "top_k", "top_k": 2}
    with dask.config.set({} if scheduler == "client" else {"scheduler": scheduler}):
        n_rows = engine.explain_files(tmp_path / "rows", tmp_path / "answer", source, ids=["key"], **options)
    assert n_rows == len(rows)
    assert len(list((tmp_path / "answer").iterdir())) == 5
    check_answer(answer_of(tmp_path / "answer"), explainer, rows, **options)


def test_a_worker_that_dies_loses_and_doubles_no_row(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, rows = write_rows(tmp_path / "rows", (45, 30), group_rows=10)
    explainer.save(tmp_path / "e.fshap")
    once, work = tmp_path / "killed", engine.explain_part

    def killed_once(job: Any, part: Any) -> int:
        n_rows = work(job, part)
        try:
            once.touch(exist_ok=False)
        except FileExistsError:
            return n_rows
        os.kill(os.getpid(), signal.SIGKILL)
        return n_rows

    monkeypatch.setattr(engine, "explain_part", killed_once)
    paths = (tmp_path / "rows", tmp_path / "answer", tmp_path / "e.fshap")
    assert engine.explain_files(*paths, ids=["key"]) == len(rows)
    assert once.exists()
    check_answer(answer_of(tmp_path / "answer"), explainer, rows)


def test_what_is_wrong_is_said_before_anything_is_written(tmp_path: Path) -> None:
    explainer, _ = write_rows(tmp_path / "rows", (5,), group_rows=10)
    target = tmp_path / "answer"
    with pytest.raises(fs.InputError, match=r"0\.parquet: batch 0: the batch has the column 'key'"):
        engine.explain_files(tmp_path / "rows", target, explainer)
    with pytest.raises(fs.InputError, match=r"source .*does not exist"):
        engine.explain_files(tmp_path / "nothing", target, explainer, ids=["key"])
    with pytest.raises(fs.InputError, match="out is 'rows'"):
        engine.explain_files(tmp_path / "rows", target, explainer, ids=["key"], out="rows")
    assert not target.exists()
