"""SHAP values of the rows of a Ray data set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fouriershap import Explainer
from fouriershap._base.parallel import count_jobs
from fouriershap.integrations._distribute import Job, check_frame, import_engine, make_job


def explain(
    ds: Any,
    explainer: Explainer | str | os.PathLike[str],
    *,
    ids: Sequence[str] | None = None,
    layout: str = "columns",
    top_k: int = 3,
    n_jobs: int = 1,
    **options: Any,
) -> Any:
    """Explain the rows of a Ray data set, lazily, on a pool of actors.

    Parameters
    ----------
    ds : ray.data.Dataset
        Features, found by name, and ids.
    explainer : Explainer or path
        A .fshap file on storage that driver and workers share is opened once per actor, and the actors of one
        machine share its memory. An explainer is compiled and put into the object store.
    ids, layout, top_k
        As in `Explainer.explain_batches`.
    n_jobs : int
        Threads per actor, and the cores that it reserves.
    **options
        Arguments of ``Dataset.map_batches``: ``compute`` for the number of actors, ``batch_size``, ...

    Returns
    -------
    ray.data.Dataset
        Arrow blocks.

    Raises
    ------
    InputError
        An argument is wrong. Wrong columns are errors when the data set is read.

    Examples
    --------
    ::

        from fouriershap.integrations import ray as ray_engine

        reasons = ray_engine.explain(ds, "/shared/model.fshap", ids=["customer"], layout="top_k")
        reasons.write_parquet("/shared/reasons")
    """
    ray = import_engine("ray")
    check_frame(ds, "ds", "map_batches", "a Ray data set, as of `ray.data.from_pandas(rows)`")
    job = make_job(explainer, ids, layout, top_k, n_jobs)
    sent = ray.put(job) if isinstance(job.source, Explainer) else job
    return ds.map_batches(
        _Worker,
        batch_format="pyarrow",
        fn_constructor_args=(sent,),
        **{"num_cpus": count_jobs(n_jobs), "udf_modifying_row_count": False} | options,
    )


class _Worker:
    """An actor's callable. A job in the object store is a reference, and its arrays are not copied."""

    def __init__(self, job: Any) -> None:
        self._job: Job = job if isinstance(job, Job) else import_engine("ray").get(job)

    def __call__(self, table: Any) -> Any:
        return next(self._job.explain([table]))
