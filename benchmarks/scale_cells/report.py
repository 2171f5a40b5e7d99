"""The results of `scale.py` as a page, and what they say about a larger job."""

from __future__ import annotations

from typing import Any

from _cells import Cells
from scale_cells import inputs

LARGE_ROWS, LARGE_CORES = 10**9, 100
_MB = 1e6
_NAMES = {"command-line": "the command line", "dask": "Dask", "spark": "Spark"}
_NAMES |= {"spark-files": "Spark's workers on files", "dask-files": "Dask's workers on files"}
_NAMES |= {"dask-kept": "Dask that keeps memory"}


def extrapolate(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """10^9 rows on 100 cores, from the run with the most workers of each engine."""
    found = []
    for engine in dict.fromkeys(run["engine"] for run in runs):
        last = max((run for run in runs if run["engine"] == engine), key=lambda run: run["workers"])
        speed = last["rows_per_second"] / last["workers"] * LARGE_CORES
        seconds = LARGE_ROWS / speed
        found.append(
            {
                "engine": engine,
                "rows_per_second_and_worker": last["rows_per_second"] / last["workers"],
                "seconds": seconds,
                "core_hours": seconds * LARGE_CORES / 3600,
                "read_bytes_per_second": last["bytes_per_row"]["read"] * speed,
                "write_bytes_per_second": last["bytes_per_row"]["written"] * speed,
                "written_bytes": last["bytes_per_row"]["written"] * LARGE_ROWS,
            }
        )
    return found


def gather(cells: Cells) -> dict[str, Any]:
    """The cells as one: runs, what they add up to, and what was measured beside them."""
    runs = [cell for name, cell in cells.found.items() if "/" in name]
    explained = [run for run in runs if run["work"] == "explain"]
    return {
        "rows_asked": max(run["rows"] for run in runs),
        "runs": explained,
        "null": {(run["engine"], run["workers"]): run for run in runs if run["work"] == "null"},
        "extrapolation": extrapolate(explained),
    } | {name: cells.found[name] for name in ("start", "memory", "shares") if name in cells.found}


def page(cells: Cells) -> str:
    """The page, with machine, versions and commit above it."""
    head = f"# Beyond one process\n\nWritten by `benchmarks/scale.py`. {cells.told()}\n\n"
    return head + markdown(gather(cells))


def markdown(results: dict[str, Any]) -> str:
    parts = [_setting(results), _speed(results), _against_one(results), _shares(results), _start(results)]
    parts += [_memory(results), _extrapolation(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(results: dict[str, Any]) -> str:
    """The table of speeds and one line on 10^9 rows, for the documentation."""
    engines = ", ".join(
        f"{found['seconds'] / 60:.1f} min by {_NAMES[found['engine']]}" for found in results["extrapolation"]
    )
    return (
        f"{inputs.MODEL}, {inputs.BACKGROUND_ROWS:,} background rows, {results['rows_asked']:,} rows of 30 columns "
        f"from parquet to parquet:\n\n{_speed_table(results)}\n\n{LARGE_ROWS:,} rows on {LARGE_CORES} cores would "
        f"take {engines} if every core is as quick as a worker of two here, and storage keeps up: on paper, not "
        "measured."
    )


def _setting(results: dict[str, Any]) -> str:
    return (
        f"{inputs.MODEL}, background {inputs.BACKGROUND_ROWS:,}. {inputs.DATA}. Parquet in, parquet out (the key, 30 "
        "values and the base value, as doubles), compressed by snappy, without a look for repetitions. A worker is a "
        "thread of the command line, a process with one thread of Dask, a task slot of Spark; `spark-files` and "
        "`dask-files` are `explain_files`, whose rows go through no JVM and no pandas, `dask-kept` Dask with workers "
        "that keep their memory "
        "(its default gives it back at once, and pays for fresh pages). Every answer is checked to hold each key "
        f"once, and its first and last {inputs.GROUP_ROWS:,} rows against one process (largest difference "
        f"{max(run['largest_difference'] for run in results['runs']):.1e}).\n\n"
        f"The file asked for has {results['rows_asked']:,} rows. Where a row of the table says fewer, its "
        "numbers come from a smaller file."
    )


def _against_one(results: dict[str, Any]) -> str:
    """Rows per second and worker against the command line with one, and against what the engine itself allows."""
    one = next(
        (run for run in results["runs"] if run["engine"] == "command-line" and run["workers"] == 1), None
    )
    if one is None:
        return ""
    lines = [
        "| engine | workers | of one process, per worker | by CPU time | CPU us a row | of them JVM "
        "| null job: CPU us a row | null job, of one process | of its null job |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    one_cpu = one["seconds"]["cpu"]["all"] / one["rows"] * 1e6
    for run in results["runs"]:
        share = run["rows_per_second"] / run["workers"] / one["rows_per_second"]
        cpu = {who: seconds / run["rows"] * 1e6 for who, seconds in run["seconds"]["cpu"].items()}
        line = [run["engine"], str(run["workers"]), f"{share:.0%}", f"{one_cpu / cpu['all']:.0%}"]
        line.append(f"{cpu['all']:.2f}")
        line.append(f"{cpu['JVM']:.2f}" if cpu["JVM"] else "")
        null = results["null"].get((run["engine"], run["workers"]))
        if null is not None:
            null_share = null["rows_per_second"] / null["workers"] / one["rows_per_second"]
            line += [f"{null['seconds']['cpu']['all'] / null['rows'] * 1e6:.2f}", f"{null_share:.0%}"]
            line.append(f"{run['rows_per_second'] / null['rows_per_second']:.0%}")
        lines.append("| " + " | ".join(line + [""] * (9 - len(line))) + " |")
    text = (
        "Rows per second and worker, beside the command line with one: by the clock, and by CPU seconds (those of the "
        "command line include its start, of a second or so). A null job reads the same rows, hands them to "
        "Python, takes as many columns of numbers back that are there already, and writes them: what an engine takes "
        "for itself, and what no explainer inside it can be quicker than. CPU seconds are those of all processes of "
        "the engine during the job, and are disturbed less by other work than the clock."
    )
    return f"## Against one process\n\n{text}\n\n" + "\n".join(lines)


def _shares(results: dict[str, Any]) -> str:
    if "shares" not in results:
        return ""
    rows = [f"| {name} | {value:.2f} |" for name, value in results["shares"]["microseconds"].items()]
    text = "One process, one thread, each step by itself; batches of 65,536 rows unless said. CPU microseconds a row."
    return f"## Where the time goes\n\n{text}\n\n" + "\n".join(["| step | us a row |", "|---|--:|", *rows])


def _speed_table(results: dict[str, Any]) -> str:
    lines = [
        "| engine | workers | rows of the file | seconds | rows per second | speed-up | peak memory per worker |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for run in results["runs"]:
        one = next(
            other for other in results["runs"] if (other["engine"], other["workers"]) == (run["engine"], 1)
        )
        smaller = "" if run["rows"] == results["rows_asked"] else " (smaller)"
        peak = f"{run['peak_bytes'].get('worker', 0) / _MB:,.0f} MB"
        if "JVM" in run["peak_bytes"]:
            peak += f" + {run['peak_bytes']['JVM'] / _MB:,.0f} MB JVM"
        lines.append(
            f"| {run['engine']} | {run['workers']} | {run['rows']:,}{smaller} | {run['seconds']['job']:.1f} | "
            f"{run['rows_per_second']:,.0f} | {run['rows_per_second'] / one['rows_per_second']:.2f} | {peak} |"
        )
    return "\n".join(lines)


def _speed(results: dict[str, Any]) -> str:
    note = (
        "Seconds of the command line include its start. Of Dask and Spark they begin with warm workers. Memory is the "
        "largest resident size, shared pages counted in full, sampled ten times a second; the command line is one "
        "process. Spark's JVM is one process for all tasks, and shares the cores with them."
    )
    return f"## Speed\n\n{_speed_table(results)}\n\n{note}"


def _start(results: dict[str, Any]) -> str:
    if "start" not in results:
        return ""
    lines = [f"| {name} | {value:.2f} s |" for name, value in results["start"]["seconds"].items()]
    for run in results["runs"]:
        if "start" in run["seconds"]:
            what = f"{run['engine']}, {run['workers']} workers"
            lines.append(f"| {what}: the cluster or session | {run['seconds']['start']:.2f} s |")
            lines.append(f"| {what}: a first job of few rows | {run['seconds']['first_job']:.2f} s |")
    table = "\n".join(["| | |", "|---|--:|", *lines])
    return (
        "## Start\n\nA fresh worker process, quickest of five: imports, opening the file (its checksum is verified), "
        "the first row. Below it what the engines themselves take.\n\n" + table
    )


def _memory(results: dict[str, Any]) -> str:
    if "memory" not in results:
        return ""
    memory = results["memory"]
    mapped = memory["file mapped"]
    return (
        f"## Shared pages\n\n{memory['processes']} processes have opened one file of {memory['file'] / _MB:.2f} MB and "
        f"explained rows with it. Of the file each has {mapped['Rss'] / _MB:.2f} MB resident, "
        f"{mapped['Pss'] / _MB:.2f} MB in proportion (a page that k processes share counts 1/k), and "
        f"{mapped['Private_Dirty'] / _MB:.2f} MB of its own; all of them together "
        f"{memory['file mapped, all processes'] / _MB:.2f} MB. A whole process, Python and libraries included: "
        f"{memory['process']['Rss'] / _MB:.0f} MB resident, {memory['process']['Pss'] / _MB:.0f} MB in proportion."
    )


def _extrapolation(results: dict[str, Any]) -> str:
    lines = [
        "| engine | rows per second and worker | time | core hours | reads | writes |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {found['engine']} | {found['rows_per_second_and_worker']:,.0f} | {found['seconds'] / 60:.1f} min | "
        f"{found['core_hours']:.1f} | {found['read_bytes_per_second'] / 1e9:.1f} GB/s | "
        f"{found['write_bytes_per_second'] / 1e9:.1f} GB/s, {found['written_bytes'] / 1e9:,.0f} GB in all |"
        for found in results["extrapolation"]
    ]
    return (
        f"## On paper: {LARGE_ROWS:,} rows on {LARGE_CORES} cores\n\nNot measured. Assumed: cores like these; rows "
        "and model like these; every core as quick as a worker of the run with two (so what two workers lose to each "
        "other is in, what hundred lose to a network is not); storage that reads and writes at the rates in the table; "
        "partitions of equal size, many per core; start-up as above, once, and not in the table. The command line "
        f'stands for {LARGE_CORES // 2} machines with two cores and a file each. `layout="top_k"` writes a fraction of '
        "what is counted here.\n\n" + "\n".join(lines)
    )
