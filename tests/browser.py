"""A headless Chromium for tests: the installed one, or Playwright's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, sync_playwright

_INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Path of an installed browser, None for Playwright's own."""
    return next((found for name in _INSTALLED if (found := shutil.which(name))), None)


@contextmanager
def launch() -> Iterator[Any]:
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=find_chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
        except Error as error:
            pytest.skip(
                "no Chromium to test the report in: apt-get install chromium, or playwright install chromium "
                f"({str(error).splitlines()[0]})"
            )
        yield browser
        browser.close()


class OpenPage:
    """A report in the browser; whatever its console says is kept."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.messages.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=120_000)
