"""Metrics of the page: how well predictions agree with observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import as_floats
from fouriershap._base.errors import InputError
from fouriershap._base.links import sigmoid, softmax
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._rows.frames import as_frame, is_missing
from fouriershap._rows.text import text_of
from fouriershap.analysis.explainer import ExplainerLike
from fouriershap.report._content import Actual, Floats

Metric = tuple[str, float, str]
_EDGE = 1e-15  # probabilities are clipped this far from 0 and 1
_BINS = 10
_NO_BIAS = 1e-6  # of the error: what the rounding of single precision leaves
_NEARLY = 0.25  # how far a representation may leave the range of probabilities
_Z = 1.959963984540054  # of 95 % intervals


def measure(explainer: ExplainerLike, y: Any, outputs: Floats) -> Actual:
    """Return labels, and how well the outputs (n_rows, n_outputs) agree with them."""
    entries, known = _entries(y, len(outputs)), explainer.engine.output.probability_link
    if known is None and _are_numbers(explainer, entries, outputs):
        link = explainer.engine.output.display_link
        return _of_numbers(
            entries, outputs if link is None or link.response is None else link.response(outputs)
        )
    if known == "logit":
        outputs = sigmoid(outputs) if outputs.shape[1] == 1 else softmax(outputs)
    if not _are_shares(outputs):
        label = truncated_repr(entries.tolist()[0])
        raise InputError(
            f"y holds classes, such as {label}, but it is unknown how the outputs of this explainer become "
            "probabilities. Explain output='probability', or leave y out."
        )
    names, shares = explainer.class_labels, np.clip(outputs, 0.0, 1.0)
    if outputs.shape[1] == 1:
        return _of_two_classes(entries, shares[:, 0], None if names is None else names[0])
    return _of_classes(entries, shares, names or tuple(map(str, range(outputs.shape[1]))))


def _are_numbers(explainer: ExplainerLike, entries: NDArray[Any], outputs: Floats) -> bool:
    """Return whether labels are numbers to predict, if it is unknown whether the outputs are probabilities."""
    if explainer.class_labels is not None or entries.dtype.kind not in "iufb":
        return False
    if explainer.kind == "trees" or not _are_shares(outputs):
        return True
    # A function whose answers lie between 0 and 1, and labels that number classes: these are probabilities.
    return not np.isin(entries, np.arange(max(outputs.shape[1], 2))).all()


def _are_shares(outputs: Floats) -> bool:
    """Return whether outputs are probabilities of classes, up to the error of a representation."""
    within = ((outputs > -_NEARLY) & (outputs < 1 + _NEARLY)).all()
    return bool(within and (outputs.shape[1] == 1 or (np.abs(outputs.sum(axis=1) - 1) < _NEARLY).all()))


def _entries(y: Any, n_rows: int) -> NDArray[Any]:
    frame = as_frame(y)
    entries = np.asarray(y if frame is None else frame.to_numpy())
    if entries.shape == (n_rows, 1):
        entries = entries[:, 0]
    if entries.shape != (n_rows,):
        raise InputError(f"y has shape {entries.shape}; give one entry per row of X, ({n_rows},).")
    if any(is_missing(entry) for entry in entries.tolist()):
        raise InputError("y has missing entries; leave these rows out.")
    return entries


def _of_numbers(entries: NDArray[Any], outputs: Floats) -> Actual:
    if outputs.shape[1] > 1:
        raise InputError(
            f"y was given, but the model has {outputs.shape[1]} outputs that are not classes; a page compares one."
        )
    values, predicted = as_floats(entries, "y"), outputs[:, 0]
    if not np.isfinite(values).all():
        raise InputError("y has infinite entries; leave these rows out.")
    missed = predicted - values
    error, bias = float(np.sqrt((missed**2).mean())), float(missed.mean())
    spread = float(((values - values.mean()) ** 2).sum())
    metrics: list[Metric] = []
    if spread > 0:
        share = 1 - float((missed**2).sum()) / spread
        metrics.append(("R²", share, "share of the variance that the model explains"))
    metrics += [
        ("MAE", float(np.abs(missed).mean()), "mean absolute error"),
        ("RMSE", error, "root mean squared error"),
        (
            "Mean error",
            bias if abs(bias) > _NO_BIAS * error else 0.0,
            "prediction minus observation: 0 without bias",
        ),
    ]
    return Actual(values, None, metrics)


def _of_two_classes(entries: NDArray[Any], share: Floats, name: str | None) -> Actual:
    positive, labels = _positive(entries, name)
    called = labels[1]
    right = float(((share >= 0.5) == positive).mean())
    rate = float(positive.mean())
    metrics: list[Metric] = []
    if 0 < rate < 1:
        text = f"probability that a row of {called} has a higher prediction than another"
        metrics.append(("AUC", auc(share, positive), text))
    edged = np.clip(share, _EDGE, 1 - _EDGE)
    loss = -np.where(positive, np.log(edged), np.log1p(-edged))
    metrics += [
        (
            "Log loss",
            float(loss.mean()),
            f"{_entropy(np.array([rate, 1 - rate])):.4g} for always predicting the mean",
        ),
        (
            "Accuracy",
            right,
            f"at 0.5; {max(rate, 1 - rate):.4g} for always predicting the more frequent class",
        ),
        ("Brier score", float(((share - positive) ** 2).mean()), "mean squared error of the probability"),
        (f"Share of {called}", rate, f"observed; the mean prediction is {share.mean():.4g}"),
    ]
    return Actual(positive.astype(np.float64), labels, metrics, calibration(share, positive)[None])


def _positive(entries: NDArray[Any], name: str | None) -> tuple[NDArray[np.bool_], tuple[str, str]]:
    """Return which rows are of the positive class, and the names of both classes."""
    texts = np.array([text_of(entry) for entry in entries.tolist()], dtype=object)
    found = set(texts.tolist())
    wanted = next((text for text in (name, "1", "True") if text is not None and text in found), None)
    if wanted is None and found <= {"0", "False"}:
        wanted = "1" if name is None else name
    # Labels may be 0 and 1 even if the positive class has a name.
    known = (
        found <= {name or "1", "0", "1"} or found <= {"False", "True"} or (name in found and len(found) <= 2)
    )
    if wanted is None and len(found) == 1 and name is not None and entries.dtype.kind not in "iufb":
        wanted, known = name, True  # one class was observed, and it is not the positive one
    if wanted is None or not known:
        raise InputError(
            f"y holds {truncated_list(sorted(found))}, but the model has {truncated_repr(name or '1')} and one "
            "other class. Give "
            "these two, or 0 and 1."
        )
    other = next(iter(found - {wanted}), f"not {name or wanted}")
    return texts == wanted, (str(other), str(name or wanted))


def _of_classes(entries: NDArray[Any], shares: Floats, names: tuple[str, ...]) -> Actual:
    position = {name: k for k, name in enumerate(names)}
    texts = [text_of(entry) for entry in entries.tolist()]
    if not all(text in position for text in texts):
        position = {str(k): k for k in range(len(names))}
    unknown = next((text for text in texts if text not in position), None)
    if unknown is not None:
        raise InputError(
            f"y holds {truncated_repr(unknown)}, which is not a class of the model; it has {truncated_list(names)}."
        )
    which = np.array([position[text] for text in texts])
    rates = np.bincount(which, minlength=len(names)) / len(which)
    areas = [auc(shares[:, k], which == k) for k in range(len(names)) if 0 < rates[k] < 1]
    loss = -np.log(np.clip(shares[np.arange(len(which)), which], _EDGE, None))
    metrics: list[Metric] = []
    if areas:
        metrics.append(("AUC", float(np.mean(areas)), "mean over classes, each against the rest"))
    right = float((shares.argmax(axis=1) == which).mean())
    metrics += [
        (
            "Log loss",
            float(loss.mean()),
            f"{_entropy(rates):.4g} for always predicting the shares of the classes",
        ),
        ("Accuracy", right, f"{rates.max():.4g} for always predicting the most frequent class"),
    ]
    curves = np.stack([calibration(shares[:, k], which == k) for k in range(len(names))])
    return Actual(which.astype(np.float64), names, metrics, curves)


def _entropy(rates: Floats) -> float:
    return float(-(rates[rates > 0] * np.log(rates[rates > 0])).sum())


def auc(score: Floats, positive: NDArray[np.bool_]) -> float:
    """Return the probability that a positive row's score is above another's; ties count half."""
    _, which, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[which]
    n = int(positive.sum())
    return float((rank[positive].sum() - n * (n + 1) / 2) / (n * (len(score) - n)))


def calibration(share: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Return rows in bins with about equally many rows, by their prediction: (10, 5), see `Actual`."""
    out = np.full((_BINS, 5), np.nan)
    order = np.argsort(share, kind="stable")
    for k, mine in enumerate(np.array_split(order, _BINS)):
        n = len(mine)
        if not n:
            continue
        rate = positive[mine].mean()
        # Wilson's interval, which stays between 0 and 1.
        middle = (rate + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * np.sqrt(rate * (1 - rate) / n + _Z**2 / (4 * n * n))
        out[k] = share[mine].mean(), rate, middle - half, middle + half, n
    return out
