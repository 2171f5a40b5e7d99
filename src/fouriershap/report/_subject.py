"""What the report says about the model, the values and how far to trust them."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.messages import truncated_text
from fouriershap._rows.frames import Rows
from fouriershap._rows.inputs import RulesEncoder
from fouriershap._shapley.engine import EngineInfo, PageLookup
from fouriershap._shapley.indices import title
from fouriershap.analysis.explainer import ExplainerLike
from fouriershap.report._content import WhatIf

if TYPE_CHECKING:
    from fouriershap._blackbox.fidelity import Fidelity

_MOST_CURVE = 500
_MOST_TEXT = 2000
RECORD = ("Model", "Version", "Owner", "Data", "Limits")  # what a reader must know who did not make the model
_ROUNDING_ROWS = 200  # to measure the error of rounded tables on
_SHAP_TEXTS = (
    "A SHAP value is the part that a feature has in the difference between a row's prediction and the expected value: "
    "the mean change of the prediction when the feature becomes known, over all orders of the features.",
    "It is not a cause. It says what the model does with a feature, not what would happen to the outcome if the "
    "feature were changed in the world.",
)
# The links that the page's script knows, and what it says about them.
_LINK_TEXTS = {
    "logistic": "The probability beside a prediction is the sigmoid of its log-odds.",
    "softmax": "The column “softmax” turns the outputs into the probabilities of the classes.",
    "exp": "The model predicts the exponential of this output, which is shown beside it.",
    "expm1": "The model predicts the exponential of this output minus 1, which is shown beside it.",
}


def kind_of(explainer: ExplainerLike) -> str:
    """Return what kind of model is explained."""
    info = explainer.engine.raw.info
    return "black box" if explainer.fitted is not None else info.model or info.kind


def fidelity_of(explainer: ExplainerLike) -> Any:
    """Return the `Fidelity` of what was fitted; None for a model that was read."""
    return explainer.engine.quality.fidelity if explainer.fitted is None else explainer.fitted.fidelity


def page_link(explainer: ExplainerLike) -> str | None:
    """Return the name of the link that the page applies to raw outputs, if it knows it."""
    link = explainer.engine.raw.output.display_link
    return None if link is None or link.name not in _LINK_TEXTS else link.name


def split_facts(facts: Mapping[Any, Any] | None) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the caller's record of the model, whole if there is a part of it, and what else they state."""
    given = {str(name)[:_MOST_TEXT]: str(text)[:_MOST_TEXT] for name, text in (facts or {}).items()}
    known = {name.capitalize(): text for name, text in given.items() if name.capitalize() in RECORD}
    record = [(name, known.get(name, "not stated")) for name in RECORD if known]
    return record, [(name, text) for name, text in given.items() if name.capitalize() not in RECORD]


def list_facts(
    explainer: ExplainerLike, versions: dict[str, str], more: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return names and texts: about the model, where it came from, and what the caller adds."""
    engine, fit, fidelity = explainer.engine, explainer.fitted, fidelity_of(explainer)
    info, n_columns, n_players = engine.raw.info, len(explainer.feature_names), len(explainer.player_names)
    grouped = "" if n_columns == n_players else f" in {n_players:,} groups"
    found = [("Kind of model", kind_of(explainer) if fit is None else "black box, known by its predictions")]
    if explainer.model_name is not None:
        found.append(("Model class", truncated_text(explainer.model_name)))
    if fit is not None:
        found += [("Method", fit.method), ("Representation", _describe_representation(info))]
    elif info.n_trees:
        found.append(("Trees", f"{info.n_trees:,} with {info.n_leaves:,} leaves"))
    elif info.n_queries:
        found.append(("Queries", f"{info.n_queries:,}"))
    else:
        found.append(("Terms", f"{info.n_terms:,}"))
    if not engine.output.is_raw:
        found.append(("Output", engine.output.name))
    if title(engine.index):
        found.append(("Values", title(engine.index)))
    found.append(("Features", f"{n_columns:,}{grouped}"))
    if fit is not None and fidelity is not None:
        found.append(("Queries", f"{fidelity.n_queries:,}"))
        found.append(("Fidelity", _describe_fidelity(fidelity)))
    rows = "compiled into the tables" if info.n_background is None else f"{info.n_background:,} rows"
    found.append(("Background", "none: path-dependent values" if info.is_path_dependent else rows))
    if explainer.checksum is not None:
        found.append(("Checksum of the explainer", explainer.checksum))
    libraries = ", ".join(f"{name} {number}" for name, number in versions.items() if name != "written")
    return [*found, *more, ("Written", versions["written"]), ("Versions", libraries)]


_ORDERS = {
    "Owen values": "those that keep the features of a group together",
    "asymmetric values": "those in which causes come before their effects",
}


def find_versions(explainer: ExplainerLike) -> dict[str, str]:
    """Return the date, and the installed versions of what wrote the page and of the model's library."""
    # For reproducible pages: https://reproducible-builds.org/specs/source-date-epoch/
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    found = {"written": now.strftime("%Y-%m-%d %H:%M UTC"), "fouriershap": version("fouriershap")}
    found["Python"] = platform.python_version()
    package = (explainer.model_name or "").partition(".")[0]
    library = getattr(sys.modules.get(package), "__version__", None)
    return found if not isinstance(library, str) else found | {package: library}


def explain_meaning(explainer: ExplainerLike) -> list[str]:
    """Return sentences: what a SHAP value is, what these are, and how far to trust them."""
    engine, fidelity, link = explainer.engine, fidelity_of(explainer), page_link(explainer)
    is_raw, info, raw = engine.raw is engine, engine.raw.info, engine.raw.output.unit or "raw output"
    what = "probabilities" if engine.output.unit == "probability" else "responses"
    if fidelity is not None:
        first = _explain_fidelity(fidelity)
    elif not is_raw and engine.quality.is_rescaled:
        first = (
            f"These SHAP values explain {what}: they are the exact values of the {raw} against each background row, "
            "times the slope from that row's output to the explained one's. They add up to what the model predicts."
        )
    elif info.is_conditional:
        follows = (
            "causal: an absent feature follows its causes, in the order of causes that was given and"
            if info.is_causal
            else "conditional: an absent feature follows those that are known,"
        )
        first = (
            f"These SHAP values are {follows} under a model of how features depend on each other, and they are as "
            "right as that model. They add up exactly."
        )
    elif not is_raw and engine.quality.tolerance:
        first = (
            f"These SHAP values explain {what} themselves. They are sampled, with standard errors of at most "
            f"{engine.quality.tolerance:.0%} of the row's largest value, and add up exactly."
        )
    elif not is_raw:
        first = f"These SHAP values explain {what} exactly, over all coalitions and background rows."
    elif engine.quality.tolerance:
        first = (
            "These SHAP values are those of the model itself, which was asked about each row. Their standard errors "
            f"are at most {engine.quality.tolerance:.0%} of the row's largest value, unless a limit was reached, and "
            "they add up exactly. The lines at the ends of the bars are 95 % intervals."
        )
    elif info.is_path_dependent:
        first = (
            "These SHAP values are exact and path-dependent: an absent feature is spread over both sides of a split "
            "like the training rows."
        )
    elif info.background_error:
        first = (
            "These SHAP values are those of the model itself; a compressed background misses "
            f"{info.background_error:.1e} of their sum of squares."
        )
    else:
        first = "These SHAP values are exact: they use the model itself and all background rows; nothing is sampled."
    if not is_raw:
        second = (
            f"The values of the {raw} are there as well; choose at the top what charts show. Interactions and the "
            f"what-if part use the {raw}, for which each change is exact, and show the {engine.output.name} that "
            "follows."
        )
    elif explainer.fitted is not None:
        second = "The prediction is that of the representation: the expected value plus the SHAP values."
    else:
        output = "raw output" if engine.output.is_raw else engine.output.name
        second = f"The prediction is the model's {output}: the expected value plus the SHAP values."
    structured = title(engine.index)
    if structured:
        second += f" They are {structured}: of all orders of the features, {_ORDERS[structured]} count."
    return [*_SHAP_TEXTS, first, second, *([_LINK_TEXTS[link]] if link is not None and is_raw else [])]


def make_what_if(explainer: ExplainerLike, rows: Rows, n_inputs: int, budget: int) -> list[WhatIf] | str:
    """Return what the page looks up to explain changed rows, or why it cannot.

    Look-ups that would be far larger than ``budget`` bytes are not made.
    """
    lookups, encoder = explainer.engine.raw.lookups(budget), explainer.inputs.encoder
    if isinstance(lookups, str):
        return lookups
    missing_value, zero_as_missing = None, np.zeros(n_inputs, dtype=bool)
    if isinstance(encoder, RulesEncoder):  # engines get clean rows, but a reader types anything
        number = encoder.rules.missing_value
        missing_value = None if np.isnan(number) else number
        zero_as_missing[list(encoder.rules.zero_as_missing)] = True
    codes = rows.codes[:_ROUNDING_ROWS]
    codes = codes.astype(np.float64) if codes.dtype == np.uint8 else codes

    def make(lookup: PageLookup, note: str = "") -> WhatIf:
        header, arrays = lookup.header(), lookup.arrays()
        if "missing_value" in header:
            header["missing_value"], arrays["zero_as_missing"] = missing_value, zero_as_missing
        can_round = not note and lookup.rounded(16) is not None
        return WhatIf(header, arrays, lookup.nbytes, partial(coarser, lookup) if can_round else None, note)

    def coarser(lookup: PageLookup, n_bits: int) -> WhatIf:
        """Return smaller tables, and the error that they make on some rows."""
        rounded = lookup.rounded(n_bits)
        assert rounded is not None
        exact = lookup.shap_values(codes)
        error = float(np.abs(rounded.shap_values(codes) - exact).max(initial=0.0))
        largest = float(np.abs(exact).max(initial=0.0)) or 1.0
        note = (
            f"The tables of the what-if part are rounded to make the page smaller. On {len(codes):,} rows its values "
            f"differ by at most {error:.1g} from the exact ones, which is {100 * error / largest:.1g} % of the largest."
        )
        return make(rounded, note)

    return [make(lookup) for lookup in lookups]


def make_profile(info: EngineInfo) -> dict[str, NDArray[Any]]:
    """Return number and energy of a spectrum's terms by degree, and the share of the variance in the largest ones."""
    if info.term_energy is None or info.degrees is None:
        return {}
    energy, n_terms = info.term_energy, np.bincount(info.degrees, minlength=1)
    total = max(float(energy.sum()), 1e-300)
    curve = np.cumsum(np.sort(energy)[::-1]) / total
    at = np.unique(np.linspace(1, len(curve), min(len(curve), _MOST_CURVE)).astype(np.int32))
    return {
        "degree_terms": n_terms.astype(np.int32),
        "degree_share": np.bincount(info.degrees, energy, minlength=1) / total,
        "curve_terms": at,
        "curve_share": curve[at - 1],
    }


def _describe_representation(info: EngineInfo) -> str:
    if info.parts:
        return " and ".join(map(_describe_representation, info.parts))
    if info.n_trees:
        return f"{info.n_trees:,} trees with {info.n_leaves:,} leaves"
    return f"{'a spectrum of ' if info.term_energy is not None else ''}{info.n_terms:,} terms"


def _describe_fidelity(fidelity: Fidelity) -> str:
    if fidelity.exact:
        return "exact: every combination of levels was queried"
    function = f"R² {fidelity.r2:.4f} (95 % interval {fidelity.low:.4f} to {fidelity.high:.4f})"
    if fidelity.shap is None:
        return function
    values = f"of the values R² {fidelity.shap.r2:.4f} ({fidelity.shap.low:.4f} to {fidelity.shap.high:.4f})"
    return f"{values}, of the function {function}"


def _explain_fidelity(fidelity: Fidelity) -> str:
    noise = values = ""
    if fidelity.noise > 1e-4:
        noise = f" The model's answers to the same row vary by {100 * fidelity.noise:.2g} % of that."
    if fidelity.exact:
        return f"Every combination of levels was queried, so these SHAP values are the model's exact ones.{noise}"
    error = 100 * np.sqrt(max(1 - fidelity.r2, 0.0))
    if fidelity.n_points == 0 and np.isnan(fidelity.noise):
        return (
            "Every combination of levels was queried once, and no query was left to test whether the model always "
            "gives the same answer: if it does, these SHAP values are exact."
        )
    if fidelity.n_points == 0:
        return (
            "Every combination of levels was queried several times, since the model's answers vary. These SHAP values "
            f"are those of the mean answers, whose typical error is {error:.2g} % of their spread.{noise}"
        )
    if fidelity.shap is not None:
        values = (
            f" They agree with the model's own values, from permutations of a few rows, with R² {fidelity.shap.r2:.3f} "
            f"(95 % interval {fidelity.shap.low:.3f} to {fidelity.shap.high:.3f})."
        )
    return (
        f"These SHAP values are exact for a representation of the model.{values} On {fidelity.n_points:,} mixed rows "
        f"that were not used to fit it, it explains {100 * fidelity.r2:.2f} % of the variance of the model's answers: "
        f"its typical error is {error:.2g} % of their spread. Do not interpret smaller differences between values."
        f"{noise}"
    )
