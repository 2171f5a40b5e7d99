"""When a page was written, by what, and where model and data came from."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fouriershap._base.short import short_text

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module

_MOST_TEXT = 300


def make_facts(
    explainer: Explainer, told: list[tuple[str, str]], more: Mapping[Any, Any] | None
) -> list[tuple[str, str]]:
    """What an explainer tells, where it came from, and what the caller adds."""
    found = list(told)
    if explainer._given is not None:
        found.insert(1, ("Model class", short_text(explainer._given)))
    if explainer.checksum is not None:
        found.append(("Checksum of the explainer", explainer.checksum))
    found += [(str(name)[:_MOST_TEXT], str(text)[:_MOST_TEXT]) for name, text in (more or {}).items()]
    versions = make_versions(explainer)
    found.append(("Written", versions.pop("written")))
    found.append(("Versions", ", ".join(f"{name} {number}" for name, number in versions.items())))
    return found


def make_versions(explainer: Explainer) -> dict[str, str]:
    """The date, and the versions of what wrote the page and of the model's library, as they are installed."""
    # The same page again, where a build says when it is: https://reproducible-builds.org/specs/source-date-epoch/
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    found = {"written": now.strftime("%Y-%m-%d %H:%M UTC"), "fouriershap": version("fouriershap")}
    found["Python"] = platform.python_version()
    package = (explainer._given or "").partition(".")[0]
    library = getattr(sys.modules.get(package), "__version__", None)
    return found if not isinstance(library, str) else found | {package: library}
