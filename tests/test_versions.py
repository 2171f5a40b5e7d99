"""`make test-versions` finds every Python, and takes the lower bounds from pyproject.toml."""

import os
import stat
import sys
import tomllib
from pathlib import Path

import pytest

import versions

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PYPROJECT = tomllib.loads((versions.ROOT / "pyproject.toml").read_text())


def document(*requirements, extra=()):
    project = {"dependencies": list(requirements), "optional-dependencies": {"more": list(extra)}}
    return {"build-system": {"requires": ["builder>=0.3"]}, "project": project}


def test_lower_bounds_are_those_of_the_project():
    bounds = versions.lower_bounds(PYPROJECT)
    named = {line.partition("==")[0] for line in bounds}
    assert {"numpy", "narwhals", "safetensors", "scikit-learn", "xgboost", "pyarrow", "nanobind"} <= named
    for line in PYPROJECT["project"]["optional-dependencies"]["versions"]:
        assert line.replace(">=", "==") in bounds


def test_what_is_tested_in_one_kind_of_environment_alone():
    oldest, newest = (
        versions.Environment("oldest", "python", ("a==1",)),
        versions.Environment("3.12", "python"),
    )
    extras = PYPROJECT["project"]["optional-dependencies"]
    bounds = versions.lower_bounds(PYPROJECT)
    assert oldest.extra != newest.extra
    for line in extras[oldest.extra]:
        assert line.replace(">=", "==") in bounds  # without a marker, so that it is held to its bound
        name = line.partition(">=")[0]
        assert any(newer.startswith(f"{name}>=") for newer in extras[newest.extra]), f"{name} has no newest"


def test_a_bound_has_one_home():
    assert versions.lower_bounds(document("a>=1.2", extra=["b[x]>=3", "a>=1.2", "c==4", "d[e,f]"])) == (
        "a==1.2",
        "b==3",
        "builder==0.3",
    )
    with pytest.raises(SystemExit, match=r"a>=1\.2 and a>=1\.3: state one bound"):
        versions.lower_bounds(document("a>=1.2", extra=["a>=1.3"]))


def test_a_shim_that_fails_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shims, pyenv = tmp_path / "shims", tmp_path / "pyenv"
    shims.mkdir()
    shim = shims / f"python{HERE}"
    shim.write_text("#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n")
    shim.chmod(stat.S_IRWXU)
    real = pyenv / "versions" / f"{HERE}.4" / "bin" / f"python{HERE}"
    real.parent.mkdir(parents=True)
    real.symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setenv("PATH", str(shims))
    monkeypatch.setenv("PYENV_ROOT", str(pyenv))
    assert versions.find_python(HERE) == str(real)
    real.unlink()
    assert versions.find_python(HERE) == sys.executable
    assert versions.find_python("3.99") is None


def test_a_python_that_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    found = list(versions.environments())
    assert {environment.python for environment in found} <= {sys.executable}
    told = capsys.readouterr().out
    for version in versions.PYTHONS:
        assert (f"Python {version}: not found, skipped" in told) == (version != HERE)
    assert [e.name for e in found if e.constraints] == (["oldest"] if HERE == versions.OLDEST else [])


def test_an_environment_is_made_anew_where_its_requirements_changed():
    newest, oldest = versions.Environment("3.11", "python3.11"), versions.Environment("3.11", "x", ("a==1",))
    assert versions.fingerprint(newest) == versions.fingerprint(newest)
    assert versions.fingerprint(newest) != versions.fingerprint(oldest)


def test_the_tests_are_there():
    for name in versions.TESTS:
        assert list((versions.ROOT / "tests").rglob(f"test_{name}.py")), name
