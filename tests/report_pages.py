"""A report page read back from its file, and a small model to write one of."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost

import fouriershap as fs


class Parts(HTMLParser):
    """Scripts, data and policy of a page, as an HTML parser sees them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.policy = ""
        self._script: list[str] | None = None
        self._is_data = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        if tag == "script":
            self._script, self._is_data = [], given.get("id") == "data"
            self._is_rows = given.get("id") == "all-rows"
            self._is_packed = given.get("type") == "application/octet-stream"

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._script.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._script is not None:
            text = "".join(self._script)
            if self._is_data:
                self.data = json.loads(text)
            elif self._is_rows:
                self.all_rows = json.loads(text)
            else:
                self.scripts.append(
                    zlib.decompress(base64.b64decode(text)).decode() if self._is_packed else text
                )
            self._script = None


def unpacked(entry: dict[str, str]) -> np.ndarray:
    shuffled = np.frombuffer(zlib.decompress(base64.b64decode(entry["data"])), dtype=np.uint8)
    size = np.dtype(entry["dtype"]).itemsize
    return np.frombuffer(shuffled.reshape(size, -1).T.tobytes(), dtype=entry["dtype"])


def small() -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=["a", "b", "c", "d"])
    model = xgboost.XGBRegressor(n_estimators=10, max_depth=3, n_jobs=1).fit(X, X["a"] * X["b"])
    return fs.TreeExplainer(model, X[:50]), X
