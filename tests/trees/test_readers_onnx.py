"""ONNX: what graphs do before and behind their trees, and what is refused. onnxruntime is the referee."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import LOGISTIC, SOFTMAX
from fouriershap._libraries.protobuf import Message
from models import numbers
from onnx_models import MODES, random_ensemble, run_onnx

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'fouriershap[onnx]'")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'fouriershap[onnx]'")
helper = onnx.helper
X = numbers(missing=True).astype(np.float32)


def changed(model, *nodes, drop=(), outputs=None, inputs=None):
    """The model with further nodes behind its trees."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.graph.node.extend(nodes)
    if outputs:
        del made.graph.output[:]
        made.graph.output.extend(helper.make_tensor_value_info(name, 1, None) for name in outputs)
    return made


def assert_reads_as(model, rows, tolerance=2e-6):
    ensemble = fs.read_model(model)
    want = run_onnx(model, rows)
    np.testing.assert_allclose(
        ensemble.predict(rows), want.reshape(len(rows), -1), rtol=tolerance, atol=tolerance
    )
    return ensemble


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    operator=st.sampled_from(["TreeEnsembleRegressor", "TreeEnsemble"]),
    before=st.sampled_from(["", "scaler", "falling", "imputer", "arithmetic"]),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 5)),
    tracks=st.booleans(),
)
def test_random_graphs(seed, operator, before, shape, tracks):
    """Rows on the very thresholds of what was read, beside them, far away and missing."""
    n_targets, n_features, depth = shape
    options = {"operator": operator, "n_targets": n_targets, "n_features": n_features, "seed": seed}
    depth = max(depth, operator == "TreeEnsemble")
    model = random_ensemble(**options, depth=depth, modes=MODES[:4], tracks=tracks, before=before)
    ensemble = fs.read_model(model)
    levels = ensemble.trees.threshold[np.isfinite(ensemble.trees.threshold)].astype(np.float32)
    around = [np.nextafter(levels, np.float32(end)) for end in (-np.inf, np.inf)]
    far = np.array([0, -0.0, 1e38, -1e38, np.inf, -np.inf, np.nan, 1e-45], dtype=np.float32)
    pool = np.concatenate([levels, *around, far])
    rows = np.random.default_rng(seed).choice(pool, size=(60, n_features))
    assert_reads_as(model, rows)


@pytest.mark.parametrize("operator", ["TreeEnsembleRegressor", "TreeEnsemble"])
def test_numbers_that_are_compared_for_equality(operator):
    members = (0.0, 1.0, 2.0, 3.0)  # onnxruntime takes small whole numbers alone for sets
    modes = MODES[4:7] if operator == "TreeEnsemble" else MODES[4:6]
    model = random_ensemble(
        operator=operator,
        modes=modes,
        thresholds=(*members, 0.1, -1.5),
        members=members,
        tracks=True,
        n_targets=2,
    )
    rng = np.random.default_rng(0)
    rows = rng.choice([*members, 0.1, -1.5, 0.5, 7.0, 1e9, np.nan, 2.5, 1 + 1e-12], size=(300, 4))
    ensemble = assert_reads_as(model, rows)
    assert ensemble.trees.is_categorical.any()
    explainer = fs.TreeExplainer(model, rows)
    assert explainer.checked
    sums = explainer.shap_values(rows[:50]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(sums, run_onnx(model, rows[:50]), atol=1e-5)


@pytest.mark.parametrize("base", [[], [0.25]])
def test_two_classes_of_which_leaves_name_one(base):
    more = {"base_values": base} if base else {}
    model = random_ensemble(n_classes=2, named=(0,), post_transform="LOGISTIC", **more)
    ensemble = fs.read_model(model)
    assert ensemble.link is LOGISTIC and ensemble.n_outputs == 1
    want = run_onnx(model, X)[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-ensemble.predict(X)[:, 0])), want, atol=1e-6)
    explainer = fs.TreeExplainer(model, X[:50], output="probability")
    assert explainer.checked
    np.testing.assert_allclose(
        explainer.shap_values(X[:9]).sum(axis=1) + explainer.expected_value, want[:9], atol=1e-5
    )


def test_two_classes_of_which_leaves_name_the_second():
    assert_reads_as(random_ensemble(n_classes=2, named=(1,)), X)
    assert_reads_as(random_ensemble(n_classes=2, tracks=True), X)
    refused_ = [
        {"named": named, "base_values": base} for named, base in (((1,), [0.25]), ((0,), [0.25, 0.25]))
    ]
    for more in (*refused_, {"base_values": [0.1, -0.4]}, {"base_values": [0.3]}):
        with pytest.raises(UnsupportedModelError, match="base values"):
            fs.read_model(random_ensemble(n_classes=2, **more))


def test_several_classes():
    model = random_ensemble(n_classes=3, post_transform="SOFTMAX", base_values=[0.1, 0.2, -0.3])
    ensemble = fs.read_model(model)
    assert ensemble.link is SOFTMAX and ensemble.output_names == ("0", "1", "2")
    share = np.exp(ensemble.predict(X))
    np.testing.assert_allclose(share / share.sum(axis=1, keepdims=True), run_onnx(model, X), atol=1e-6)


def test_what_is_linear_behind_the_trees_is_read_and_links_are_not():
    model = random_ensemble()
    constants = [helper.make_tensor(n, 1, [1], [v]) for n, v in (("two", 2.0), ("half", 0.5), ("three", 3.0))]
    steps = [
        helper.make_node("Mul", ["scores", "two"], ["a"]),
        helper.make_node("Sub", ["three", "a"], ["b"]),
        helper.make_node("Div", ["b", "half"], ["c"]),
        helper.make_node("Add", ["c", "two"], ["d"]),
    ]
    linear = changed(model, *steps, outputs=["d"])
    linear.graph.initializer.extend(constants)
    assert_reads_as(linear, X, 1e-5)
    linked = changed(linear, helper.make_node("Sigmoid", ["d"], ["e"]), outputs=["e"])
    ensemble = fs.read_model(linked)
    assert ensemble.link is LOGISTIC
    np.testing.assert_allclose(1 / (1 + np.exp(-ensemble.predict(X))), run_onnx(linked, X), atol=1e-6)
    assert not fs.TreeExplainer(linear, X).checked  # onnxruntime is asked for the trees alone
    other = changed(model, helper.make_node("Erf", ["scores"], ["e"]), outputs=["e"])
    with pytest.raises(UnsupportedModelError, match=r"Erf behind its trees.*onnxruntime"):
        fs.read_model(other)


def test_inputs_of_several_columns_and_types():
    """A column an input, as converters make them of frames: whole numbers, single and double precision."""
    model = random_ensemble(n_features=3)
    graph = model.graph
    del graph.input[:]
    for name, kind in (("a", 1), ("b", 7), ("c", 11)):
        graph.input.append(helper.make_tensor_value_info(name, kind, [None, 1]))
    casts = [helper.make_node("Cast", [name], [f"{name}_"], to=1) for name in "bc"]
    join = helper.make_node("Concat", ["a", "b_", "c_"], ["X"], axis=1)
    nodes = [*casts, join, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    ensemble = fs.read_model(model)
    assert ensemble.feature_names == ("a", "b", "c") and ensemble.rules.dtype == np.float64
    import onnxruntime

    rng = np.random.default_rng(0)
    rows = np.column_stack([numbers()[:, 0], rng.integers(-2, 3, 300), numbers()[:, 1]])
    beside = np.nextafter(np.float64(np.float32(0.3)), np.inf)
    rows[:20, 2] = [beside, 0.3] * 10  # double rows that are rounded on the way
    session = onnxruntime.InferenceSession(model.SerializeToString())
    fed = {"a": rows[:, :1].astype(np.float32), "b": rows[:, 1:2].astype(np.int64), "c": rows[:, 2:]}
    np.testing.assert_allclose(ensemble.predict(rows), session.run(None, fed)[0], atol=2e-6)


def test_double_thresholds_are_not_rounded():
    between = np.float64(0.1) + 1e-12  # float32 cannot tell it from 0.1
    model = random_ensemble(operator="TreeEnsemble", double=True, thresholds=[between, 0.3])
    rows = np.random.default_rng(0).choice([0.1, between, np.nextafter(between, 1), 0.3, 0.2], size=(200, 4))
    assert fs.read_model(model).rules.dtype == np.float64
    assert_reads_as(model, rows, 1e-12)


@pytest.mark.parametrize(
    "kind", [{}, {"n_targets": 3}, {"n_classes": 3}, {"operator": "TreeEnsemble"}], ids=str
)
def test_double_input_is_checked_in_the_precision_of_the_scores(kind):
    model = random_ensemble(double=True, n_trees=100, **kind)
    rows = np.random.default_rng(0).normal(size=(50, 4))
    explainer = fs.TreeExplainer(model, rows)
    assert explainer.checked
    want = run_onnx(model, rows).reshape(len(rows), -1)
    np.testing.assert_allclose(
        fs.read_model(model).predict(rows), want, rtol=0, atol=1e-6 * np.abs(want).max()
    )


def test_paths_bytes_and_messages_read_alike(tmp_path):
    model = random_ensemble(tracks=True)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    want = fs.read_model(model).predict(X)
    for given_model in (path, str(path), model.SerializeToString()):
        np.testing.assert_array_equal(fs.read_model(given_model).predict(X), want)
        assert isinstance(fs.Explainer(given_model, X).representation, fs.TreeEnsemble)
    with pytest.raises(InputError, match=r"training rows.*background"):
        fs.TreeExplainer(model)


def refused(**options):
    return random_ensemble(**options)


def _with_node(op, **attributes):
    model = random_ensemble()
    node = helper.make_node(op, ["X"], ["Z"], **attributes)
    nodes = [node, *model.graph.node]
    nodes[1].input[0] = "Z"
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: refused(aggregate_function="MAX"), "MAX over its trees"),
        (lambda: _with_node("Normalizer", domain="ai.onnx.ml", norm="L2"), "Normalizer before its trees"),
        (lambda: _with_node("Abs"), "Abs before its trees"),
        (lambda: _with_node("Cast", to=7), "Cast to anything but float"),
        (
            lambda: _with_node(
                "Imputer", domain="ai.onnx.ml", imputed_value_floats=[0.0], replaced_value_float=-9.0
            ),
            "Imputer of a value other than NaN",
        ),
        (
            lambda: _with_node("Scaler", domain="ai.onnx.ml", offset=[0.0], scale=[0.0]),
            "Scaler by 0",
        ),
        (
            lambda: _with_node("Scaler", domain="ai.onnx.ml", offset=[0.0] * 3, scale=[1.0]),
            "3 numbers for 4 columns",
        ),
        (lambda: refused(modes=("BRANCH_EQ", "BRANCH_LEQ")), "both by order and for equality"),
        (lambda: refused(modes=("BRANCH_EQ",), before="scaler"), "for equality"),
    ],
)
def test_what_is_refused_by_name(build, said):
    with pytest.raises(UnsupportedModelError, match=said) as caught:
        fs.read_model(build())
    assert "fouriershap fit" in str(caught.value) and "onnxruntime" in str(caught.value)


def test_graphs_without_trees_or_with_two():
    identity = helper.make_graph([helper.make_node("Identity", ["X"], ["Y"])], "none", [], [])
    with pytest.raises(UnsupportedModelError, match=r"0 ensembles of trees.*Identity"):
        fs.read_model(helper.make_model(identity))
    model = random_ensemble()
    model.graph.node.append(model.graph.node[0])
    with pytest.raises(UnsupportedModelError, match="2 ensembles of trees"):
        fs.read_model(model)


def test_nodes_that_are_shared():
    """As converters write a test of several labels: both branches of a chain lead to one and the same node."""
    numbers_ = {
        "nodes_treeids": [0] * 5,
        "nodes_nodeids": [0, 1, 2, 3, 4],
        "nodes_featureids": [0, 0, 1, 0, 0],
    }
    modes = ["BRANCH_EQ", "BRANCH_EQ", "BRANCH_EQ", "LEAF", "LEAF"]
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["scores"],
        domain="ai.onnx.ml",
        **numbers_,
        nodes_modes=modes,
        nodes_values=[1.0, 2.0, 5.0, 0.0, 0.0],
        nodes_truenodeids=[2, 2, 3, 0, 0],
        nodes_falsenodeids=[1, 3, 4, 0, 0],
        n_targets=1,
        target_treeids=[0, 0],
        target_nodeids=[3, 4],
        target_ids=[0, 0],
        target_weights=[1.0, -2.0],
    )
    shape = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [shape("X", 1, [None, 2])], [shape("scores", 1, [None, 1])])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 18)], ir_version=9
    )
    rows = np.array([[a, b] for a in (1, 2, 3, 1.5, np.nan) for b in (5, 4, np.nan)], dtype=np.float32)
    assert_reads_as(model, rows)
    explainer = fs.TreeExplainer(model, rows, precision="double")
    assert explainer.checked
    got = explainer.shap_values(rows).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(got, run_onnx(model, rows)[:, 0], atol=1e-9)
    node.attribute[[a.name for a in node.attribute].index("nodes_falsenodeids")].ints[1] = 0
    del graph.node[:]
    graph.node.append(node)
    with pytest.raises(InputError, match="go round in circles"):
        fs.read_model(helper.make_model(graph).SerializeToString())


def test_broken_files(tmp_path):
    whole = random_ensemble(tracks=True).SerializeToString()
    rng = np.random.default_rng(0)
    for cut in [0, 1, 3, *rng.integers(4, len(whole) - 1, 60)]:
        with pytest.raises((InputError, UnsupportedModelError), match=r"model is bytes|ONNX|trees"):
            fs.read_model(whole[: int(cut)])
    for _ in range(60):  # whatever is in it, an error of ours or an ensemble, never a crash
        noisy = bytearray(whole)
        for at in rng.integers(0, len(whole), 5):
            noisy[at] = rng.integers(256)
        try:
            fs.read_model(bytes(noisy))
        except (InputError, UnsupportedModelError):
            continue
    (tmp_path / "no.onnx").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"no\.onnx"):
        fs.read_model(tmp_path / "no.onnx")


@settings(max_examples=60, deadline=None)
@given(
    floats=st.lists(st.floats(width=32, allow_nan=False), max_size=40),
    ints=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40),
    strings=st.lists(st.binary(max_size=9), max_size=9),
)
def test_messages_read_as_protobuf_reads_them(floats, ints, strings):
    """Lists are written value by value in onnx's own messages, and packed in tensors."""
    attribute = onnx.AttributeProto(name="n", floats=floats, ints=ints, strings=strings, f=1.5, i=-3)
    read = Message(attribute.SerializeToString())
    assert read.floats(7).tolist() == list(attribute.floats) and read.wholes(8).tolist() == ints
    assert [bytes(blob) for blob in read.blobs(9)] == strings
    assert (read.text(1), read.number(2), read.whole(3), read.whole(99, 7)) == ("n", 1.5, -3, 7)
    packed = onnx.TensorProto(float_data=floats, int64_data=ints)
    again = Message(packed.SerializeToString())
    assert again.floats(4).tolist() == list(packed.float_data) and again.wholes(7).tolist() == ints


def test_long_lists_are_read_quickly():
    """A run of values with keys of their own, longer than what is looked at together."""
    values = np.random.default_rng(0).integers(-(2**40), 2**40, 300_000)
    attribute = onnx.AttributeProto(ints=values.tolist(), floats=values.astype(np.float32).tolist())
    read = Message(attribute.SerializeToString())
    np.testing.assert_array_equal(read.wholes(8), values)
    np.testing.assert_array_equal(read.floats(7), values.astype(np.float32))
