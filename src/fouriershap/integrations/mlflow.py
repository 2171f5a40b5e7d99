"""Explainers in MLflow: logged beside their model, loaded as explainers or as pyfuncs.

The .fshap file is logged, and nothing is pickled, so that a model store cannot inject code.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.metadata import version
from inspect import signature as parameters_of
from pathlib import Path
from typing import Any

from fouriershap import Explainer, InputError
from fouriershap._base.checks import check_choice, check_int
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap.integrations import _distribute
from fouriershap.integrations._distribute import import_engine, save_and_load

_LOADER = __name__
_FILE = "explainer.fshap"
_LAYOUTS = ("columns", "top_k", "prediction")
_TOP_K = 3
ANY = "any"  # labels may be texts, categories or numbers, but MLflow would accept one of them only


def log_explainer(
    explainer: Explainer,
    name: str = "explainer",
    *,
    X: Any = None,
    report: bool = True,
    importance: bool = True,
    model_uri: str | None = None,
    interactions: bool = False,
    registered_model_name: str | None = None,
    pip_requirements: Sequence[str] | None = None,
    **options: Any,
) -> Any:
    """Log an explainer as an MLflow model of the active run or, without one, of a new run.

    Parameters
    ----------
    explainer : Explainer
        It is compiled and written as by `Explainer.save`. An explainer of a Pipeline is logged with the steps, and
        takes the Pipeline's own rows.
    name : str
        Name of the logged model, and prefix of the names of artifacts.
    X : array or data frame, optional
        Rows for ``report``, ``importance`` and the types of columns. Only rows that the report shows are logged.
    report : bool
        Whether to log the report page of X: ``<name>.report.html`` (``pip install 'fouriershap[report]'``).
    importance : bool
        Whether to log mean absolute SHAP values of X, with intervals: ``<name>.importance.json``.
    model_uri : str, optional
        The explained model, such as ``info.model_uri`` of what ``log_model`` returned, for the metadata.
    interactions : bool
        Whether the file can explain interactions (see `Explainer.save`).
    registered_model_name : str, optional
        Register it under this name.
    pip_requirements : sequence of str, optional
        By default this version of fouriershap, and pandas.
    **options
        Any other argument of ``mlflow.pyfunc.log_model``: ``tags``, ``input_example``, ``signature``, ...

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` is what `load_explainer` and ``mlflow.pyfunc.load_model`` take.

    Raises
    ------
    InputError
        The explainer explains a Pipeline with a step that cannot be saved; a warning names it.

    Examples
    --------
    ::

        import fouriershap as fs, mlflow
        from fouriershap.integrations.mlflow import load_explainer, log_explainer

        with mlflow.start_run():
            model_info = mlflow.xgboost.log_model(model, name="model")
            info = log_explainer(fs.TreeExplainer(model, X), X=X, model_uri=model_info.model_uri)

        load_explainer(info.model_uri).shap_values(X)
        mlflow.pyfunc.load_model(info.model_uri).predict(X, params={"layout": "top_k", "top_k": 4})
    """
    mlflow = _import()
    if not isinstance(explainer, Explainer):
        raise InputError(f"explainer is a {type(explainer).__name__}; give an explainer.")
    about = {"kind": explainer.kind, "version": version("fouriershap"), "explains": model_uri}
    options["metadata"] = {**(options.get("metadata") or {}), "fouriershap": about}
    log_model = mlflow.pyfunc.log_model
    named = "name" if "name" in parameters_of(log_model).parameters else "artifact_path"  # until MLflow 3
    with tempfile.TemporaryDirectory(prefix="fouriershap-", ignore_cleanup_errors=True) as folder:
        # Write all files before logging anything, so that a failure leaves nothing behind.
        path = Path(folder) / _FILE
        logged = save_and_load(explainer, path, interactions=interactions)
        example = X if X is not None else options.get("input_example")
        options.setdefault("signature", _signature(logged, example))
        artifacts = _artifacts(explainer, name, X, report, importance, Path(folder))
        with nullcontext() if mlflow.active_run() else mlflow.start_run(), warnings.catch_warnings():
            # An example would log rows of the user's data: give one if you want that.
            warnings.filterwarnings("ignore", ".*input example was not provided")
            info = log_model(
                **{named: name},
                loader_module=_LOADER,
                data_path=str(path),
                pip_requirements=list(
                    pip_requirements or [f"fouriershap=={version('fouriershap')}", "pandas"]
                ),
                registered_model_name=registered_model_name,
                **options,
            )
            for artifact in artifacts:
                mlflow.log_artifact(str(artifact))
    return info


def load_explainer(uri: str | os.PathLike[str]) -> Explainer:
    """Load an explainer that `log_explainer` logged.

    Parameters
    ----------
    uri : str
        URI of a logged or registered model: ``info.model_uri``, ``models:/name/3``, ``runs:/<id>/name``, a folder.

    Raises
    ------
    InputError
        The model is not an explainer.

    Examples
    --------
    ::

        explainer = load_explainer("models:/credit-explainer/3")
        explainer.drift(new_rows)
    """
    mlflow = _import()
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=os.fspath(uri)))
    if not (folder / "MLmodel").is_file():
        raise InputError(f"uri is {truncated_repr(uri)}, which is not an MLflow model.")
    flavor = mlflow.models.Model.load(str(folder)).flavors.get("python_function", {})
    if flavor.get("loader_module") != _LOADER:
        raise InputError(
            f"uri is {truncated_repr(uri)}, which holds a model of "
            f"{truncated_text(flavor.get('loader_module', 'another kind'))} "
            "instead of an explainer. Give what log_explainer(explainer) returned: info.model_uri."
        )
    return _distribute.load_explainer(folder / flavor["data"])


class ExplainerModel:
    """A pyfunc whose predictions are explanations; returned by ``mlflow.pyfunc.load_model``."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Explain rows, one line per row.

        Parameters
        ----------
        model_input : pandas.DataFrame or array
        params : dict, optional
            ``layout``: "columns" (a column per player and ``base_value``), "top_k" (the ``top_k`` largest, with names
            and values as text; see `Explainer.explain_batches`) or "prediction".
        """
        given = {"layout": "columns", "top_k": _TOP_K} | (params or {})
        layout = check_choice("layout", given["layout"], _LAYOUTS)
        top_k = check_int("top_k", given["top_k"])
        import pandas as pd

        rows = model_input if isinstance(model_input, pd.DataFrame) else pd.DataFrame(model_input)
        if layout == "prediction":
            return self.explainer.predict(self.explainer.select(rows))
        return next(iter(self.explainer.explain_batches([rows], layout=layout, top_k=top_k)))


def _load_pyfunc(path: str) -> ExplainerModel:
    """Open the file; called by MLflow."""
    return ExplainerModel(_distribute.load_explainer(path))


def _import() -> Any:
    import_engine("mlflow.pyfunc")  # which needs pandas
    return import_engine("mlflow")


def _artifacts(
    explainer: Explainer, name: str, X: Any, report: bool, importance: bool, folder: Path
) -> list[Path]:
    """Write files about X."""
    found: list[Path] = []
    if X is None:
        return found
    if report:
        found.append(explainer.report(X, folder / f"{name}.report.html"))
    if importance:
        found.append(folder / f"{name}.importance.json")
        explainer.importance(X).to_json(found[-1])
    return found


def _signature(explainer: Explainer, X: Any) -> Any:
    """Return columns and their types, those of values, and the parameters of `ExplainerModel.predict`."""
    models, types = import_engine("mlflow.models"), import_engine("mlflow.types")
    anything = getattr(
        import_engine("mlflow.types.schema"), "AnyType", lambda: "string"
    )()  # since MLflow 2.19
    columns = column_types(explainer, X)
    inputs = [types.ColSpec(anything if kind == ANY else kind, column) for column, kind in columns or ()]
    outputs = [types.ColSpec("double", column.name) for column in explainer.output_schema()]
    params = [types.ParamSpec("layout", "string", "columns"), types.ParamSpec("top_k", "long", _TOP_K)]
    return models.ModelSignature(
        types.Schema(inputs) if inputs else None, types.Schema(outputs), types.ParamSchema(params)
    )


def column_types(explainer: Explainer, X: Any) -> list[tuple[str | None, str]] | None:
    """Return name (None for columns without names) and type of each input column.

    The type is `ANY` for labels, and that in the frame ``X`` for other columns. Without ``X`` it is "double" or, since
    a Pipeline may drop columns of text, `ANY`. None if the number of columns is unknown: for a Pipeline that was fitted
    on arrays, without ``X``.
    """
    names, without_frame = explainer.input_names, ANY if explainer.has_pipeline else "double"
    if names is None:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        known = int(shape[1]) if len(shape) == 2 else None
        n_columns = known if explainer.has_pipeline else len(explainer.feature_names)
        return None if n_columns is None else [(None, without_frame)] * n_columns
    in_frame = _frame_types(X) | dict.fromkeys(explainer.known_labels, ANY)
    return [(name, in_frame.get(name, without_frame)) for name in names]


def _frame_types(X: Any) -> dict[str, str]:
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return {}
    return {name: _type(dtype, nw) for name, dtype in frame.schema.items()}


def _type(dtype: Any, nw: Any) -> str:
    if dtype.is_integer():
        # The only type of MLflow that holds all values of unsigned integers.
        return "integer" if dtype in (nw.Int8, nw.Int16, nw.Int32, nw.UInt8, nw.UInt16) else "long"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_numeric():
        return "float" if dtype == nw.Float32 else "double"
    return ANY
