"""SHAP values of the rows of a Dask data frame."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from fouriershap import Explainer, InputError
from fouriershap._base.messages import truncated_repr
from fouriershap.integrations._distribute import Job, check_frame, import_engine, make_job
from fouriershap.integrations._parts import Part, explain_part, explain_parts


def explain(
    ddf: Any,
    explainer: Explainer | str | os.PathLike[str],
    *,
    ids: Sequence[str] | None = None,
    layout: str = "columns",
    top_k: int = 3,
    n_jobs: int = 1,
) -> Any:
    """Explain the rows of a Dask data frame, lazily, partition by partition.

    Parameters
    ----------
    ddf : dask.dataframe.DataFrame
        Features, found by name, and ids.
    explainer : Explainer or path
        A .fshap file on storage that client and workers share is opened once per worker process, and the
        processes of one machine share its memory. An explainer is compiled and sent once to each worker.
    ids, layout, top_k
        As in `Explainer.explain_batches`.
    n_jobs : int
        Threads per partition. One, since Dask runs a partition per core.

    Returns
    -------
    dask.dataframe.DataFrame
        With the index, divisions and ids of ``ddf``.

    Raises
    ------
    InputError
        An argument is wrong, or columns of ``ddf`` are missing or unknown to the model.

    Examples
    --------
    >>> import dask.dataframe as dd, fouriershap as fs, pandas as pd
    >>> from fouriershap.integrations import dask
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = pd.DataFrame({"age": [20, 40, 60, 80], "height": [1.5, 1.9, 1.6, 1.8]})
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, [1.0, 2.0, 3.0, 5.0])
    >>> rows = dd.from_pandas(X.assign(name=["Ann", "Bob", "Eve", "Kim"]), npartitions=2)
    >>> reasons = dask.explain(rows, fs.TreeExplainer(model, X), ids=["name"], layout="top_k", top_k=1)
    >>> reasons.compute(scheduler="synchronous")
      name feature_1 value_1  contribution_1  base_value
    0  Ann       age      20           -1.75        2.75
    1  Bob       age      40           -0.75        2.75
    2  Eve       age      60            0.25        2.75
    3  Kim       age      80            2.25        2.75
    """
    dask = import_engine("dask")
    check_frame(
        ddf, "ddf", "map_partitions", "a Dask data frame, as of `dd.from_pandas(rows, npartitions=8)`"
    )
    job = make_job(explainer, ids, layout, top_k, n_jobs)
    meta = next(job.explain([ddf._meta]))
    _check_categories(ddf, job.ids)
    return ddf.map_partitions(_explain_partition, _sent(job, dask), meta=meta, transform_divisions=False)


def explain_files(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    explainer: Explainer | str | os.PathLike[str],
    *,
    ids: Sequence[str] | None = None,
    layout: str = "columns",
    top_k: int = 3,
    n_jobs: int = 1,
) -> int:
    """Explain parquet files on the workers of Dask, which read and write them batch by batch.

    Rows do not become pandas frames: Dask distributes the work, and repeats what a lost worker has left. It runs at
    once, on the open client or else on threads of this process, and returns when everything is written.

    Parameters
    ----------
    source : path
        A parquet file, or a folder of them, which client and workers reach under this path. Columns are features,
        found by name, and ids.
    target : path
        A new or empty folder, which they reach as well. The names of its files keep the order of the rows.
    explainer, ids, layout, top_k, n_jobs
        As in `explain`.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InputError
        An argument is wrong, or columns of a file are missing or unknown to the model.

    Examples
    --------
    ::

        from fouriershap.integrations import dask

        dask.explain_files("/shared/rows", "/shared/reasons", "/shared/model.fshap", ids=["customer"])
    """
    dask = import_engine("dask")

    def send(job: Job, parts: list[Part]) -> Iterable[int]:
        sent, work = _sent(job, dask), dask.delayed(explain_part, pure=False)
        done: Iterable[int] = dask.compute(*(work(sent, part) for part in parts))
        return done

    return explain_parts(make_job(explainer, ids, layout, top_k, n_jobs), source, target, "dask", send)


def _sent(job: Job, dask: Any) -> Any:
    """Make an object a value of the graph: each worker gets it once, not with every task."""
    return dask.delayed(job, traverse=False) if isinstance(job.source, Explainer) else job


def _explain_partition(partition: Any, job: Job) -> Any:
    return next(job.explain([partition]))


def _check_categories(ddf: Any, ids: tuple[str, ...]) -> None:
    """Raise if categories are unknown: their codes may differ between partitions."""
    for name in ddf.columns:
        if name not in ids and ddf[name].dtype == "category" and not ddf[name].cat.known:
            raise InputError(
                f"ddf has a column {truncated_repr(name)} whose categories are unknown, so that their codes may differ "
                f"between partitions. Give `ddf.categorize([{truncated_repr(name)}])`, or text."
            )
