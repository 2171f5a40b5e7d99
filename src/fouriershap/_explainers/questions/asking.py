"""What explainers answer about many rows at once: the methods, one page for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from numpy.typing import ArrayLike

from fouriershap._base.errors import InputError

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module
    from fouriershap._explainers.questions.drift import Drift


class Questions:
    """Questions beyond the row (see `Explainer`)."""

    def drift(
        self,
        X_new: Any,
        *,
        weights: ArrayLike | None = None,
        background: Any = None,
        background_weights: ArrayLike | None = None,
        by: Any = None,
        every: str | None = None,
        bins: int | None = None,
        interactions: bool = False,
        level: float | None = 0.95,
    ) -> Drift:
        """Why the mean prediction changed from the background to other rows, split exactly over players.

        The parts are the mean SHAP values of the new rows; they add up to the change. Their intervals count the
        sampling error of both samples, from one more pass over the background (see ``docs/questions.md``).

        Parameters
        ----------
        X_new : array or data frame, shape (n_rows, n_columns)
        weights : array_like, optional
            A weight per new row.
        background : array or data frame, optional
            Rows to compare with in place of the explainer's background, or the same again where the explainer was
            loaded from a file, which has no rows: without them intervals count the new rows' error alone.
        background_weights : array_like, optional
            Of the rows of ``background``.
        by : str or array_like, optional
            The name of a column of X_new, a feature or not, or an entry per row: a change for each group.
        every : {"day", "week", "month", "quarter", "year"}, optional
            Where ``by`` holds dates: a group per period.
        bins : int, optional
            Where ``by`` holds numbers: groups of about as many rows each.
        interactions : bool
            Split into main effects and pairs of players.
        level : float or None
            Coverage of the intervals; None for none, which saves the pass over the background.

        Returns
        -------
        Drift
            With ``frame()``, ``plot()`` and ``to_json()``.
        """
        from fouriershap._explainers.questions.drift import make_drift

        return make_drift(
            _against(self, background, background_weights),
            X_new,
            weights,
            by,
            every,
            bins,
            interactions,
            level,
        )


def _against(asked: Any, background: Any, weights: ArrayLike | None) -> Explainer:
    """The explainer, against other rows where some are given."""
    if background is None:
        if weights is not None:
            raise InputError("background_weights were given, but no background whose rows they could weigh.")
        return cast("Explainer", asked)
    return cast("Explainer", asked.with_background(background, weights=weights))
