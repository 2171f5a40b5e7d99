"""What a release says of itself in several places is the same everywhere, and its workflows call what there is."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

import docs_pages
import fouriershap
import smoke
import versions
from versions import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
needs_checkout = pytest.mark.skipif(not WORKFLOWS, reason="workflows are not part of an sdist")


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@needs_checkout
def test_the_version_is_one():
    assert re.search(r"^version: (\S+)$", text("CITATION.cff"), re.M)[1] == fouriershap.__version__
    assert re.search(r'version: "(\S+)"', text("conda/recipe.yaml"))[1] == fouriershap.__version__


def test_every_python_that_is_tested_is_named():
    named = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert named == set(versions.PYTHONS)
    assert PROJECT["requires-python"] == f">={versions.PYTHONS[0]}"


@needs_checkout
def test_every_python_is_in_the_workflow():
    assert set(re.findall(r'python: "(3\.\d+)"', text(".github/workflows/tests.yml"))) == set(
        versions.PYTHONS
    )
    assert (
        re.search(r'name: oldest, python: "(3\.\d+)"', text(".github/workflows/tests.yml"))[1]
        == versions.OLDEST
    )


@needs_checkout
def test_workflows_call_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
    called = {name for path in WORKFLOWS for name in re.findall(r"\bmake ([a-z-]+)", path.read_text())}
    called -= {"target"}  # of a comment
    assert called <= targets and {"test", "test-versions", "test-sanitize", "docs", "wheel"} <= called


@needs_checkout
def test_the_recipe_has_the_bounds_of_the_project():
    lines = [*PROJECT["dependencies"], *PYPROJECT["build-system"]["requires"]]
    for name, lowest in (line.split(">=") for line in lines):
        assert f"- {name} >={lowest}" in text("conda/recipe.yaml")


@needs_checkout
def test_there_is_one_address():
    source = PROJECT["urls"]["Source"]
    files = ["CITATION.cff", "conda/recipe.yaml", ".github/ISSUE_TEMPLATE/config.yml"]
    assert all(source in text(path) for path in files)
    assert source in PROJECT["urls"]["Issues"] and source in PROJECT["urls"]["Changelog"]


def wanted(extra: str) -> set[str]:
    """The libraries of an extra, those of the extras that it names included."""
    found: set[str] = set()
    for line in PROJECT["optional-dependencies"][extra]:
        inner = re.fullmatch(r"fouriershap\[(.*)\]", line)
        found |= set().union(*map(wanted, inner[1].split(","))) if inner else {re.split(r"[\[>=]", line)[0]}
    return found


def test_all_is_for_a_desk_and_cluster_for_the_rest():
    heavy = {"pyspark", "dask", "ray", "jax", "xgboost"}
    assert not wanted("all") & heavy
    assert {"shap", "matplotlib", "scikit-learn", "typer", "plotly", "onnx"} <= wanted("all")
    assert wanted("cluster") >= {"pyspark", "dask", "ray"}


def test_the_smoke_test_knows_its_model():
    smoke.main([])


def test_a_wheel_without_kernels_fails_the_smoke_test():
    command = [sys.executable, smoke.__file__, "--native"]
    done = subprocess.run(
        command, env={"FOURIERSHAP_KERNELS": "numpy"}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and "the compiled kernels are missing" in done.stderr


def test_about_says_what_is_installed():
    facts = fouriershap.about()
    assert facts["fouriershap"] == fouriershap.__version__
    assert facts["kernels"].split(",")[0] in ("native", "numpy") and "numpy " in facts["libraries"]


@needs_checkout
def test_every_page_with_code_says_what_to_install():
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    lines = {name: docs_pages.install_line(text) for name, text in texts.items() if docs_pages.has_code(text)}
    assert len(lines) > 10 and None not in lines.values()
    assert lines["tutorial.md"] == ("fouriershap[shap]", "scikit-learn", "pandas")


def test_a_page_that_needs_more_than_it_says_fails(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(
        "`pip install fouriershap[x] y`\n\n```pycon\n>>> import nowhere_to_be_found\n>>> 1 + 1\n2\n\n```\n"
    )
    assert docs_pages.install_line(page.read_text()) == ("fouriershap[x]", "y")
    assert docs_pages.main(["--run", str(page)]) == 1
    assert "nowhere_to_be_found" in capsys.readouterr().out
