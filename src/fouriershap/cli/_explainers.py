"""Explainers from files, and the types of the CSV columns that they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fouriershap import Explainer, InputError, load
from fouriershap._base.messages import truncated_text
from fouriershap.cli._rows import AS_IT_IS, HASHED_LABEL, NUMBER, NUMBER_LABEL, TEXT, TEXT_LABEL


def open_explainer(path: Path) -> Explainer:
    """Return the explainer in a .fshap file."""
    loaded = load(path)
    if not isinstance(loaded, Explainer):
        raise InputError(
            f"{truncated_text(path)}: holds a {type(loaded).__name__}, not an explainer; `fouriershap fit` "
            "writes the file that this command needs."
        )
    return loaded


def csv_kinds(explainer: Explainer, ids: tuple[str, ...]) -> dict[str, str]:
    """Return the kind of each column of a CSV file; ids are always texts."""
    encoder: Any = explainer.inputs.encoder
    if explainer.kind == "trees" and not explainer.has_pipeline:
        kinds = tree_kinds(encoder.rules, explainer.input_names)
    else:
        labels = {name: _kind(known) for name, known in explainer.known_labels.items()}
        names = explainer.input_names if explainer.has_pipeline else explainer.feature_names
        kinds = dict.fromkeys(names or (), NUMBER) | labels
    return kinds | dict.fromkeys(ids, AS_IT_IS)


def tree_kinds(rules: Any, names: tuple[str, ...] | None) -> dict[str, str]:
    """Return the kinds of the features of a tree model that reads rows by ``rules``, if they have names."""
    kinds: dict[str, str] = {}
    for feature, name in enumerate(names or ()):
        labels = rules.vocabularies.get(feature)
        # Hashed labels are hashes of texts, also for numbers.
        kinds[name] = (
            NUMBER
            if labels is None
            else _hashed_kind(rules, feature)
            if rules.labels.hashed
            else _kind(labels, TEXT_LABEL)
        )
        kinds[name.replace("_", " ")] = kinds[name]  # LightGBM replaces spaces by underscores
    return kinds


def _hashed_kind(rules: Any, feature: int) -> str:
    """Return the kind of a column whose labels are known by hashes of their texts."""
    return TEXT if any(rules.knows(feature, text) for text in ("True", "False")) else HASHED_LABEL


def _kind(labels: tuple[object, ...], text: str = TEXT) -> str:
    return text if any(isinstance(label, str) for label in labels) else NUMBER_LABEL
