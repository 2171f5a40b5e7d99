"""Pictures of explained rows, drawn by shap."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fouriershap import Explainer
from fouriershap._base.atomic import atomic_file
from fouriershap._base.checks import need

MOST_ROWS = 2000


def check_plots() -> None:
    """Raise where shap or matplotlib is missing, before any work is done."""
    need("shap", "--plots", "[shap]")
    need("matplotlib", "--plots", "matplotlib").use("Agg")


def draw_plots(explainer: Explainer, rows: Any, folder: Path) -> list[Path]:
    """Beeswarm, bar and the waterfall of the first row, per output, of a frame with some rows."""
    import matplotlib.pyplot as plt
    import shap

    folder.mkdir(parents=True, exist_ok=True)
    explanation = explainer(rows)
    outputs = [("", explanation)]
    if explanation.values.ndim == 3:
        names = explainer.output_names or tuple(map(str, range(explanation.values.shape[2])))
        outputs = [(f"-{_plain(name)}", explanation[..., o]) for o, name in enumerate(names)]
    paths = []
    for suffix, one in outputs:
        plots = {"beeswarm": one, "bar": one, "waterfall": one[0]}
        for kind, content in plots.items():
            plt.figure()
            getattr(shap.plots, kind)(content, show=False)
            path = folder / f"{kind}{suffix}.png"
            with atomic_file(path) as temporary:
                plt.savefig(temporary, dpi=120, bbox_inches="tight", format="png")
            plt.close("all")
            paths.append(path)
    return paths


def _plain(name: str) -> str:
    return re.sub(r"[^\w-]+", "_", name)
