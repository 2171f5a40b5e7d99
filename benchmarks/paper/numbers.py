"""What figures, pages and claims read out of the results."""

from __future__ import annotations

from typing import Any

import numpy as np

from paper import fig2

Results = dict[str, dict[str, Any]]


def results_of(results: Results, part: str) -> dict[str, Any]:
    """The finished cells of a figure or table, by name."""
    cells = results.get(part, {}).get("cells", {})
    return {name: cell["result"] for name, cell in cells.items() if "result" in cell}


def left_out(results: Results) -> list[tuple[str, str]]:
    """Cells without a result, and peers that took no part in one, each with the reason, once."""
    found = []
    for part, document in results.items():
        for name, cell in document["cells"].items():
            if "result" not in cell:
                found.append((f"{part}, {name}", cell.get("skipped") or f"failed: {cell['failed']}"))
        for cell in results_of(results, part).values():
            found += [(f"{part}, {peer}", reason) for peer, reason in cell.get("skipped", {}).items()]
    return list(dict.fromkeys(found))


def kernel_shap_seconds(results: Results, name: str) -> dict[int, float]:
    """Per background size, seconds per explained row of KernelSHAP at its defaults."""
    cell = results_of(results, "fig2").get(f"{name}/{fig2.BASE}", {"points": []})
    return {point["background"]: point["seconds"] / point["rows"] for point in cell["points"]}


def figure2_points(results: Results, name: str) -> dict[str, list[dict[str, Any]]]:
    """The points of a panel by method, each with its speed-up over KernelSHAP for as many rows."""
    base, series = kernel_shap_seconds(results, name), {}
    for label, cell in results_of(results, "fig2").items():
        dataset, who = label.split("/")
        if dataset != name:
            continue
        for point in cell["points"]:
            if point["background"] in base:
                unit = base[point["background"]] * point["rows"]
                more = {"speedup": unit / point["seconds"]}
                if "explain_seconds" in point:
                    more["explain_speedup"] = unit / point["explain_seconds"]
                series.setdefault(point.get("method", who), []).append(point | more)
    return series


def table2(results: Results) -> dict[str, dict[str, Any]]:
    """Our representations of Table 2 by name, each with its point at the largest sizes."""
    cells = {name: cell for name, cell in results_of(results, "table2").items() if "points" in cell}
    return {
        name: cell | {"last": max(cell["points"], key=lambda point: (point["rows"], point["background"]))}
        for name, cell in cells.items()
    }


def summary(points: list[dict[str, Any]]) -> dict[str, float]:
    """Medians over the runs of one setting."""
    keys = [k for k in ("seconds", "r2", "speedup", "explain_seconds", "explain_speedup") if k in points[0]]
    found = {key: float(np.median([point[key] for point in points])) for key in keys}
    found["fewest"], found["most"] = (float(f(point["speedup"] for point in points)) for f in (min, max))
    return found


def by_setting(points: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    settings = dict.fromkeys(point["setting"] for point in points)
    return {setting: [point for point in points if point["setting"] == setting] for setting in settings}


def best_setting(points: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The setting with the best median R^2 (the quicker, where two are alike)."""
    found = by_setting(points)
    quality = {s: (round(summary(p)["r2"], 4), summary(p)["speedup"]) for s, p in found.items()}
    best = max(found, key=quality.__getitem__)
    return best, found[best]


def quick_setting(points: list[dict[str, Any]], near: float) -> tuple[str, list[dict[str, Any]]]:
    """The quickest setting whose median R^2 is within ``near`` of the best."""
    found = by_setting(points)
    least = summary(best_setting(points)[1])["r2"] - near
    near_best = [setting for setting, these in found.items() if summary(these)["r2"] >= least]
    quickest = max(near_best, key=lambda setting: summary(found[setting])["speedup"])
    return quickest, found[quickest]


def seconds_at(curve: list[tuple[float, float]], r2: float) -> float:
    """Seconds at which a curve of (seconds, R^2) reaches an accuracy: linear in the logarithms of time and 1 - R^2.

    Below its worst point the cheapest run counts (in our disfavour); beyond its best, the dearest.
    """
    ordered = sorted(curve)
    missing = np.minimum.accumulate(np.clip([1 - found for _, found in ordered], 1e-9, None))
    times = np.log([seconds for seconds, _ in ordered])
    return float(np.exp(np.interp(-np.log(max(1 - r2, 1e-9)), -np.log(missing), times)))
