"""The serving example: right answers, also at the same time; bad rows are answered with the reason, and no request
takes more than it may have."""

import asyncio
import importlib.util
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

import fouriershap as fs
from models import CASES, classes, numbers

SOURCE = Path(__file__).parents[2] / "examples" / "serving" / "app.py"


@pytest.fixture(scope="module")
def serving():
    spec = importlib.util.spec_from_file_location("serving_app", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def served(serving, tmp_path_factory):
    """A model with numbers and categories: client, explainer, rows as a frame and as JSON."""
    model, X, _ = CASES["lightgbm"]["frame"]()
    path = tmp_path_factory.mktemp("serving") / "model.fshap"
    fs.Explainer(model, X).save(path)
    rows = X.astype({"colour": object, "size": object})
    rows = rows.astype(object).where(rows.notna(), None)
    return TestClient(serving.create_app(path)), fs.load(path), X, rows.to_dict("records")


def contributions(answer, names):
    found = {reason["feature"]: reason["contribution"] for reason in answer["reasons"]}
    return np.array([found[name] for name in names])


def test_answers_are_the_values(served):
    client, explainer, X, rows = served
    shown = client.get("/model").json()
    assert shown["columns"] == list(explainer.feature_names) and shown["kind"] == "trees"
    response = client.post("/explain", json={"rows": rows[:20]})
    assert response.status_code == 200
    body = response.json()
    want = explainer.shap_values(X[:20])
    got = np.array([contributions(answer, explainer.player_names) for answer in body["answers"]])
    np.testing.assert_array_equal(got, want)
    totals = np.array([answer["outputs"][0] for answer in body["answers"]])
    np.testing.assert_allclose(totals, want.sum(axis=1) + explainer.expected_value)
    top = client.post("/explain", json={"rows": rows[:1], "top_k": 2}).json()["answers"][0]["reasons"]
    assert [abs(r["contribution"]) for r in top] == sorted(np.abs(want[0]))[::-1][:2]


def test_requests_at_the_same_time(served):
    client, explainer, X, rows = served
    want = explainer.shap_values(X)

    def ask(i):
        answer = client.post("/explain", json={"rows": [rows[i]]}).json()["answers"][0]
        return np.array_equal(contributions(answer, explainer.player_names), want[i])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(120)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"a": "much"}, "column 'a' has a value that is not a number"),
        ({"a": 10**400}, "column 'a' has a value that is not a number"),
        ({"a": [1]}, "row 0 holds [1] in the column a; give a number"),
        ({"colour": {"b": [1]}}, "row 0 holds {'b': [1]} in the column colour"),
        ({"z": 1}, r"unknown columns ['z']"),
        ({"a": ...}, r"row 0 lacks the columns ['a']"),
    ],
)
def test_bad_rows_are_answered_with_the_reason(served, change, reason):
    client, _, _, rows = served
    row = {name: value for name, value in (rows[0] | change).items() if value is not ...}
    response = client.post("/explain", json={"rows": [row]})
    assert response.status_code == 422 and reason in str(response.json()["detail"])


@pytest.mark.parametrize(
    "body", [{}, {"rows": []}, {"rows": [1]}, {"rows": [{}], "top_k": 0}, {"rows": "all"}]
)
def test_bad_questions(served, body):
    assert served[0].post("/explain", json=body).status_code == 422


def test_missing_values_that_a_model_does_not_take(serving, tmp_path):
    from sklearn.ensemble import GradientBoostingClassifier

    X = pd.DataFrame(numbers(), columns=list("abcd"))
    model = GradientBoostingClassifier(n_estimators=3).fit(X, classes(X.to_numpy(), 3))
    explainer = fs.Explainer(model, X)
    explainer.save(tmp_path / "m.fshap")
    client = TestClient(serving.create_app(tmp_path / "m.fshap"))
    row = X.iloc[0].to_dict()
    answer = client.post("/explain", json={"rows": [row]}).json()["answers"][0]
    assert len(answer["outputs"]) == 3 and {r["output"] for r in answer["reasons"]} == {"0", "1", "2"}
    response = client.post("/explain", json={"rows": [row | {"b": None}]})
    assert response.status_code == 422 and "missing value in row 0, column 'b'" in response.json()["detail"]


def test_spectra_and_files_of_other_things(serving, tmp_path, monkeypatch):
    h = fs.Spectrum([[1, 0], [1, 1]], [1.0, 0.5])
    fs.Explainer(h, [[0, 0]]).save(tmp_path / "h.fshap")
    monkeypatch.setenv("FOURIERSHAP_MODEL", str(tmp_path / "h.fshap"))
    client = TestClient(serving.app)
    row = {"Feature 0": 1, "Feature 1": 1}
    assert client.post("/explain", json={"rows": [row]}).json()["answers"][0]["outputs"] == [-0.5]
    bad = client.post("/explain", json={"rows": [row | {"Feature 0": 2}]})
    assert bad.status_code == 422 and "only 0 and 1" in bad.json()["detail"]
    for other in ("much", None, 10**400):
        bad = client.post("/explain", json={"rows": [row | {"Feature 0": other}]})
        assert bad.status_code == 422 and "only 0 and 1" in bad.json()["detail"]
    h.save(tmp_path / "plain.fshap")
    with pytest.raises(TypeError, match="save an explainer"):
        serving.create_app(tmp_path / "plain.fshap")


# Limits


def test_too_many_rows(serving, served, tmp_path):
    _, explainer, _, rows = served
    explainer.save(tmp_path / "m.fshap")
    client = TestClient(serving.create_app(tmp_path / "m.fshap", max_rows=20))
    assert client.post("/explain", json={"rows": rows[:20]}).status_code == 200
    response = client.post("/explain", json={"rows": rows[:21]})
    assert response.status_code == 413
    assert response.json()["detail"] == "21 rows in one request; send at most 20 at a time."
    assert served[0].post("/explain", json={"rows": [{}] * (serving.MAX_ROWS + 1)}).status_code == 413


@pytest.mark.parametrize("says_length", [True, False])
def test_too_large_a_body(serving, served, tmp_path, says_length):
    """No more is taken in than may be, whether or not the body says how long it is."""
    _, explainer, _, rows = served
    explainer.save(tmp_path / "m.fshap")
    app = serving.create_app(tmp_path / "m.fshap", max_bytes=10_000)
    body = json.dumps({"rows": rows[:2]}).encode()
    assert asyncio.run(ask(app, [body, b" " * (10_000 - len(body))], says_length))[0] == 200
    status, detail, asked = asyncio.run(ask(app, [body, *[b" " * 1000] * 1000], says_length))
    assert status == 413 and "larger than 10,000 bytes" in detail
    assert asked < 15  # of the 1,001 parts


async def ask(app, parts, says_length):
    """What an application answers to a body that comes in parts: status, detail, and the parts that it took."""
    sent, asked = [], 0

    async def receive():
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": parts[asked - 1], "more_body": asked < len(parts)}

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    if says_length:
        headers.append((b"content-length", str(sum(map(len, parts))).encode()))
    scope = {"type": "http", "method": "POST", "path": "/explain", "query_string": b"", "headers": headers}
    await app(scope, receive, send)
    answer = json.loads(b"".join(message.get("body", b"") for message in sent))
    return sent[0]["status"], answer.get("detail"), asked


@pytest.mark.parametrize(
    "body",
    ["[" * 100_000, '{"rows":' * 100_000, '{"rows": [{"a": ' + "[" * 100_000 + "]" * 100_000 + "}]}"],
)
def test_json_that_is_nested_too_deeply(served, body):
    response = served[0].post("/explain", content=body)
    assert response.status_code == 422 and "Invalid JSON: recursion limit" in response.json()["detail"]


@pytest.mark.parametrize("body", ["", "{", "nonsense", b"\xff\xfe", '{"rows": [{"a": 1' + "0" * 5000 + "}]}"])
def test_what_is_no_json(served, body):
    response = served[0].post("/explain", content=body)
    assert response.status_code == 422 and "Invalid JSON" in response.json()["detail"]


LONG = "x" * 10_000


@pytest.mark.parametrize(
    "change", [{"a": LONG}, {LONG: 1}, {"a": [LONG]}, {"a": {LONG: 1}}, {f"{LONG}{i}": 1 for i in range(100)}]
)
def test_messages_hold_no_long_value(served, change):
    client, _, _, rows = served
    for body in ({"rows": [rows[0] | change]}, {"rows": [LONG]}, {"rows": rows[:1], "top_k": LONG}):
        response = client.post("/explain", json=body)
        assert response.status_code == 422
        assert "x" * 81 not in response.text and len(response.text) < 1000


@pytest.mark.parametrize("stage", ["reading", "explaining"])
def test_small_requests_do_not_wait_for_large_ones(serving, served, monkeypatch, stage):
    """More large requests than any pool has threads stand still in the middle; a small one is answered."""
    client, explainer, X, rows = served
    n_large, many = 48, (rows * 4)[:1000]
    arrived, go_on = Semaphore(0), Event()
    if stage == "reading":
        read = serving.Question.model_validate_json
        stop = stopping(read, go_on, lambda body: len(body) > serving.LARGE)
        monkeypatch.setattr(serving.Question, "model_validate_json", stop)
    else:
        explain = explainer.explain_batches
        stop = stopping(explain, go_on, lambda batches: len(batches[0]) == len(many))
        monkeypatch.setattr(
            fs.Explainer, "explain_batches", lambda self, *rest, **options: stop(*rest, **options)
        )
    with TestClient(announcing(client.app, arrived)) as shared, ThreadPoolExecutor(n_large + 1) as pool:
        try:
            large = [pool.submit(shared.post, "/explain", json={"rows": many}) for _ in range(n_large)]
            for _ in large:
                assert arrived.acquire(timeout=200)
            small = pool.submit(shared.post, "/explain", json={"rows": rows[:1]}).result(timeout=200)
            assert not any(one.done() for one in large)
        finally:
            go_on.set()
        monkeypatch.undo()
        got = contributions(small.json()["answers"][0], explainer.player_names)
        np.testing.assert_array_equal(got, explainer.shap_values(X)[0])
        assert [len(one.result().json()["answers"]) for one in large] == [len(many)] * n_large


def stopping(work, go_on, is_large):
    """``work`` that stands still, if it is large, until it may go on."""

    def stopped(content, *rest, **options):
        if is_large(content):
            assert go_on.wait(timeout=300)
        return work(content, *rest, **options)

    return stopped


def announcing(app, arrived):
    """``app`` that tells when it has received the whole body of a request."""

    async def announced(scope, receive, send):
        async def received():
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                arrived.release()
            return message

        await app(scope, received, send)

    return announced


def test_the_example_of_the_page_works(serving, tmp_path, monkeypatch):
    page = (SOURCE.parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    sent = re.search(r"-d '(.*)'", page)[1]
    assert sent in (SOURCE.parent / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], {})
    answer = TestClient(serving.create_app(tmp_path / "model.fshap")).post("/explain", json=json.loads(sent))
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["answers"][0]["reasons"]) == 3
