"""Explanations over HTTP: a FastAPI application around one .fshap file.

    FOURIERSHAP_MODEL=model.fshap uvicorn --app-dir examples/serving app:app

The file is memory-mapped, so that the worker processes of one machine share it; an explainer may be used by any
number of threads at once. Neither the model nor its library is needed.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import fouriershap as fs

Cell = bool | int | float | str | None


class Question(BaseModel):
    """Rows to explain, each a value per column, and the number of reasons to give for each."""

    rows: list[dict[str, Cell]] = Field(min_length=1, max_length=10_000)
    top_k: int | None = Field(default=None, ge=1)


class Reason(BaseModel):
    """What one player did to one output of one row."""

    feature: str
    contribution: float
    output: str | None = None


class Answer(BaseModel):
    """The outputs of a row (expected value and all contributions together), and the reasons for them."""

    outputs: list[float]
    reasons: list[Reason]


class Answers(BaseModel):
    """An answer per row, and the expected value that all of them start from."""

    expected_value: list[float]
    answers: list[Answer]


def create_app(path: str | Path) -> FastAPI:
    """The application for one .fshap file."""
    explainer = fs.load(path)
    if not isinstance(explainer, fs.Explainer):
        raise TypeError(f"{path} holds a {type(explainer).__name__}; save an explainer.")
    app = FastAPI(title="fouriershap")
    expected = np.atleast_1d(explainer.expected_value)

    @app.get("/model")
    def model() -> dict[str, Any]:
        """What is explained: columns of the rows, players, outputs."""
        return {
            "explainer": type(explainer).__name__,
            "columns": explainer.feature_names,
            "players": explainer.player_names,
            "outputs": explainer.output_names,
            "expected_value": expected.tolist(),
        }

    # Not `async`: FastAPI then runs it on a thread of its pool, and no request waits for another.
    @app.post("/explain")
    def explain(question: Question) -> Answers:
        """Explain rows; 422 with the reason where one cannot be."""
        try:
            rows = to_matrix(question.rows, explainer.feature_names)
            if isinstance(explainer, fs.SpectrumExplainer):
                rows = rows.astype(np.float64)  # bits
            values = explainer.shap_values(rows, n_jobs=1)  # the pool has the threads
        except ValueError as error:  # fs.InputError is one
            raise HTTPException(422, detail=str(error)) from error
        values = values.reshape(len(rows), len(explainer.player_names), -1)
        answers = [answer(explainer, row, expected, question.top_k) for row in values]
        return Answers(expected_value=expected.tolist(), answers=answers)

    return app


def to_matrix(rows: list[dict[str, Cell]], columns: tuple[str, ...]) -> np.ndarray:
    """Rows (n_rows, n_columns) in the explainer's order, as objects."""
    for i, row in enumerate(rows):
        missing = [name for name in columns if name not in row]
        unknown = [name for name in row if name not in columns]
        if missing or unknown:
            raise fs.InputError(f"row {i} lacks the columns {missing} and has the unknown columns {unknown}.")
    # Objects, even where all are numbers: a column of labels may hold numbers, and an array of floats would not
    # tell them from codes.
    return np.array([[row[name] for name in columns] for row in rows], dtype=object)


def answer(explainer: fs.Explainer, row: np.ndarray, expected: np.ndarray, top_k: int | None) -> Answer:
    """The largest contributions of a row (n_players, n_outputs), output by output."""
    names = explainer.output_names or [str(output) for output in range(len(expected))]
    order = np.argsort(-np.abs(row), axis=0, kind="stable")[:top_k]  # (top_k, n_outputs)
    reasons = [
        Reason(
            feature=explainer.player_names[player],
            contribution=row[player, output],
            output=names[output] if len(expected) > 1 else None,
        )
        for output in range(len(expected))
        for player in order[:, output]
    ]
    return Answer(outputs=(expected + row.sum(axis=0)).tolist(), reasons=reasons)


def __getattr__(name: str) -> Any:
    if name == "app":  # what uvicorn asks for; importing the module alone opens no file
        return create_app(os.environ["FOURIERSHAP_MODEL"])
    raise AttributeError(name)
