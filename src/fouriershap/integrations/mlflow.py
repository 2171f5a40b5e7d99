"""Explainers in MLflow: logged beside their model, loaded again as explainers or as pyfuncs.

What is logged is the .fshap file and nothing that is pickled, so that a model store need not be trusted with code.
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

from fouriershap import Explainer, InputError, load
from fouriershap._base.checks import check_choice, check_whole
from fouriershap._base.short import short, short_text
from fouriershap.integrations._column_types import ANY, column_types
from fouriershap.integrations._travel import import_engine, through_file

_LOADER = __name__
_FILE = "explainer.fshap"
_OUTS = {"values": "columns", "reasons": "top_k"}  # of a pyfunc, and what `explain_batches` calls them
_TOP_K = 3
_NO_STEPS = (
    "explainer explains a Pipeline with a step that no file keeps (a warning names it): log one of the last step, "
    "`TreeExplainer(pipeline[-1], pipeline[:-1].transform(background))`, which takes transformed rows."
)


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
    """Log an explainer as an MLflow model of the active run; without one, of a run of its own.

    Parameters
    ----------
    explainer : Explainer
        It is compiled and written as by `Explainer.save`. One of a Pipeline is logged with the steps, and takes the
        Pipeline's own rows.
    name : str
        Of the logged model, and what the names of artifacts begin with.
    X : array or data frame, optional
        Rows that ``report`` and ``importance`` are about; types of columns are taken from them, too. None of these rows
        is logged but those that the report shows.
    report : bool
        Whether the report page of X is logged: ``<name>.report.html`` (``pip install 'fouriershap[report]'``).
    importance : bool
        Whether mean sizes of the SHAP values of X are logged, with intervals: ``<name>.importance.json``.
    model_uri : str, optional
        The model that is explained, such as ``info.model_uri`` of what ``log_model`` returned: kept in the metadata.
    interactions : bool
        Whether the file can explain interactions of pairs (see `Explainer.save`).
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
        The explainer explains a Pipeline with a step that no file keeps; a warning names it.

    Examples
    --------
    ::

        import fouriershap as fs, mlflow
        from fouriershap.integrations.mlflow import load_explainer, log_explainer

        with mlflow.start_run():
            model_info = mlflow.xgboost.log_model(model, name="model")
            info = log_explainer(fs.TreeExplainer(model, X), X=X, model_uri=model_info.model_uri)

        load_explainer(info.model_uri).shap_values(X)
        mlflow.pyfunc.load_model(info.model_uri).predict(X, params={"out": "reasons", "top_k": 4})
    """
    mlflow = _import()
    _check(explainer)
    about = {"kind": type(explainer).__name__, "version": version("fouriershap"), "explains": model_uri}
    options["metadata"] = {**(options.get("metadata") or {}), "fouriershap": about}
    log_model = mlflow.pyfunc.log_model
    named = "name" if "name" in parameters_of(log_model).parameters else "artifact_path"  # until MLflow 3
    with tempfile.TemporaryDirectory(prefix="fouriershap-", ignore_cleanup_errors=True) as folder:
        # All files before anything is logged: what fails leaves no half of it behind.
        path = Path(folder) / _FILE
        logged = through_file(explainer, path, _NO_STEPS, interactions=interactions)
        example = X if X is not None else options.get("input_example")
        options.setdefault("signature", _signature(logged, example))
        artifacts = _artifacts(explainer, name, X, report, importance, Path(folder))
        with nullcontext() if mlflow.active_run() else mlflow.start_run(), warnings.catch_warnings():
            # An example would be rows of the user's data: whoever wants one gives it.
            warnings.filterwarnings("ignore", ".*input example was not provided")
            info = log_model(
                **{named: name},
                loader_module=_LOADER,
                data_path=str(path),
                pip_requirements=list(pip_requirements or _requirements()),
                registered_model_name=registered_model_name,
                **options,
            )
            for artifact in artifacts:
                mlflow.log_artifact(str(artifact))
    return info


def load_explainer(uri: str | os.PathLike[str]) -> Explainer:
    """The explainer that `log_explainer` logged.

    Parameters
    ----------
    uri : str
        Of the logged or registered model: ``info.model_uri``, ``models:/name/3``, ``runs:/<id>/explainer``, a folder.

    Raises
    ------
    InputError
        The model is no explainer.

    Examples
    --------
    ::

        explainer = load_explainer("models:/credit-explainer/3")
        explainer.drift(new_rows)
    """
    mlflow = _import()
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=os.fspath(uri)))
    if not (folder / "MLmodel").is_file():
        raise InputError(f"uri is {short(uri)}, which holds no MLflow model.")
    flavor = mlflow.models.Model.load(str(folder)).flavors.get("python_function", {})
    if flavor.get("loader_module") != _LOADER:
        raise InputError(
            f"uri is {short(uri)}, which holds a model of {short_text(flavor.get('loader_module', 'another kind'))} "
            "and no explainer. Give what log_explainer(explainer) returned: info.model_uri."
        )
    return _open(folder / flavor["data"])


class ExplainerModel:
    """What ``mlflow.pyfunc.load_model`` gives: a pyfunc whose predictions are explanations."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """A line per row.

        Parameters
        ----------
        model_input : pandas.DataFrame or array
        params : dict, optional
            ``out``: "values" (a column per player and ``base_value``), "reasons" (the ``top_k`` largest, with names and
            values as text; see `Explainer.explain_batches`) or "prediction".
        """
        given = {"out": "values", "top_k": _TOP_K} | (params or {})
        out = check_choice("out", given["out"], (*_OUTS, "prediction"))
        top_k = check_whole("top_k", given["top_k"])
        rows = _as_frame(model_input)
        if out == "prediction":
            return self.explainer.predict(self.explainer.select(rows))
        return next(iter(self.explainer.explain_batches([rows], out=_OUTS[out], top_k=top_k)))


def _load_pyfunc(path: str) -> ExplainerModel:
    """What MLflow calls to open the file."""
    return ExplainerModel(_open(Path(path)))


def _import() -> Any:
    import_engine("mlflow.pyfunc")  # which not every MLflow has: pyfuncs need pandas
    return import_engine("mlflow")


def _open(path: Path) -> Explainer:
    explainer = load(path)
    if not isinstance(explainer, Explainer):
        raise InputError(f"{short_text(path)} holds a {type(explainer).__name__}, and no explainer.")
    return explainer


def _check(explainer: Any) -> None:
    if not isinstance(explainer, Explainer):
        raise InputError(f"explainer is a {type(explainer).__name__}; give an explainer.")


def _requirements() -> list[str]:
    return [f"fouriershap=={version('fouriershap')}", "pandas"]


def _artifacts(
    explainer: Explainer, name: str, X: Any, report: bool, importance: bool, folder: Path
) -> list[Path]:
    """Files about X."""
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
    """Columns and their types, those of values, and the parameters of `ExplainerModel.predict`."""
    models, types = import_engine("mlflow.models"), import_engine("mlflow.types")
    anything = getattr(
        import_engine("mlflow.types.schema"), "AnyType", lambda: "string"
    )()  # since MLflow 2.19
    columns = column_types(explainer, X)
    inputs = [types.ColSpec(anything if kind == ANY else kind, column) for column, kind in columns or ()]
    outputs = [types.ColSpec("double", column.name) for column in explainer.output_schema()]
    params = [types.ParamSpec("out", "string", "values"), types.ParamSpec("top_k", "long", _TOP_K)]
    return models.ModelSignature(
        types.Schema(inputs) if inputs else None, types.Schema(outputs), types.ParamSchema(params)
    )


def _as_frame(rows: Any) -> Any:
    """Rows as MLflow hands them on: a frame, or an array, whose columns have no names."""
    import pandas as pd

    return rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
