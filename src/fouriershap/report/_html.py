"""The HTML file: template, styles, scripts and data in one, under a policy that blocks everything else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import import_optional
from fouriershap._base.messages import truncated_text

# Plain scripts that share one scope: each is a part of the page, the last one starts it.
_SCRIPTS = [
    *("data", "text", "state", "codes", "tables", "leaves", "products", "waterfall"),
    *("charts", "overview", "dependence", "interactions", "comparisons", "sets", "performance"),
    *("rows", "one_row", "what_if", "save", "start"),
]


# Typed arrays of JavaScript. Booleans are stored as bytes, int64 as int32.
_DTYPES = ("uint8", "uint16", "int16", "int32", "float32", "float64")


def _asset(name: str) -> str:
    return resources.files("fouriershap.report").joinpath(name).read_text(encoding="utf-8")


def policy(scripts: list[str]) -> str:
    """Return a Content-Security-Policy: only these scripts run, and nothing is fetched."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{digest}'" for digest in digests),
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
        # All scripts in one scope. They are not a module, since modules wait until the whole file is read.
        parts = "\n".join(_asset(f"script/{name}.js") for name in _SCRIPTS)
        script = f'(() => {{\n"use strict";\n{parts}\n}})();'
        scripts = {"plotly": str(plotly.get_plotlyjs()), "script": script}
        self._parts = {
            "script": script,
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


def packed(array: NDArray[Any]) -> dict[str, str]:
    """Return an array as the page's `unpack` reads it."""
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    elif array.dtype == np.int64:
        if array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
            raise OverflowError("an array of the report has numbers that overflow 32 bits.")
        array = array.astype(np.int32)
    if array.dtype.name not in _DTYPES:
        raise TypeError(f"a report cannot hold arrays of {truncated_text(array.dtype)}.")
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    # The first byte of every number, then the second ...: similar bytes together compress better.
    shuffled = little.reshape(-1).view(np.uint8).reshape(-1, little.itemsize).T.tobytes()
    return {"dtype": array.dtype.name, "data": packed_bytes(shuffled)}


def packed_bytes(whole: bytes) -> str:
    """Return base64 of deflated bytes."""
    return base64.b64encode(zlib.compress(whole)).decode()


def packed_all(arrays: dict[str, NDArray[Any]]) -> dict[str, dict[str, str]]:
    """Return named arrays, each packed."""
    return {name: packed(array) for name, array in arrays.items()}


def script_json(value: Any) -> str:
    """Return JSON that cannot end a script element: ASCII, without ``<``."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
