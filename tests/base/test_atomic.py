"""Files written whole or not at all: permissions, links, full disks; and read while another takes their place."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from typer.testing import CliRunner

import fouriershap as fs
from cli_files import model_and_rows, save_rows
from fouriershap._base import files
from fouriershap._base.atomic import atomic_file
from fouriershap.cli._app import app

SMALL = fs.Spectrum([[1, 0]], [1.0])
LARGE = fs.Spectrum(np.eye(60, dtype=bool), np.arange(60.0))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Permissions and links


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400, 0o755])
def test_permissions_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "h.fshap"
    SMALL.save(path)
    path.chmod(mode)
    LARGE.save(path)
    assert mode_of(path) == mode
    assert fs.load(path) == LARGE


def test_nobody_else_reads_the_unfinished_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch()
    path.chmod(0o600)
    with atomic_file(path) as temporary:
        assert mode_of(temporary) == 0o600
        temporary.write_text("secret")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "h.fshap"
    SMALL.save(path)
    os.chown(path, 1234, 4321)
    LARGE.save(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_one(tmp_path: Path, there: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link, second = (
        tmp_path / "elsewhere" / "v1.fshap",
        tmp_path / "now.fshap",
        tmp_path / "second.fshap",
    )
    if there:
        SMALL.save(target)
    link.symlink_to(Path("elsewhere") / "v1.fshap")
    second.symlink_to(link)
    LARGE.save(second)
    assert link.is_symlink() and second.is_symlink() and not target.is_symlink()
    assert fs.load(target) == fs.load(second) == LARGE
    assert {entry.name for entry in target.parent.iterdir()} == {"v1.fshap"}


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        SMALL.save(tmp_path / "a")
    assert (tmp_path / "a").is_symlink() and (tmp_path / "b").is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name")
def test_a_pipe_stays_one(tmp_path: Path) -> None:
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    SMALL.save(path)
    reader.join()
    assert path.is_fifo()
    (tmp_path / "copy").write_bytes(found[0])
    assert fs.load(tmp_path / "copy") == SMALL


def test_a_folder_is_an_error_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(OSError), atomic_file(tmp_path) as temporary:
        temporary.write_text("x")
    assert not list(tmp_path.iterdir())


# Full disks. The limit of a file's size is the kernel's own, in a child process.


def in_little_room(folder: Path, code: str, room: int = 20_000) -> subprocess.CompletedProcess[str]:
    """Run code that may write files of up to so many bytes."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
    begin = "import numpy as np, fouriershap as fs\nfrom pathlib import Path\n"
    script = limit + begin + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


WRITERS = {
    "explainer": """
        large = fs.Spectrum(np.eye(600, dtype=bool), np.arange(600.0))
        write = lambda: fs.SpectrumExplainer(large, np.zeros((1, 600))).save("there")
    """,
    "spectrum": """
        large = fs.Spectrum(np.eye(600, dtype=bool), np.arange(600.0))
        write = lambda: large.save("there")
    """,
    "report": """
        small = fs.SpectrumExplainer(fs.Spectrum([[1, 0]], [1.0]), [[0, 0]])
        write = lambda: small.report(np.zeros((1, 2)), "there")
    """,
}


@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_is_an_error_of_ours(tmp_path: Path, writer: str) -> None:
    (tmp_path / "there").write_text("before")
    again = """
        try:
            write()
        except fs.DiskFullError as error:
            assert isinstance(error, OSError) and type(error.__cause__) is OSError
            assert error.errno == error.__cause__.errno
            print(error)
    """
    done = in_little_room(tmp_path, textwrap.dedent(WRITERS[writer]) + textwrap.dedent(again))
    assert done.returncode == 0, done.stderr
    assert "there" in done.stdout and "disk is full" in done.stdout and len(done.stdout.splitlines()) == 1
    (left,) = tmp_path.iterdir()
    assert left.read_text() == "before"


@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_answers_on_a_full_disk(tmp_path: Path, suffix: str) -> None:
    model, X = model_and_rows("sklearn.skops")
    fs.TreeExplainer(model, X, n_jobs=1).save(tmp_path / "m.fshap")
    rows = X.iloc[np.arange(3000) % len(X)].reset_index(drop=True)
    save_rows(rows, tmp_path / "rows.parquet")
    target = tmp_path / f"out{suffix}"
    target.write_text("before")
    code = f"""
        from fouriershap.cli import main
        import sys
        sys.argv = ["fouriershap", "explain", "m.fshap", "rows.parquet", "-o", "{target.name}"]
        main()
    """
    done = in_little_room(tmp_path, code, 2000)
    assert done.returncode == 1
    assert done.stderr.startswith("fouriershap: error: ") and "disk is full" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert target.read_text() == "before"
    assert {entry.name for entry in tmp_path.iterdir()} == {"m.fshap", "rows.parquet", target.name}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_device_that_is_full() -> None:
    with pytest.raises(fs.DiskFullError, match="/dev/full") as caught:
        LARGE.save("/dev/full")
    assert caught.value.errno == errno.ENOSPC
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_other_errors_of_the_system_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SMALL.save(tmp_path / "none" / "h.fshap")
    with pytest.raises(OSError, match="of the rows") as caught, atomic_file(tmp_path / "x"):
        raise OSError(errno.EIO, "of the rows that are read")
    assert not isinstance(caught.value, fs.FourierShapError)


def test_the_command_line_writes_through_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model, X = model_and_rows("sklearn.skops")
    fs.TreeExplainer(model, X, n_jobs=1).save("m.fshap")
    save_rows(X[:5], Path("rows.parquet"))
    Path("real.csv").touch(0o600)
    Path("link.csv").symlink_to("real.csv")
    result = CliRunner().invoke(app, ["explain", "m.fshap", "rows.parquet", "-o", "link.csv"])
    assert result.exit_code == 0, result.output
    assert Path("link.csv").is_symlink() and mode_of(Path("real.csv")) == 0o600
    assert len(Path("real.csv").read_text().splitlines()) == 6


# Reading while another process writes

REPLACE = """
import itertools, sys
import numpy as np, fouriershap as fs
small, large = fs.Spectrum([[1, 0]], [1.0]), fs.Spectrum(np.eye(60, dtype=bool), np.arange(60.0))
print("ready", flush=True)
for spectrum in itertools.cycle([large, small]):
    spectrum.save(sys.argv[1])
"""


def test_a_file_that_another_process_replaces_all_the_time(tmp_path: Path) -> None:
    path, other = tmp_path / "h.fshap", tmp_path / "other"
    other.mkdir()
    SMALL.save(path)
    writer = subprocess.Popen([sys.executable, "-c", REPLACE, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline() == b"ready\n"
        end, seen, inodes = time.monotonic() + 30, [0, 0], set()
        for _ in range(4000):
            found = fs.load(path)
            seen[int(found == LARGE)] += 1
            assert found in (SMALL, LARGE)
            inodes.add(path.stat().st_ino)
            if time.monotonic() > end and len(inodes) > 1:
                break
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert sum(seen) > 100 and len(inodes) > 1


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any step: what was opened is read to its end."""
    path = tmp_path / "h.fshap"
    for step in ("read_layout", "_check_version", "map_tensors", "_digest", "parse_json"):
        SMALL.save(path)
        real: Callable[..., Any] = getattr(files, step)

        def replacing(*arguments: Any, real: Callable[..., Any] = real, step: str = step) -> Any:
            monkeypatch.setattr(files, step, real)
            LARGE.save(path)
            return real(*arguments)

        monkeypatch.setattr(files, step, replacing)
        assert fs.load(path) == SMALL
        assert fs.load(path) == LARGE


# The layout, with the library that it is from as the referee


def test_the_library_reads_what_is_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    types = [np.float64, np.float32, np.int64, np.int32, np.uint64, np.uint16, np.uint8, np.bool_]
    arrays = {f"a{i}": (rng.random((3, i + 1)) * 9).astype(kind) for i, kind in enumerate(types)}
    arrays |= {"empty": np.zeros((0, 5)), "none": np.zeros((7, 0), np.uint8)}
    files.write(tmp_path / "x.fshap", "x", arrays, {"é": ["ü", 1]})
    with safe_open(tmp_path / "x.fshap", framework="numpy") as file:
        assert set(file.keys()) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(file.get_tensor(name), array, strict=True)
        metadata = file.metadata()
    save_file(arrays, tmp_path / "y.fshap", metadata=metadata)
    found = files.read(tmp_path / "y.fshap")
    assert found.header == {"é": ["ü", 1]}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array, strict=True)
        assert found.arrays[name].flags.aligned and not found.arrays[name].flags.writeable


def test_arrays_at_odd_addresses_are_moved(tmp_path: Path) -> None:
    """Other writers need not pad their headers."""
    path = tmp_path / "odd.fshap"
    LARGE.save(path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = whole[8 : 8 + length].rstrip(b" ")
    header += b" " * (1 + -len(header) % 8)
    path.unlink()
    path.write_bytes(len(header).to_bytes(8, "little") + header + whole[8 + length :])
    assert all(array.flags.aligned for array in files.read(path).arrays.values())
    assert fs.load(path) == LARGE
