"""The HTML file: template, styles, scripts and data in one, under a policy that blocks everything else."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib import resources
from typing import Any

from fouriershap._base.checks import import_optional
from fouriershap.report._pack import packed_bytes, script_json

# Plain scripts that share one scope: each is a part of the page, the last one starts it.
_SCRIPTS = [
    *("data", "text", "state", "codes", "tables", "leaves", "products", "linear", "waterfall"),
    *("charts", "overview", "dependence", "interactions", "sets", "spectrum", "performance", "comparisons"),
    *("rows", "one_row", "what_if", "save", "start"),
]


def _asset(name: str) -> str:
    return resources.files("fouriershap.report").joinpath(name).read_text(encoding="utf-8")


def _script() -> str:
    """Return all scripts in one scope. They are not a module, since modules wait until the whole file is read."""
    parts = "\n".join(_asset(f"script/{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


def _hash(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def policy(scripts: list[str]) -> str:
    """Return a Content-Security-Policy: only these scripts run, and nothing is fetched."""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(map(_hash, scripts)),
        "style-src": "'unsafe-inline'",  # plotly writes style elements
        "img-src": "data: blob:",  # and draws heat maps as images
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


class Page:
    """The page without its data."""

    def __init__(self, title: str) -> None:
        plotly = import_optional("plotly.offline", "the report", "[report]")
        # A Python string may hold half a surrogate pair, which UTF-8 cannot encode.
        safe = title.encode("utf-8", "replace").decode("utf-8")
        scripts = {"plotly": str(plotly.get_plotlyjs()), "script": _script()}
        self._parts = {
            "script": scripts["script"],
            "plotly": packed_bytes(scripts["plotly"].encode()),  # a third of its length
            "title": html.escape(safe),
            "style": _asset("report.css"),
            "policy": html.escape(policy(list(scripts.values()))),
        }
        self._template = _asset("report.html")

    @property
    def nbytes(self) -> int:
        return len(self.html(None).encode())

    def html(self, data: Any, all_rows: Any = None) -> str:
        """Return the whole file, in one pass over the template, so that parts are not searched for placeholders."""
        parts = self._parts | {"data": script_json(data), "all_rows": script_json(all_rows)}
        return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], self._template)
