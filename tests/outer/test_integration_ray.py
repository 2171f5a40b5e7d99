"""Ray on one machine says what one process says. Few examples: every run starts an actor."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings

import fouriershap as fs
from engines import Example, check_same, examples, make_explainer, nothing_left_running
from fouriershap.integrations import ray as engine

# Read when ray is imported; the second makes Ray local to the machine: every server listens on loopback alone.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
pytestmark = pytest.mark.xdist_group("ray")  # one cluster


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    with nothing_left_running():
        ray.init(
            num_cpus=1,
            include_dashboard=False,
            object_store_memory=100 << 20,
            logging_level="ERROR",
            log_to_driver=False,
        )
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        yield ray
        ray.shutdown()


@settings(max_examples=3, deadline=None)
@given(example=examples(empty_parts=False))
def test_actors_say_what_one_process_says(ray: Any, example: Example) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ds = ray.data.from_arrow([pa.Table.from_pandas(part, preserve_index=False) for part in example.parts])
        answer = engine.explain(ds, example.given(Path(folder)), **example.options)
        found = pd.concat(
            [pa.Table.to_pandas(table) for table in answer.iter_batches(batch_format="pyarrow")]
        )
        check_same(found, example.single_process())


def test_options_go_to_ray_and_pandas_blocks_are_read(ray: Any) -> None:
    explainer, X = make_explainer("xgboost")
    rows = X.assign(key=np.arange(len(X)))
    pool = ray.data.ActorPoolStrategy(size=1)
    answer = engine.explain(ray.data.from_pandas(rows), explainer, ids=["key"], compute=pool, batch_size=64)
    check_same(answer.to_pandas(), next(explainer.explain_batches([rows], ids=["key"])))


def test_what_is_wrong_is_said_before_anything_runs() -> None:
    explainer, X = make_explainer("xgboost")
    with pytest.raises(fs.InputError, match="ds is a DataFrame; give a Ray data set"):
        engine.explain(X, explainer)
