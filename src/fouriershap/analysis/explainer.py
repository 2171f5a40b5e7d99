"""What explainers answer about many rows at once: the methods, one page for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from numpy.typing import ArrayLike

from fouriershap._base.errors import InputError

if TYPE_CHECKING:
    from fouriershap._explainers.base import Explainer  # types alone: the base imports this module
    from fouriershap._explainers.questions.cohorts import Cohorts
    from fouriershap._explainers.questions.drift import Drift
    from fouriershap._explainers.questions.importance import Importance
    from fouriershap._explainers.questions.letters import Reasons
    from fouriershap._explainers.questions.orders import Interactions


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

    def importance(
        self,
        X: Any,
        y: Any = None,
        *,
        loss: str | None = None,
        link: str | None = None,
        weights: ArrayLike | None = None,
        background: Any = None,
        background_weights: ArrayLike | None = None,
        budget: int = 1_000_000,
        level: float | None = 0.95,
        random_state: int = 0,
    ) -> Importance:
        """What matters over many rows, and how surely: mean sizes of SHAP values, or what players save of a loss.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns), or an iterator of such
            A stream is taken batch by batch; with labels or weights its batches are ``(X, y)`` or ``(X, y, weights)``.
        y : array_like, optional
            Labels: importance is then the loss that a player saves, in the sense of SAGE. The model is not asked.
        loss : {"squared_error", "log_loss"}, optional
            With ``y``; by default the squared error, and "log_loss" where outputs are log odds. Labels of "log_loss"
            are the numbers of the classes.
        link : {"identity", "logit"}, optional
            Whether outputs are probabilities or margins; known for trees.
        weights : array_like, optional
            A weight per row.
        background, background_weights
            As in `drift`.
        budget : int
            Most predictions of the representation that are spent on losses. Where all coalitions of all rows fit in,
            importance is exact; else what interactions add to it is estimated, with the ``error`` that it tells.
        level : float or None
            Coverage of the intervals: the error of rows and of drawing. The background counts as given.
        random_state : int

        Returns
        -------
        Importance
            With ``frame()``, ``plot()`` and ``to_json()``.
        """
        from fouriershap._explainers.questions.importance import make_importance

        explainer = _against(self, background, background_weights)
        return make_importance(explainer, X, y, loss, link, weights, budget, level, random_state)

    def cohorts(
        self,
        X: Any,
        by: Any = None,
        *,
        every: str | None = None,
        bins: int | None = None,
        leaves: int = 4,
        weights: ArrayLike | None = None,
        background: Any = None,
        background_weights: ArrayLike | None = None,
        level: float | None = 0.95,
        random_state: int = 0,
    ) -> Cohorts:
        """Mean explanations of groups of rows, and where they differ.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        by : str or array_like, optional
            The name of a column of X, a feature or not, a mask, or an entry per row. None for a tree that splits where
            SHAP values differ most: half of the rows grow it, and the means are those of the other half.
        every, bins
            As in `drift`: periods of dates, bins of numbers.
        leaves : int
            Most leaves of the tree, 2 to 4.
        weights : array_like, optional
            A weight per row.
        background, background_weights
            As in `drift`.
        level : float or None
            Coverage of the intervals, each for itself; None for none.
        random_state : int
            Which half grows the tree.

        Returns
        -------
        Cohorts
            With ``frame()``, ``plot()`` and ``to_json()``.
        """
        from fouriershap._explainers.questions.cohorts import make_cohorts

        explainer = _against(self, background, background_weights)
        return make_cohorts(explainer, X, by, every, bins, leaves, weights, level, random_state)

    def interactions(
        self,
        X: Any,
        order: int = 3,
        *,
        index: str = "k-SII",
        top_k: int | None = None,
        min_order: int = 1,
        background: Any = None,
        background_weights: ArrayLike | None = None,
    ) -> Interactions:
        """What sets of up to ``order`` players bring together, exactly, row by row: of trees against rows, and spectra.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        order : int
            Most players of a set.
        index : {"k-SII", "STII", "FSII", "SII"}
            n-Shapley values, Shapley-Taylor, faithful Shapley, or the plain Shapley interaction index; the first three
            add up to the prediction (see ``docs/interactions.md`` for which to choose).
        top_k : int, optional
            Only the strongest sets, by mean absolute value over the rows. Where all of them would be too many to be
            held, rows are taken in blocks, twice. None for all sets that interact at all.
        min_order : int
            Fewest players of a set: ``min_order=order`` for those of the highest order alone.
        background, background_weights
            As in `drift`.

        Returns
        -------
        Interactions
            With ``frame()``, ``row(i)``, ``value_of(*players)``, ``plot()`` and ``to_json()``.
        """
        from fouriershap._explainers.questions.orders import make_interactions

        explainer = _against(self, background, background_weights)
        return make_interactions(explainer, X, order, index, top_k, min_order)

    def reasons(
        self,
        X: Any,
        top_k: int = 4,
        *,
        against: str = "lower",
        cohort: Any = None,
        cohort_weights: ArrayLike | None = None,
        output: int | str | None = None,
        groups: Any = None,
        text: Any = None,
        actionable: Any = None,
        least: float = 0.0,
        ids: Any = None,
    ) -> Reasons:
        """Ordered reasons per row, in the caller's wording: what a letter about a decision tells.

        Parameters
        ----------
        X : array or data frame, shape (n_rows, n_columns)
        top_k : int
            Most reasons per row; a row has fewer where fewer things speak in that direction.
        against : {"lower", "higher", "both"}
            What the reasons speak against: a lower output (they raised it), a higher one (they lowered it), or both, by
            size.
        cohort : array or data frame, optional
            Rows to compare with in place of the background, such as those that were accepted.
        cohort_weights : array_like, optional
        output : int or str, optional
            Which output; needed where there are several.
        groups : mapping, optional
            ``{"name of a reason": [players]}``: players that one reason stands for, with the sum of their values.
        text : mapping, str or callable, optional
            The sentence of each reason, ``{"debt": "Your debt of {value} is high."}``, with the fields ``{feature}``,
            ``{value}`` and ``{contribution}``; or a function of these three. By default "feature = value".
        actionable : sequence of str, optional
            Reasons that the row's owner could change: the frame then has a column that says so.
        least : float
            Size of a contribution that makes a reason.
        ids : str or array_like, optional
            A column of X that is no feature, or an entry per row, carried along.

        Returns
        -------
        Reasons
            With ``frame()``, ``letter(row)``, ``plot()`` and ``to_json()``.
        """
        from fouriershap._explainers.questions.letters import make_reasons

        explainer = _against(self, cohort, cohort_weights, "cohort")
        return make_reasons(explainer, X, top_k, against, output, groups, text, actionable, least, ids)


def _against(asked: Any, background: Any, weights: ArrayLike | None, name: str = "background") -> Explainer:
    """The explainer, against other rows where some are given."""
    if background is None:
        if weights is not None:
            raise InputError(f"{name}_weights were given, but no {name} whose rows they could weigh.")
        return cast("Explainer", asked)
    return cast("Explainer", asked.with_background(background, weights=weights))
