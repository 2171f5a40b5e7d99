"""Serve explanations over HTTP: a FastAPI application for one .fshap file.

    FOURIERSHAP_MODEL=model.fshap uvicorn --app-dir examples/serving app:app

The file is memory-mapped, so the worker processes of a machine share it. Any number of threads may use an explainer
at the same time. Neither the model nor its library is needed.
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

MAX_BYTES = 8_000_000  # per request body
MAX_ROWS = 10_000  # per request
LARGE = 50_000  # bytes: larger bodies have a small thread pool of their own
Cell = bool | int | float | str | None


class Question(BaseModel):
    """Rows to explain, each with a value per column, and the number of reasons per row."""

    # Stop at the first wrong row: a list of a million errors would be larger than the body. `to_matrix` checks cells.
    rows: Annotated[list[dict[str, Any]], FailFast()] = Field(min_length=1)
    top_k: int | None = Field(default=None, ge=1)


class Reason(BaseModel):
    """The contribution of one player to one output of a row."""

    feature: str
    contribution: float
    output: str | None = None


class Answer(BaseModel):
    """The outputs of a row (expected value plus all contributions), and the reasons for them."""

    outputs: list[float]
    reasons: list[Reason]


class Answers(BaseModel):
    """An answer per row, and the expected value that all of them share."""

    expected_value: list[float]
    answers: list[Answer]


def create_app(path: str | Path, max_bytes: int = MAX_BYTES, max_rows: int = MAX_ROWS) -> FastAPI:
    """Return the application for one .fshap file."""
    explainer = fs.load(path)
    if not isinstance(explainer, fs.Explainer):
        raise TypeError(f"{path} holds a {type(explainer).__name__}; save an explainer.")
    app = FastAPI(title="fouriershap")
    small, large = ThreadPoolExecutor(8), ThreadPoolExecutor(2)

    @app.get("/model")
    def model() -> dict[str, Any]:
        """Describe the model: columns of the rows, players, outputs."""
        return {
            "kind": explainer.kind,
            "columns": explainer.feature_names,
            "players": explainer.player_names,
            "outputs": explainer.output_names,
            "expected_value": np.atleast_1d(explainer.expected_value).tolist(),
        }

    # Read the raw body: FastAPI would accept any size, and parse its JSON on the event loop.
    content = {"application/json": {"schema": Question.model_json_schema()}}

    @app.post("/explain", response_model=Answers, openapi_extra={"requestBody": {"content": content}})
    async def explain(request: Request) -> Response:
        """Explain rows; 422 with the reason if a row is invalid, 413 if the request is too large."""
        body = await read_body(request, max_bytes)
        pool = large if len(body) > LARGE else small
        text = await asyncio.get_running_loop().run_in_executor(pool, answers, explainer, body, max_rows)
        return Response(text, media_type="application/json")

    return app


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the body; stop reading at the limit, whatever length the request declares."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            raise HTTPException(
                413, f"the body is larger than {max_bytes:,} bytes; send fewer rows at a time."
            )
        parts.append(part)
    return b"".join(parts)


def answers(explainer: fs.Explainer, body: bytes, max_rows: int) -> str:
    """Do the whole work of a request, from JSON to JSON, on a worker thread."""
    try:
        question = Question.model_validate_json(body)
    except ValidationError as error:  # also for JSON that is broken or nested too deeply
        first = error.errors(include_input=False)[0]
        where = "".join(f"{short(part)}: " for part in first["loc"])
        raise HTTPException(422, f"{where}{short(first['msg'])}") from error
    if len(question.rows) > max_rows:
        raise HTTPException(
            413, f"{len(question.rows):,} rows in one request; send at most {max_rows:,} at a time."
        )
    try:
        rows = to_matrix(question.rows, explainer.feature_names)
        if explainer.kind == "spectrum":
            rows = to_bits(rows)
        # As a stream: JSON has no categories. One thread: requests run in parallel.
        (values,) = explainer.explain_batches([rows], layout="array", n_jobs=1)
    except fs.InputError as error:
        raise HTTPException(422, str(error)) from error
    expected = np.atleast_1d(explainer.expected_value)
    values = values.reshape(len(rows), len(explainer.player_names), -1)
    # Row by row, so that other threads run in between.
    texts = (answer(explainer, row, expected, question.top_k).model_dump_json() for row in values)
    return f'{{"expected_value": {json.dumps(expected.tolist())}, "answers": [{",".join(texts)}]}}'


def to_matrix(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> np.ndarray:
    """Return rows (n_rows, n_columns) in the explainer's column order, as objects."""
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
    # Objects even if all cells are numbers: a column of labels may hold numbers, and in an array of floats they would
    # look like codes.
    return np.array([[row[name] for name in columns] for row in rows], dtype=object)


def to_bits(rows: np.ndarray) -> np.ndarray:
    """Return the rows of a spectrum as numbers."""
    try:
        return rows.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise fs.InputError("the columns of a spectrum are bits; give only 0 and 1.") from error


def short(value: Any) -> str:
    """Return at most 80 characters of a value, for messages."""
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:58]} ... {text[-17:]}"


def answer(explainer: fs.Explainer, row: np.ndarray, expected: np.ndarray, top_k: int | None) -> Answer:
    """Return the largest contributions of a row (n_players, n_outputs), output by output."""
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
    if name == "app":  # created when uvicorn asks for it; importing the module opens no file
        return create_app(os.environ["FOURIERSHAP_MODEL"])
    raise AttributeError(name)
