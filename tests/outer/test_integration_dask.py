"""Dask on a local cluster says what one process says, also when a worker dies."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from hypothesis import given, settings
from sklearn.ensemble import RandomForestRegressor

import fouriershap as fs
from engines import IDS, Example, check_same, examples, make_explainer, nothing_left_running
from fouriershap.integrations import dask as engine

pytestmark = pytest.mark.xdist_group("dask")  # one cluster


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with nothing_left_running():
        local = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
        with LocalCluster(processes=True, **local) as cluster, Client(cluster) as client:
            yield client


@settings(max_examples=10, deadline=None)
@given(example=examples())
def test_a_cluster_says_what_one_process_says(client: Client, example: Example) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ddf = dd.from_map(lambda i: example.parts[i], range(len(example.parts)), meta=example.rows[:0])
        answer = engine.explain(ddf, example.given(Path(folder)), **example.options)
        expected = example.single_process()
        found = answer.compute()
        check_same(found, expected)
        pd.testing.assert_series_equal(answer.dtypes.drop(IDS), expected.dtypes.drop(IDS))
        pd.testing.assert_series_equal(answer.dtypes[IDS], ddf.dtypes[IDS])
        pd.testing.assert_index_equal(found.index, expected.index)


def test_divisions_are_kept_and_ids_stay_what_they_are() -> None:
    explainer, X = make_explainer("xgboost")
    rows = X.assign(
        when=pd.Timestamp("2026-01-01"), kind=pd.Categorical(["x"] * len(X), categories=["y", "x"])
    )
    ddf = dd.from_pandas(rows, npartitions=4)
    answer = engine.explain(ddf, explainer, ids=["when", "kind"])
    assert answer.divisions == ddf.divisions
    found = answer.compute(scheduler="synchronous")
    pd.testing.assert_frame_equal(found, next(explainer.explain_batches([rows], ids=["when", "kind"])))


def test_the_graph_holds_an_explainer_once() -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 6)), columns=list("abcdef"))
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, X["a"] * X["b"])
    explainer = fs.TreeExplainer(model, X)
    sizes = []
    for npartitions in (1, 20):
        answer = engine.explain(dd.from_pandas(X, npartitions=npartitions), explainer)
        sizes.append(len(cloudpickle.dumps(answer.optimize().__dask_graph__())))
    assert sizes[1] < 1.5 * sizes[0]


def die_once(marker: Path) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """A step that kills its process when it first meets row 500, as an operator or the kernel might."""

    def step(partition: pd.DataFrame) -> pd.DataFrame:
        if (partition["key"] == 500).any() and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return partition

    return step


def worker_ids(client: Client) -> set[str]:
    """Not their addresses: another may begin at the one of a worker that died."""
    return {worker.server_id for worker in client.cluster.scheduler.workers.values()}


@pytest.mark.parametrize("source", ["object", "path"])
def test_a_worker_that_dies_loses_and_doubles_no_row(client: Client, tmp_path: Path, source: str) -> None:
    explainer, X = make_explainer("xgboost")
    rows = pd.concat([X] * 4, ignore_index=True).assign(key=lambda rows: np.arange(len(rows)))
    example = Example(explainer, [rows], source, {"ids": ["key"]})
    workers = worker_ids(client)
    answer = engine.explain(dd.from_pandas(rows, npartitions=12), example.given(tmp_path), ids=["key"])
    marker = tmp_path / "died"
    found = answer.map_partitions(die_once(marker), meta=answer._meta).compute()
    assert marker.exists()
    assert workers - worker_ids(client)  # one of them is gone
    pd.testing.assert_frame_equal(found, example.single_process())


def bad_calls() -> list[tuple[Any, Any, dict[str, Any], str]]:
    explainer, X = make_explainer("xgboost")
    ddf = dd.from_pandas(X, npartitions=2)
    unknown = ddf.assign(colour=ddf["colour"].cat.as_unknown())
    return [
        (X, explainer, {}, "ddf is a DataFrame; give a Dask data frame"),
        (ddf, "X", {}, "does not exist"),
        (ddf, 3, {}, "explainer is a int"),
        (ddf, explainer, {"layout": "rows"}, "layout is 'rows'"),
        (ddf, explainer, {"ids": ["key"]}, "no column 'key'"),
        (ddf, explainer, {"n_jobs": 0}, "n_jobs is 0"),
        (ddf.drop(columns="b"), explainer, {}, "lacks the column 'b'"),
        (ddf.assign(z=1), explainer, {}, "'z', which the model does not know"),
        (unknown, explainer, {}, "'colour' whose categories are unknown"),
    ]


@pytest.mark.parametrize(("ddf", "explainer", "options", "message"), bad_calls())
def test_what_is_wrong_is_said_before_anything_runs(
    ddf: Any, explainer: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((fs.InputError, FileNotFoundError), match=message):
        engine.explain(ddf, explainer, **options)
