"""`Reading`: a model as it was read. `Library`: everything that is known about a model library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import IDENTITY, UNKNOWN, Link
from fouriershap._rows.batch import open_batch
from fouriershap._rows.preprocessing import LivePreprocessing
from fouriershap._rows.rules import InputRules
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.linear import LinearTrees
from fouriershap._waves.products import Products

Floats = NDArray[np.float64]
_DOUBLE: np.dtype[Any] = np.dtype(np.float64)


class CannotAskError(Exception):
    """A live model cannot be asked for its raw output, whatever the rows."""


class UnknownModelError(UnsupportedModelError):
    """No library adapter recognises the model."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A model as it was read: its representation, how it reads rows, and what its raw output means.

    Attributes
    ----------
    representation : TreeEnsemble, LinearTrees or Products
        The raw output as arrays; of products, every feature is a player.
    rules : InputRules
    kind : str
        Library and class, for people.
    link : Link
        From the raw output to what the whole model predicts.
    output_names : tuple of str, optional
    computes_in : numpy.dtype
        The precision in which the library adds up.
    is_boosted : bool
        Whether the first trees are a model of their own.
    model : object, optional
        The live model inside all wrappers; None for files and arrays.
    library : Library, optional
    preprocessing : LivePreprocessing, optional
        Steps of Pipelines before the model.
    target_link : Link, optional
        What a TransformedTargetRegressor does to predictions; None where that is nothing.
    model_link : Link, optional
        The link of ``model`` itself, where ``target_link`` changes it.
    """

    representation: TreeEnsemble | LinearTrees | Products
    rules: InputRules
    kind: str = "trees"
    link: Link = UNKNOWN
    output_names: tuple[str, ...] | None = None
    computes_in: np.dtype[Any] = _DOUBLE
    is_boosted: bool = False
    model: Any = None
    library: Library | None = None
    preprocessing: LivePreprocessing | None = None
    target_link: Link | None = None
    model_link: Link | None = None

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names that data frames are checked against."""
        return self.rules.feature_names

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""
        return self.rules.n_features

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return self.representation.n_outputs

    @property
    def is_trees(self) -> bool:
        """Whether the representation is of trees."""
        return isinstance(self.representation, TreeEnsemble | LinearTrees)

    @property
    def trees(self) -> TreeEnsemble:
        """The representation, where it is a `TreeEnsemble`."""
        if isinstance(self.representation, LinearTrees):
            raise UnsupportedModelError(
                f"model ({self.kind}) has linear functions in its leaves (linear_tree=True). Such a model is explained "
                "by itself, but not as a part of another one, nor as a spectrum."
            )
        if not isinstance(self.representation, TreeEnsemble):
            raise UnsupportedModelError(f"model is a {self.kind}, which is not a tree model.")
        return self.representation

    def predict(self, X: Any) -> Floats:
        """Return the raw output (n_rows, n_outputs) of the caller's rows."""
        if self.preprocessing is not None:
            X = self.preprocessing.transform(X, "X")
        return self.representation.predict(self.rules.encode(X))

    def select(self, frame: Any) -> Any:
        """Return the columns of the model out of a data frame, found by name; raise if one is missing or unknown."""
        return open_batch(frame, (), self.feature_names).features

    def library_output(self, frame: Any, path: Path | None = None) -> Floats:
        """Return the raw output (n_rows, n_outputs) of a pandas frame by the model's own library.

        Columns are in the model's order, and labels may be texts. ``path`` is the file that the model was read from,
        where there is no live model.
        """
        library, reading = self.library, self
        if self.model is None and path is not None and library is not None and library.load is not None:
            reading = self.replace(model=library.load(path))
        if reading.model is not None and library is not None and library.ask is not None:
            trained = self.rules.as_trained(frame)
            for answer in library.ask(reading, Question(trained, self.rules.encode(trained), "row {}", True)):
                if answer.transform is None:
                    return np.asarray(answer.outputs, dtype=np.float64).reshape(len(frame), -1)
        raise UnsupportedModelError(
            f"the model ({self.kind}) does not tell its raw output, or cannot be asked."
        )

    def replace(self, **changes: Any) -> Reading:
        """Return a copy with attributes of the reading, of its rules or of its trees changed."""
        own = {name: value for name, value in changes.items() if name in _FIELDS}
        of_rules = {name: value for name, value in changes.items() if name in _RULES}
        of_trees = {
            name: value for name, value in changes.items() if name not in own and name not in of_rules
        }
        made = replace(self, **own) if own else self
        if of_trees:
            made = made.with_trees(made.trees.replace(**of_trees))
        return replace(made, rules=made.rules.replace(**of_rules)) if of_rules else made

    def with_trees(self, trees: TreeEnsemble) -> Reading:
        """Return a reading with other trees, and with what the rules say of these."""
        return replace(self, representation=trees, rules=self.rules.replace(**_rules_of(trees)))

    def __repr__(self) -> str:
        return f"Reading({self.kind}, {self.representation!r})"


_FIELDS = {entry.name for entry in fields(Reading)}
_RULES = {entry.name for entry in fields(InputRules)} - {"dtype", "n_features"}


def _rules_of(trees: TreeEnsemble) -> dict[str, Any]:
    tested = np.zeros(trees.n_features + 1, dtype=bool)
    tested[trees.feature] = True  # of leaves the last, which is not a feature
    categorical = tuple(np.flatnonzero(trees.is_categorical).tolist())
    unused = tuple(np.flatnonzero(~tested[:-1]).tolist())
    return {
        "n_features": trees.n_features,
        "dtype": trees.dtype,
        "categorical": categorical,
        "unused": unused,
    }


def tree_reading(
    kind: str,
    nodes: dict[str, Any],
    n_features: int,
    dtype: Any,
    tree_output: Any,
    base: Any,
    *,
    link: Link = UNKNOWN,
    output_names: tuple[str, ...] | None = None,
    computes_in: Any = _DOUBLE,
    is_boosted: bool = False,
    **rules: Any,
) -> Reading:
    """Return the reading of a tree model: ``nodes`` are those of `join`, ``rules`` attributes of `InputRules`."""
    size: dict[str, Any] = {"n_features": n_features, "n_outputs": len(base), "dtype": np.dtype(dtype)}
    trees = TreeEnsemble(**size, tree_output=tree_output, base=base, **nodes)
    made = InputRules(**_rules_of(trees), **rules)
    return Reading(trees, made, kind, link, output_names, np.dtype(computes_in), is_boosted)


def read_ensemble(trees: TreeEnsemble) -> Reading:
    """Return the reading of a plain `TreeEnsemble`."""
    return Reading(trees, InputRules(**_rules_of(trees)))


def product_reading(
    kind: str,
    products: Products,
    feature_names: tuple[str, ...] | None = None,
    output_names: tuple[str, ...] | None = None,
    link: Link = IDENTITY,
    *,
    missing_is_zero: bool = False,
    computes_in: Any = _DOUBLE,
) -> Reading:
    """Return the reading of a model that is a sum of products."""
    rules = InputRules(
        products.n_features,
        _DOUBLE,
        feature_names=feature_names,
        accepts_missing=missing_is_zero,
        missing_is_zero=missing_is_zero,
        finite_only=True,
    )
    return Reading(products, rules, kind, link, output_names, np.dtype(computes_in))


class Question(NamedTuple):
    """Rows that a live model is asked about."""

    asked: Any  # as the library takes them
    rows: NDArray[Any]  # the same rows, encoded
    name: str  # for messages: "row {} of the background"
    whole: bool = False  # whether all trees of a forest have to answer


class Answer(NamedTuple):
    """What a live model says of rows, and how to compute the same from the raw output that was read.

    ``transform`` maps raw outputs to ``outputs``; None where these are raw outputs. ``trees`` are those that answered.
    """

    outputs: Any
    transform: Callable[[Floats], Floats] | None = None
    trees: slice = slice(None)


class Format(NamedTuple):
    """A file or folder that a library saves models in.

    Attributes
    ----------
    suffix : str
        Of the file, ".txt"; "" for a folder.
    read : callable
        From the path (of ".json" from the parsed document) to the reading; None where it is not this library's.
    """

    suffix: str
    read: Callable[[Any], Reading | None]


Reader = Callable[[Any], Reading]


@dataclass(frozen=True, eq=False)
class Library:
    """Everything that is known about a model library.

    Attributes
    ----------
    name : str
        For people: "XGBoost".
    package : str
        The top-level package of its classes, by which models are recognised; the library is not imported for that.
    supported_trees, supported_products : tuple of str
        The models that can be read, for people, an entry for each line of a list.
    tested : str
        Versions that the tests run with.
    trees, products : mapping
        Names of classes to functions that read a model of that class, or of one derived from it.
    ask : callable, optional
        ``ask(reading, question)`` yields what the live model ``reading.model`` says of rows. Anything that it raises
        but `CannotAskError` means that it refuses such rows.
    frames : tuple of str
        Data frame libraries beside pandas whose numbers it takes, by narwhals' names.
    formats : tuple of Format
        Files and folders that can be read.
    load : callable, optional
        Loads the live model from a file, by the library.
    read_bytes : callable, optional
        Reads a model from bytes.
    rows : mapping
        Names of classes of its own that hold rows, to functions ``(X, name)`` that return a matrix or a frame.
    functions : mapping
        Names of classes whose models do not predict from rows as they are, to functions that return one that does.
    members : callable, optional
        The (member, columns) pairs of a model of models, columns None for all; None where a model is not one.
    harmless : set of str
        Classes inside its models that skops does not trust by itself, although loading them runs no other code.
    """

    name: str
    package: str
    supported_trees: tuple[str, ...] = ()
    supported_products: tuple[str, ...] = ()
    tested: str = ""
    trees: Mapping[str, Reader] = field(default_factory=dict)
    products: Mapping[str, Reader] = field(default_factory=dict)
    ask: Callable[[Reading, Question], Iterable[Answer]] | None = None
    frames: tuple[str, ...] = ()
    formats: tuple[Format, ...] = ()
    load: Callable[[Path], Any] | None = None
    read_bytes: Callable[[bytes], Reading] | None = None
    rows: Mapping[str, Callable[[Any, str], Any]] = field(default_factory=dict)
    functions: Mapping[str, Callable[[Any], Callable[[Any], Any]]] = field(default_factory=dict)
    members: Callable[[Any], Sequence[tuple[Any, Any]] | None] | None = None
    harmless: frozenset[str] = frozenset()

    @property
    def supported(self) -> tuple[str, ...]:
        """The models that can be read, for people."""
        return self.supported_trees + self.supported_products

    @property
    def version(self) -> str:
        """Name and version, for people."""
        version = getattr(sys.modules.get(self.package), "__version__", "")
        return f"{self.name} {version}".rstrip()

    def __repr__(self) -> str:
        return f"Library({self.name!r})"


def class_names(model: Any, n_outputs: int) -> tuple[str, ...] | None:
    """Return the names of outputs that are classes; of one output for two classes, that of the positive one."""
    classes = getattr(model, "classes_", None)
    if classes is None or (isinstance(classes, list) and any(np.ndim(known) for known in classes)):
        return None  # or those of several targets
    if (len(classes), n_outputs) == (2, 1):
        classes = classes[1:]
    return tuple(str(c) for c in classes) if len(classes) == n_outputs else None


def fitted_names(model: Any) -> tuple[str, ...] | None:
    """Return the feature names that an estimator was fitted with."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def require_fitted(model: Any, attribute: str) -> Any:
    """Return an attribute that fitting sets; `InputError` where it is not there."""
    found = getattr(model, attribute, None)
    if found is None:
        raise InputError(f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first.")
    return found


def with_names(cells: Any, names: Sequence[str] | None) -> Any:
    """Return a matrix as a pandas frame, so that names are checked; as it is without names or pandas."""
    if names is None or find_spec("pandas") is None:
        return cells
    return import_module("pandas").DataFrame(cells, columns=list(names))


def dense(array: Any) -> Floats:
    """Return coefficients, sparse or not, as an array."""
    return np.asarray(array.toarray() if hasattr(array, "toarray") else array, dtype=np.float64)


def linear_products(weights: Any, constant: ArrayLike) -> Products:
    """Return a linear model with weights (n_outputs, n_features) and constant (n_outputs,)."""
    slopes = np.atleast_2d(dense(weights))
    base = np.zeros(len(slopes)) + np.asarray(constant, dtype=np.float64).reshape(-1)
    if not (np.isfinite(slopes).all() and np.isfinite(base).all()):
        raise InputError("the model has coefficients that are not finite; fit it again.")
    return Products(np.arange(slopes.shape[1], dtype=np.int32), np.ascontiguousarray(slopes.T), base)


def refuse_product(model: Any, why: str, ask: str = "model.predict") -> NoReturn:
    """Raise `UnsupportedModelError`: why a model is not a sum of products, and what to do."""
    raise UnsupportedModelError(
        f"model is a {type(model).__name__}, {why}. Explain it as a black box: "
        f"fs.BlackBoxExplainer({ask}, background)."
    )
