"""Explanations over HTTP: a FastAPI application around one .fshap file.

    FOURIERSHAP_MODEL=model.fshap uvicorn --app-dir examples/serving app:app

The file is memory-mapped, so that the worker processes of one machine share it; an explainer may be used by any
number of threads at once. Neither the model nor its library is needed.
"""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, FailFast, Field, ValidationError

import fouriershap as fs

MOST_BYTES = 8_000_000  # of a request's body
MOST_ROWS = 10_000  # of a request
LARGE = 50_000  # bytes: a larger body waits for one of the few threads that take such
Cell = bool | int | float | str | None


class Question(BaseModel):
    """Rows to explain, each a value per column, and the number of reasons to give for each."""

    # One wrong row is enough: a list of a million errors would be larger than the body. Cells: see `to_matrix`.
    rows: Annotated[list[dict[str, Any]], FailFast()] = Field(min_length=1)
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


def create_app(path: str | Path, most_bytes: int = MOST_BYTES, most_rows: int = MOST_ROWS) -> FastAPI:
    """The application for one .fshap file."""
    explainer = fs.load(path)
    if not isinstance(explainer, fs.Explainer):
        raise TypeError(f"{path} holds a {type(explainer).__name__}; save an explainer.")
    app = FastAPI(title="fouriershap")
    small, large = ThreadPoolExecutor(8), ThreadPoolExecutor(2)

    @app.get("/model")
    def model() -> dict[str, Any]:
        """What is explained: columns of the rows, players, outputs."""
        return {
            "explainer": type(explainer).__name__,
            "columns": explainer.feature_names,
            "players": explainer.player_names,
            "outputs": explainer.output_names,
            "expected_value": np.atleast_1d(explainer.expected_value).tolist(),
        }

    # The body as it comes: FastAPI would hold any size of it, and read its JSON while all other requests wait.
    content = {"application/json": {"schema": Question.model_json_schema()}}

    @app.post("/explain", response_model=Answers, openapi_extra={"requestBody": {"content": content}})
    async def explain(request: Request) -> Response:
        """Explain rows; 422 with the reason where one cannot be, 413 where there are too many."""
        body = await read_body(request, most_bytes)
        pool = large if len(body) > LARGE else small
        text = await asyncio.get_running_loop().run_in_executor(pool, answers, explainer, body, most_rows)
        return Response(text, media_type="application/json")

    return app


async def read_body(request: Request, most_bytes: int) -> bytes:
    """The body, of which no more is read than it may have; it need not say its length."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most_bytes:
            raise HTTPException(
                413, f"the body is larger than {most_bytes:,} bytes; send fewer rows at a time."
            )
        parts.append(part)
    return b"".join(parts)


def answers(explainer: fs.Explainer, body: bytes, most_rows: int) -> str:
    """The whole work of a request, from JSON to JSON; it runs on a thread of its own."""
    try:
        question = Question.model_validate_json(body)
    except ValidationError as error:  # also of JSON that is broken, or nested too deeply
        first = error.errors(include_input=False)[0]
        where = "".join(f"{short(part)}: " for part in first["loc"])
        raise HTTPException(422, f"{where}{short(first['msg'])}") from error
    if len(question.rows) > most_rows:
        raise HTTPException(413, f"{len(question.rows):,} rows came; send at most {most_rows:,} at a time.")
    try:
        rows = to_matrix(question.rows, explainer.feature_names)
        if isinstance(explainer, fs.SpectrumExplainer):
            rows = to_bits(rows)
        values = explainer.shap_values(rows, n_jobs=1)  # the pools have the threads
    except fs.InputError as error:
        raise HTTPException(422, str(error)) from error
    expected = np.atleast_1d(explainer.expected_value)
    values = values.reshape(len(rows), len(explainer.player_names), -1)
    # Row by row: Python's lock is free in between.
    texts = (answer(explainer, row, expected, question.top_k).model_dump_json() for row in values)
    return f'{{"expected_value": {json.dumps(expected.tolist())}, "answers": [{",".join(texts)}]}}'


def to_matrix(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> np.ndarray:
    """Rows (n_rows, n_columns) in the explainer's order, as objects."""
    known = set(columns)
    for i, row in enumerate(rows):
        missing = [name for name in columns if name not in row]
        unknown = [name for name in row if name not in known]
        if missing or unknown:
            raise fs.InputError(
                f"row {i} lacks the columns {short(missing)} and has the unknown columns {short(unknown)}."
            )
        for name, cell in row.items():
            if not isinstance(cell, Cell):
                raise fs.InputError(
                    f"row {i} holds {short(cell)} in the column {short(name)}; give a number, a text or null."
                )
    # Objects, even where all are numbers: a column of labels may hold numbers, and an array of floats would not
    # tell them from codes.
    return np.array([[row[name] for name in columns] for row in rows], dtype=object)


def to_bits(rows: np.ndarray) -> np.ndarray:
    """The rows of a spectrum are numbers."""
    try:
        return rows.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise fs.InputError("the columns of a spectrum are bits; give only 0 and 1.") from error


def short(value: Any) -> str:
    """At most 80 characters of a value: a message is no place for more."""
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:58]} ... {text[-17:]}"


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
