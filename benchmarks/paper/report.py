"""The page results/README.md: every number on it comes from the results, or from the paper where it says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from _common import seconds
from paper import fig2, fig3
from paper.claims import DEPTHS, claims, tree_ratios
from paper.numbers import Results, by_setting, figure2_points, left_out, results_of, summary, table2
from paper.settings import DATASETS, LABELS
from paper.store import ONE_THREAD

# The paper's own numbers, from its appendix. Its figures give curves and no numbers.
TABLE_1 = {
    10: (2.0, 3.9, 5.6, 7.8),
    20: (2.9, 5.8, 8.7, 11.7),
    30: (3.9, 7.5, 11.0, 14.4),
    40: (4.9, 9.6, 14.0, 17.9),
}
TABLE_2_KERNEL = {
    100: (35, 71, 104, 133),
    200: (43, 84, 129, 169),
    300: (52, 107, 161, 212),
    400: (69, 132, 197, 265),
}
TABLE_2_FOURIER = {
    100: (14, 28, 43, 57),
    200: (29, 58, 86, 110),
    300: (40, 79, 119, 159),
    400: (53, 106, 160, 213),
}
TABLE_3 = {
    "entacmaea": {"small": 46, "medium": 22, "large": 31},
    "sgemm": {"small": 599, "medium": 397, "large": 388},
    "gb1": {"small": 477, "medium": 475, "large": 495},
    "avgfp": {"small": 127, "medium": 196, "large": 78},
}
TABLE_4 = {
    "0.02": (4.031, 0.902),
    "0.03": (4.274, 0.934),
    "0.04": (4.530, 0.967),
    "0.1": (5.399, 0.991),
    "1": (19.452, 0.999),
    "2": (34.451, 1.0),
    "10": (160.251, 1.0),
}


def page(results: Results, folder: str) -> str:
    """The whole page; ``folder`` is where the figures are, seen from it."""
    parts = [_head(results), _claims(results), _truth(results)]
    for part, section in (("fig1", _figure_1), ("fig2", _figure_2), ("fig3", _figure_3), ("fig4", _figure_4)):
        parts += [section(results, folder)] if results_of(results, part) else []
    parts += [_figure_5(results, folder)] if results_of(results, "fig5") else []
    parts += [_table_1(results), _table_2(results), _table_3(results), _table_4(results), _left_out(results)]
    return "\n".join(part for part in parts if part)


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    ruler = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, ruler, *lines)) + "\n"


def _head(results: Results) -> str:
    document = next(iter(results.values()))
    machine, settings = document["machine"], document["settings"]
    dates = sorted(cell["date"] for part in results.values() for cell in part["cells"].values())
    total = sum(cell["seconds"] for part in results.values() for cell in part["cells"].values())
    foreign = [part for part, d in results.items() if (d["machine"], d["settings"]) != (machine, settings)]
    others = f". NOT of this machine, these versions or settings: {', '.join(foreign)}" if foreign else ""
    versions = ", ".join(f"{name} {found}" for name, found in machine["versions"].items())
    every = [cell for part in results.values() for cell in part["cells"].values()]
    commits = ", ".join(sorted({cell.get("commit", "unknown") for cell in every}))
    loads = {
        alone: max(
            (c.get("load", 0.0) for part in parts for c in results[part]["cells"].values()), default=0.0
        )
        for alone in (True, False)
        if (parts := [part for part in results if (part in ONE_THREAD) == alone])
    }
    load = " and ".join(
        f"{most:.1f} {'on one thread' if alone else 'on all cores'}" for alone, most in loads.items()
    )
    return (
        f"# The paper, reproduced ({settings['name']} run)\n\n"
        f"{dates[0]} to {dates[-1]}, {total / 60:.0f} minutes; {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['instruction_set']} kernels, no GPU; Python {machine['python']}, {versions}; commit "
        f"{commits}; seed {settings['seed']}. Made by `make paper` from the JSON files beside the figures; settings "
        f"of the run are in each of them{others}. The load of the machine was at most {load}.\n\n"
        "The paper is A. Gorji, A. Amrollahi, A. Krause, *SHAP values via sparse Fourier representation*, NeurIPS "
        "2025. Its models ran on an RTX 4090; here everything runs on the CPU. Targets are standardised. "
        "LinRegSHAP and FastSHAP are written from their papers. "
        "The tree benchmarks of [trees.md](trees.md) hold the other peers of trees: XGBoost's, LightGBM's and "
        "CatBoost's own.\n"
    )


_VERDICTS = {True: "held", False: "**NOT held**", None: "not judged: not all of it was measured"}


def _claims(results: Results) -> str:
    found = claims(results)
    lines = [(claim.text, claim.found, _VERDICTS[claim.held]) for claim in found]
    held = sum(claim.held is True for claim in found)
    return f"## The claims: {held} of {len(found)} held\n\n" + table(("claim", "found here", ""), lines)


def _truth(results: Results) -> str:
    lines = [
        (
            LABELS[name],
            f"{cell['test_r2']:.3f}",
            cell["method"],
            "exact" if cell["ceiling"] == 1 else f"{cell['ceiling']:.5f}",
        )
        for name, cell in results_of(results, "truth").items()
    ]
    header = (
        "model",
        "its R² on test rows",
        "true SHAP values by",
        "R² of truth against truth (the ceiling)",
    )
    return "## Ground truth\n\n" + table(header, lines)


def _picture(folder: str, name: str) -> str:
    return f"![{name}]({folder}/{name}.png)\n"


def _figure_1(results: Results, folder: str) -> str:
    lines = []
    for label, cell in results_of(results, "fig1").items():
        last = cell["points"][-1]
        terms, queries = f"{last['terms']:,}", f"{last['queries']:,}"
        lines.append((label, str(last["k"]), terms, queries, seconds(last["seconds"]), f"{last['r2']:.4f}"))
    header = ("model", "largest k", "terms found", "queries", "time", "R² on the cube")
    return (
        f"## Figure 1: stage 1\n\n{_picture(folder, 'figure1')}\n{table(header, lines)}\n"
        "The paper plots curves without numbers: tree models reach R² = 1 as k grows, networks level off below it, "
        "deeper trees need more terms. Here the transform is the coded one, not the paper's, so its times are not "
        "comparable one to one; the sweep ends once R² is 1.\n"
    )


def _figure_2(results: Results, folder: str) -> str:
    pictures = "\n".join(_picture(folder, name) for name in ("figure2", "figure2-queries"))
    parts = [f"## Figure 2: speed-up against accuracy\n\n{pictures}"]
    settings = results["fig2"]["settings"]
    for name in DATASETS:
        lines = [
            line
            for who, points in figure2_points(results, name).items()
            for line in _method_lines(who, points)
        ]
        header = (
            "method, setting",
            "R²",
            "times faster than KernelSHAP",
            "fewest to most",
            "done once",
            "queries",
        )
        parts.append(f"### {LABELS[name]}\n\n" + table(header, lines))
    parts.append(
        "The paper plots points without numbers and claims 10 to 10,000 times over LinRegSHAP. Medians over the runs "
        "of each setting are given. KernelSHAP at its defaults (ten features kept) is the unit; our times include "
        "compiling the background, not stage 1, as in the paper. 'Done once' is stage 1, or FastSHAP's training; "
        "queries are those asked once, or else per row. Samplers other than KernelSHAP explain "
        f"{settings['sampler_rows']} rows, fewer where these would take more than {settings['sampler_seconds']:g} s. "
        "FastSHAP follows a reduced schedule: one background of "
        f"{settings['fastshap_background']} rows, {settings['fastshap_rows']:,} training rows with "
        f"{settings['fastshap_subsets']} subsets each, at most {settings['fastshap_epochs']} epochs, so its accuracy "
        "here may be below what hours of training give. BlackBoxExplainer asks about hybrids of training rows, the "
        "FourierSHAP series about uniform points as the paper does; on one-hot data that is what separates them.\n"
    )
    return "\n".join(parts)


def _method_lines(who: str, points: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for setting, some in by_setting(points).items():
        found, last = summary(some), some[-1]
        once = seconds(last["once_seconds"]) if "once_seconds" in last else ""
        queries = f"{last['once_queries']:,} once" if "once_queries" in last else _per_row(last)
        span = f"{_times(found['fewest'])} to {_times(found['most'])}"
        terms = f", {last['terms']:,} terms" if "terms" in last else ""
        label = f"{who}{', ' * bool(setting)}{setting}{terms}"
        yield label, f"{found['r2']:.4f}", _times(found["speedup"]), span, once, queries


def _per_row(point: dict[str, Any]) -> str:
    return f"{point['queries'] / point['rows']:,.0f} a row" if point["queries"] else "white box"


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _figure_3(results: Results, folder: str) -> str:
    cells = results_of(results, "fig3")
    ratios, lines = tree_ratios(results), []
    depths = sorted({depth for found in ratios.values() for depth in found})
    for name, found in ratios.items():
        for who in (fig3.OURS, fig3.OURS_THREADS, fig3.SPECTRUM, *fig3.OPTIONAL):
            entries = [_tree_entry(cells.get(f"{name}/{depth}"), who) for depth in depths]
            if any(entries):
                lines.append((f"{name}, {who}", *(entry or "-" for entry in entries)))
        shap = [
            seconds(min(cells[f"{name}/{d}"]["seconds"][fig3.BASE])) if d in found else "-" for d in depths
        ]
        lines.append((f"{name}, TreeSHAP itself", *shap))
    worst = {
        who: min(c["r2"][who] for c in cells.values() if who in c["r2"])
        for c in cells.values()
        for who in c["r2"]
    }
    agreement = ", ".join(f"{who} {r2:.6f}" for who, r2 in worst.items() if who != fig3.BASE)
    least, cold = (_least(tree_ratios(results, which)) for which in ("seconds", "after_others"))
    return (
        f"## Figure 3: trees\n\n{_picture(folder, 'figure3')}\n"
        + table(("times faster than TreeSHAP", *(f"depth {depth}" for depth in depths)), lines)
        + f"\nLowest R² against TreeSHAP: {agreement}.\n\n"
        "The paper's edge fades with depth on the wide data sets (its figure has no numbers; a GPU did the work). Ours "
        f"reads the trees and prunes nothing: at depths 3 to 8 it is never below {least:.1f} times, and in calls right "
        f"after those of another library, when the caches are full of its work, never below {cold:.1f}. One thread "
        "each, where no other number is given; contenders take turns, call after call, and the quickest call of each "
        "counts. Construction is included, but for the pruned spectrum, which is made before the clock starts and left "
        f"out where it has more than {results['fig3']['settings']['tree_terms']:,} terms.\n"
    )


def _least(ratios: dict[str, dict[int, float]]) -> float:
    found = (r for of_depth in ratios.values() for depth, r in of_depth.items() if depth in DEPTHS)
    return min(found, default=float("nan"))


def _tree_entry(cell: dict[str, Any] | None, who: str) -> str:
    if cell is None or who not in cell["seconds"]:
        return ""
    both = list(zip(cell["seconds"][fig3.BASE], cell["seconds"][who], strict=False))
    return _times(sum(base / own for base, own in both) / len(both))


def _figure_4(results: Results, folder: str) -> str:
    cells = results_of(results, "fig4")
    lines = [
        (label.replace("/", ", depth "), f"{cell['test_r2']:.3f}", seconds(cell["training_seconds"]))
        for label, cell in cells.items()
    ]
    return (
        f"## Figure 4: accuracy of the tree models\n\n{_picture(folder, 'figure4')}\n"
        + table(("model", "R² on test rows", "training"), lines)
        + "\nThe paper plots curves without numbers; ours is a single split of 90 % and 10 %.\n"
    )


def _figure_5(results: Results, folder: str) -> str:
    cell = results_of(results, "fig5")["entacmaea"]
    r2 = ", ".join(f"{who} {value:.6f}" for who, value in cell["r2"].items())
    worst = cell["largest_difference"]["FourierSHAP"] / cell["largest_value"]
    return (
        f"## Figure 5: the same values three times\n\n{_picture(folder, 'figure5')}\n"
        f"R² against Eq. 1: {r2}. FourierSHAP differs by at most {worst:.0e} of the largest value. The paper shows "
        "three pictures that look alike; so do these.\n"
    )


def _grid(rows: Sequence[int], columns: Sequence[int], entry: Any) -> str:
    lines = [(str(q), *(entry(q, b) for b in columns)) for q in rows]
    return table(("rows \\ background", *map(str, columns)), lines)


def _paper(table_: dict[int, tuple[float, ...]], q: int, b: int) -> str:
    sizes = sorted(table_)
    return f"{table_[q][sizes.index(b)]:g}" if q in table_ and b in sizes else "-"


def _table_1(results: Results) -> str:
    cell = results_of(results, "fig2").get(f"sgemm/{fig2.BASE}")
    if cell is None:
        return ""
    ours = {(p["rows"], p["background"]): p["seconds"] for p in cell["points"]}
    sizes = sorted({b for _, b in ours})
    return (
        "## Table 1: KernelSHAP on SGEMM, seconds (paper / here)\n\n"
        + _grid(sizes, sizes, lambda q, b: f"{_paper(TABLE_1, q, b)} / {ours[q, b]:.1f}")
        + "\nOther hardware: the paper's network ran on a GPU.\n"
    )


def _table_2(results: Results) -> str:
    ours = table2(results)
    if not ours:
        return ""
    timed = {k: c for k, c in results_of(results, "table2").items() if "seconds_per_row" in c}
    kernel = {int(k.split("/")[1]): c["seconds_per_row"] for k, c in timed.items()}
    sizes = sorted({point["background"] for cell in ours.values() for point in cell["points"]})
    parts = [
        "## Table 2: SGEMM at larger sizes (paper / here)\n\nKernelSHAP, seconds:\n",
        _grid(sizes, sizes, lambda q, b: f"{_paper(TABLE_2_KERNEL, q, b)} / {_about(kernel, q, b)}"),
    ]
    for cell in ours.values():
        times = {
            (
                p["rows"],
                p["background"],
            ): f"{_times(p['first_seconds'] * 1e3)} ({_times(p['explain_seconds'] * 1e3)})"
            for p in cell["points"]
        }
        parts += [
            f"FourierSHAP, milliseconds from a new background on (and once that is compiled); here {cell['fitted']}: a "
            f"{cell['representation']} of {cell['terms']:,} terms or leaves, fitted once to "
            f"{cell['once_queries']:,} queries in {seconds(cell['once_seconds'])}, R² {cell['r2']:.4f}:\n",
            _grid(
                sizes,
                sizes,
                lambda q, b, times=times: f"{_paper(TABLE_2_FOURIER, q, b)} / {times[q, b]}",
            ),
        ]
    parts.append(
        "Two CPU cores against an RTX 4090. The first numbers are to be compared with the paper's; once compiled, time "
        "does not grow with the background. Where tables would not pay for one call, trees are walked in the first. "
        "The more accurate the representation, the larger its tables. "
        "R² is that at the largest sizes of Figure 2. "
        f"~: extrapolated from {results['table2']['settings']['table2_rows']} rows. The paper does not state its "
        "number of terms.\n"
    )
    return "\n".join(parts)


def _about(kernel: dict[int, float], q: int, b: int) -> str:
    return f"~{kernel[b] * q:,.0f}" if b in kernel else "-"


def _table_3(results: Results) -> str:
    lines = []
    for name in DATASETS:
        fast = results_of(results, "fig2").get(f"{name}/{fig2.FAST}")
        if fast is None:
            continue
        own = by_setting(figure2_points(results, name).get(fig2.BLACK_BOX, []))
        ours = "; ".join(
            f"{seconds(points[0]['once_seconds'])} ({setting})" for setting, points in own.items()
        )
        for layers, points in by_setting(fast["points"]).items():
            here = f"{seconds(points[0]['once_seconds'])} ({points[0]['epochs']} epochs)"
            lines.append((f"{name}, {layers}", f"{TABLE_3[name][layers]} min", here, ours))
    if not lines:
        return ""
    header = (
        "FastSHAP",
        "paper, four backgrounds",
        "here, one background",
        "BlackBoxExplainer, every background",
    )
    return (
        "## Table 3: what is done once\n\n"
        + table(header, lines)
        + "\nFastSHAP's schedule is reduced (see Figure 2) and its three sizes share their queries, so its minutes "
        "here are lower bounds; it trains anew for each background, our representation serves all.\n"
    )


def _table_4(results: Results) -> str:
    cells = results_of(results, "table4")
    if not cells:
        return ""
    from paper.models import r_squared

    last = cells[max(cells, key=float)]["values"]
    lines = []
    for factor, cell in cells.items():
        time_, r2 = TABLE_4[factor]
        here = f"{r_squared(last, cell['values']):.5f}", f"{cell['r2_exact']:.5f}"
        lines.append((factor, f"{time_:.1f} s", seconds(cell["seconds"]), f"{r2:.3f}", *here))
    header = (
        "sample factor",
        "paper",
        "here",
        "paper, R²",
        "here, R² against the last",
        "here, R² against the exact",
    )
    return (
        "## Table 4: KernelSHAP's convergence on GB1\n\n"
        + table(header, lines)
        + "\nTen rows, ten background rows, shap's defaults. The paper compares KernelSHAP with more of itself; the "
        "exact values, which trees allow, show how far that is from the truth.\n"
    )


def _left_out(results: Results) -> str:
    lines = [f"- {what}: {why.splitlines()[0]}" for what, why in left_out(results)]
    return (
        "## Left out\n\n" + ("\n".join(lines) if lines else "Nothing.") + "\n\n- GPU TreeSHAP: needs a GPU.\n"
    )
