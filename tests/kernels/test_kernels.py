"""Every native kernel against the NumPy one, the specification, on random input; and which of the two is used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_cases
import tree_kernel_cases
from fouriershap import _kernels as kernels
from kernel_cases import Case
from reference_kernels import Bound, functions, make_all, reference_of

pytest.importorskip("fouriershap._kernels._native", reason="built without a compiler")
native = kernels._loaded() or import_module("fouriershap._kernels._native")

CASES = kernel_cases.CASES | tree_kernel_cases.CASES


def native_family(family: str) -> Any:
    return getattr(native, family)


def test_every_kernel_has_a_reference_and_a_case() -> None:
    for family in kernels.FAMILIES:
        compiled = functions(getattr(native, family))
        assert compiled <= functions(reference_of(family))
        assert {f"{family}.{name}" for name in compiled} == {n for n in CASES if n.startswith(family + ".")}


def assert_same(got: Any, want: Any, case: Case) -> None:
    """Whole numbers exactly, others within the case's tolerance; dtypes too."""
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for name in want:
            assert_same(got[name], want[name], case)
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype
        tolerance = {"rtol": case.rtol, "atol": case.atol} if want.dtype.kind == "f" else {"rtol": 0}
        np.testing.assert_allclose(got, want, **tolerance)
    else:
        assert got == want


@pytest.mark.parametrize("name", sorted(CASES))
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_native_is_its_reference(name: str, data: st.DataObject) -> None:
    """They return the same, write the same, and change nothing else."""
    case = data.draw(CASES[name]())
    family, function = name.split(".")
    calls = []
    for family_of in (native_family, reference_of):
        copies = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in case.arguments)
        arguments = make_all(copies, family_of)
        calls.append((getattr(family_of(family), function)(*arguments), copies))
    (got, got_arguments), (want, want_arguments) = calls
    assert_same(got, want, case)
    for mine, theirs in zip(got_arguments, want_arguments, strict=True):
        if not isinstance(mine, Bound):
            assert_same(mine, theirs, case)


@given(tree_kernel_cases.walks())
@settings(max_examples=25, deadline=None)
def test_path_shapes(walk: Any) -> None:
    trees, _, _ = walk
    got, want = np.zeros((2, 2, trees.n_trees), dtype=np.int32)
    for family_of, out in ((native_family, got), (reference_of, want)):
        tree_kernel_cases.bound(trees).make(family_of).path_shape(out)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "wrong", [np.zeros((1, 2), np.float32), np.zeros((1, 4))[:, ::2], np.zeros((1, 2)).tolist()]
)
def test_outputs_are_never_converted(wrong: Any) -> None:
    """A copy would take the results with it."""
    columns, start, atoms = np.zeros((1, 1), np.uint64), np.zeros(2, np.int64), np.zeros(0, np.int32)
    given = (native.bits.Terms(start, atoms, np.ones((1, 2))), columns, 0, 1)
    out = np.zeros((1, 2))
    native.bits.evaluate(*given, out)
    np.testing.assert_array_equal(out, 1.0)
    read_only = np.zeros((1, 2))
    read_only.flags.writeable = False
    for refused in (wrong, read_only):
        with pytest.raises(TypeError, match="incompatible"):
            native.bits.evaluate(*given, refused)


def wrong_cases() -> dict[str, tuple[Bound, str]]:
    """Objects of which one array is wrong, by what is said about it."""
    nodes = np.array([[0, 1, 1, 2], [-1, 0, -1, -1], [-1, 0, -1, -1]], dtype=np.int32)
    one, two = np.zeros(1, np.int32), np.full(1, 2, np.int32)
    trees = [
        nodes,
        np.ones((3, 1)),
        one,
        one,
        one,
        two,
        one,
        np.zeros(1, bool),
        np.zeros((0, 1), np.uint64),
        1,
    ]
    cut, none = np.zeros(0, np.uint16), np.zeros(0, np.int32)
    blocks = [np.zeros(2, np.int32), one, none, cut, none, one, one + 1]

    def changed(name: str, arguments: list[Any], position: int, value: Any) -> Bound:
        return Bound(name, (*arguments[:position], value, *arguments[position + 1 :]))

    circle = nodes.copy()
    circle[0, 3] = 0
    return {
        "nodes.shape[1]": (changed("walk.Trees", trees, 0, nodes[:, :3].copy()), "has length 3, but needs 4"),
        "a circle": (changed("walk.Trees", trees, 0, circle), "does not follow its parent"),
        "values": (changed("walk.Trees", trees, 1, np.ones((2, 1))), "`values` has length 2, but needs 3"),
        "roots": (changed("walk.Trees", trees, 2, one + 7), "`roots` contains 7, which is outside 0 to 2"),
        "n_codes": (changed("walk.Trees", trees, 5, one + 1), "a cut beyond the codes"),
        "players": (changed("walk.Trees", trees, 6, one + 1), "`players` contains 1"),
        "base": (changed("tables.Blocks", blocks, 5, one + 1), "a pattern that its block does not have"),
        "starts": (changed("tables.Blocks", blocks, 0, one), "`cut_start` has length 1, but needs 2"),
        "terms": (
            Bound("bits.Terms", (np.array([0, 3]), one, np.ones((1, 1)))),
            "must ascend from 0 to at most 1",
        ),
    }


@pytest.mark.parametrize("name", sorted(wrong_cases()))
def test_wrong_arrays_are_refused(name: str) -> None:
    wrong, message = wrong_cases()[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        wrong.make(native_family)


def test_codes_out_of_range_are_refused() -> None:
    nodes = np.array([[0, 1, 1, 2], [-1, 0, -1, -1], [-1, 0, -1, -1]], dtype=np.int32)
    one, sets = np.zeros(1, np.int32), np.zeros((0, 1), np.uint64)
    trees = native.walk.Trees(nodes, np.ones((3, 1)), one, one, one, one + 2, one, np.zeros(1, bool), sets, 1)
    native.walk.predict(trees, np.ones((1, 1), np.int32), 0, 1, np.zeros((1, 1)))
    with pytest.raises(ValueError, match="`codes` contains 2, which is outside 0 to 1"):
        native.walk.predict(trees, np.full((1, 1), 2, np.int32), 0, 1, np.zeros((1, 1)))
    with pytest.raises(ValueError, match="`rows` 0 to 2 are outside 0 to 1"):
        native.walk.predict(trees, np.ones((1, 1), np.int32), 0, 2, np.zeros((2, 1)))


@given(kernel_cases.cover())
@settings(max_examples=40, deadline=None)
def test_a_cover_holds_every_term(case: Case) -> None:
    start, atoms, _, max_atoms, _, of_term, block_start, block_atoms = case.arguments
    native.build.cover(*case.arguments)
    for k, block in enumerate(of_term):
        held = set(block_atoms[block_start[block] : block_start[block + 1]].tolist())
        assert set(atoms[start[k] : start[k + 1]].tolist()) <= held
        assert len(held) <= max(max_atoms, int(np.diff(start).max()))


@given(kernel_cases.group())
@settings(max_examples=40, deadline=None)
def test_a_group_holds_every_player_of_its_tables(case: Case) -> None:
    start, players, _, _, most_tables, _, of_table, layout = case.arguments
    native.build.group(*case.arguments)
    for table, group in enumerate(of_table):
        assert set(players[start[table] : start[table + 1]].tolist()) <= set(layout[group].tolist())
    assert (np.bincount(of_table, minlength=1) <= most_tables).all()


# Which kernels are used

END_TO_END = textwrap.dedent(
    """
    import warnings
    import numpy as np
    import fouriershap as fs
    from fouriershap import _kernels as kernels

    rng = np.random.default_rng(0)
    frequencies = rng.random((60, 20)) < 0.2
    h = fs.Spectrum(frequencies, rng.standard_normal((60, 2)))
    X, background = rng.integers(0, 2, size=(70, 20)), rng.integers(0, 2, size=(90, 20))
    players = np.arange(20) // 2
    weights = rng.random(90)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tables = fs.spectra.shap_values(h, X, background, players=players, weights=weights, strategy="tables")
        direct = fs.spectra.shap_values(h, X, background, players=players, weights=weights, strategy="direct")
    signs = 1.0 - 2.0 * ((X @ h.frequencies.T.astype(int)) % 2)
    np.testing.assert_allclose(h(X), signs @ h.coefficients, atol=1e-11)
    np.testing.assert_allclose(tables, direct, atol=1e-11)
    expected = h(X) - np.average(h(background), axis=0, weights=weights)
    np.testing.assert_allclose(tables.sum(axis=1), expected, atol=1e-11)
    print(kernels.backend(), kernels.instruction_set(), *(w.category.__name__ for w in caught))
    print(*(w.message for w in caught))
    print(*(w.filename for w in caught))
    """
)


HIDDEN = """
import sys
sys.modules["fouriershap._kernels._native"] = sys.modules["fouriershap._kernels._native_avx2"] = None
"""


def run(program: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_numpy_kernels_on_request_without_a_warning() -> None:
    assert run(END_TO_END, FOURIERSHAP_KERNELS="numpy")[0] == "numpy none"


def test_native_kernels_without_avx2() -> None:
    assert run(END_TO_END, FOURIERSHAP_KERNELS="baseline")[0] == "native baseline"
    # The instruction set is chosen when the module is loaded, so its kernels meet their references over there.
    parity = f"{__file__}::test_native_is_its_reference"
    again = f"import pytest; pytest.main(['-q', '-p', 'no:cacheprovider', {parity!r}])"
    assert f"{len(CASES)} passed" in run(again, FOURIERSHAP_KERNELS="baseline")[-1]


def test_missing_native_kernels_warn_once_and_say_what_to_do() -> None:
    first, message, where = run(HIDDEN + END_TO_END)
    assert first == "numpy none SlowKernelWarning"
    assert "Install a C++ compiler" in message
    assert "pip install" in message
    assert "FOURIERSHAP_KERNELS=numpy" in message
    assert where == "<string>"  # the user's line, not one of ours


def test_native_kernels_can_be_insisted_on() -> None:
    program = textwrap.dedent(
        """
        import fouriershap as fs
        try:
            fs.Spectrum([[1]], [1.0])([[1]])
        except ImportError as error:
            print("ImportError")
        """
    )
    assert run(HIDDEN + program, FOURIERSHAP_KERNELS="native") == ["ImportError"]


def test_unknown_choice_of_kernels() -> None:
    program = textwrap.dedent(
        """
        import fouriershap as fs
        try:
            fs.Spectrum([[1]], [1.0])([[1]])
        except fs.InputError as error:
            print(error)
        """
    )
    assert "'numba'" in run(program, FOURIERSHAP_KERNELS="numba")[0]


def test_this_process_runs_native() -> None:
    assert kernels.backend() == ("numpy" if os.environ.get("FOURIERSHAP_KERNELS") == "numpy" else "native")
    with pytest.raises(AttributeError):
        _ = kernels.nothing


def test_components_that_are_packed_in_parts() -> None:
    """Sixty components of forty players in double are more than is packed at a time."""
    rng = np.random.default_rng(0)
    rows, mixture = (rng.uniform(-0.7, 0.7, (n, 40, 2, 16)) for n in (17, 60))
    rest = (rng.random(60), rng.random((3, 40)), rng.random(3), rng.standard_normal((2, 2, 16)))
    found = [np.ones((17, 40, 2)) for _ in range(2)]
    for module, out in zip((native.products, reference_of("products")), found, strict=True):
        module.components(rows, mixture, *rest, out)
    np.testing.assert_allclose(*found, rtol=1e-10)
