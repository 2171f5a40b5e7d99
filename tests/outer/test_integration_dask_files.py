"""Files explained by the workers of Dask themselves: every row once, in order, also when a worker dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

import fouriershap as fs
from engine_files import check_bad_values, check_death, check_refusals, check_workers
from engines import nothing_left_running
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
    with dask.config.set({} if scheduler == "client" else {"scheduler": scheduler}):
        check_workers(engine.explain_files, tmp_path, given, monkeypatch)


@pytest.mark.parametrize("when", ["in the middle", "at the end"])
def test_a_worker_that_dies_loses_and_doubles_no_row(
    client: Client, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_death(engine.explain_files, engine, tmp_path, when, monkeypatch)


def test_what_is_wrong_is_said_before_anything_is_written(tmp_path: Path) -> None:
    check_refusals(engine.explain_files, tmp_path)


def test_errors_of_workers_name_the_file(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_bad_values(engine.explain_files, tmp_path, fs.InputError, monkeypatch)
