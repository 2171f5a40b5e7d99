"""Readers: models that are sums of products over features, as `Products`.

A model is recognised by the names of its class and its bases, so that no library is imported that its user has not
imported. One file for each kind of model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._waves.readers import kernels, linear, networks, statsmodels, xgboost
from fouriershap._waves.readers.reading import Reading

Reader = Callable[[Any], Reading]
_READERS: dict[tuple[str, str], Reader] = {
    ("sklearn", "SGDOneClassSVM"): linear.read_one_class,
    ("sklearn", "LinearClassifierMixin"): linear.read_classifier,
    ("sklearn", "BaseSGDRegressor"): linear.read_linear,
    ("sklearn", "_GeneralizedLinearRegressor"): linear.read_generalised,
    ("sklearn", "LinearModel"): linear.read_linear,
    ("sklearn", "_PLS"): linear.read_partial_least_squares,
    ("sklearn", "BaseLibSVM"): kernels.read_vectors,
    ("sklearn", "KernelRidge"): kernels.read_ridge,
    ("sklearn", "GaussianProcessRegressor"): kernels.read_process,
    ("sklearn", "BaseMultilayerPerceptron"): networks.read_network,
    ("statsmodels", "ResultsWrapper"): statsmodels.read_results,
    ("statsmodels", "Results"): statsmodels.read_results,
}
_OWN = {"predict", "predict_proba", "decision_function"}


def read_products(model: Any) -> Reading:
    """Read a fitted model that is a sum of products.

    Raises
    ------
    UnsupportedModelError
        The model is of another kind, or is no sum of products that can be paid for; with the way out.
    InputError
        The model is not fitted.
    """
    found = _find_reader(model)
    if found is None:
        raise UnsupportedModelError(
            f"model is a {type(model).__module__}.{type(model).__qualname__}, which is no sum of products that can be "
            "read. Readable: scikit-learn's linear models, support vector machines, KernelRidge, "
            "GaussianProcessRegressor, MLPRegressor and MLPClassifier; results of statsmodels; XGBoost's gblinear. "
            "fs.Explainer(model, background) finds the explainer for any other."
        )
    return found(model)


def is_readable(model: Any) -> bool:
    """Whether `read_products` reads this very model; a model that is not fitted counts, so that this can be said.

    What is stored in a way that is not known here (rows that are no numbers, say) cannot be read. A model of a kind
    that is read, but is no sum of products itself, is an `UnsupportedModelError` that says why.
    """
    found = _find_reader(model)
    if found is None:
        return False
    try:
        found(model)
    except InputError:
        return True
    except UnsupportedModelError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError):
        return False
    return True


def _find_reader(model: Any) -> Reader | None:
    """The reader of a model; None where it, or a class of its user's, predicts in another way."""
    own = False
    for base in type(model).__mro__:
        library = base.__module__.partition(".")[0]
        if library == "xgboost" and base.__name__ in ("XGBModel", "Booster"):
            return xgboost.read_model if not own and xgboost.is_linear(model) else None
        reader = _READERS.get((library, base.__name__))
        if reader is not None:
            return None if own else reader
        own = own or (library not in ("sklearn", "statsmodels", "xgboost") and bool(_OWN & vars(base).keys()))
    return None
