"""The paper's data sets: encodings, checks, and the download, from a server on this machine."""

from __future__ import annotations

import functools
import gzip
import http.server
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import paper_data
from fouriershap import FourierShapError, InputError
from paper_data import encodings, sources

SHAPES = {
    "entacmaea": (8192, 13, 13),
    "sgemm": (241_600, 40, 14),
    "gb1": (149_361, 80, 4),
    "avgfp": (49_089, 236, 236),
}
GB1 = (
    "variant,fitness,imputed,hd,count_input,count_selected\nVDGV,1,0,0,5,6\nADGV,0.5,0,1,3,4\nAAAA,9,1,4,,\n"
)
GB1_ORIGINAL = "Variants,HD,Count input,Count selected,Fitness\nVDGV,0,5,6,1\nADGV,1,3,4,0.5\n"
AVGFP = (
    "aaMutations,uniqueBarcodes,medianBrightness,std\n,3,3.5,\nSA2D,1,1.0,\nSA2G,1,2.0,\nSA2D:SN235*,1,4.0,\n"
)


@pytest.mark.parametrize("name", paper_data.NAMES)
def test_the_real_data(name: str) -> None:
    try:
        data = paper_data.load(name)
    except paper_data.DatasetError as error:
        pytest.skip(f"no data: {error}")
    n_rows, n_bits, n_players = SHAPES[name]
    assert data.X.shape == (n_rows, n_bits)
    assert data.X.dtype == np.uint8
    assert data.y.shape == (n_rows,)
    assert len(data.feature_names) == n_bits
    assert len(set(data.feature_names)) == n_bits
    assert len(data.player_names) == n_players
    assert len(data.groups) == n_bits
    if n_players < n_bits:  # one-hot groups: exactly one bit of each is set
        sums = np.stack([data.X[:, data.players == player].sum(axis=1) for player in range(n_players)])
        assert (sums == 1).all()
    assert "doi:" in data.citation
    assert not data.X.flags.writeable


def test_gb1_in_both_forms_is_the_same() -> None:
    one, other = encodings.gb1(GB1), encodings.gb1_original(GB1_ORIGINAL)
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.y, [1, 0.5])
    np.testing.assert_array_equal(other.y, one.y)
    assert [one.feature_names[i] for i in np.flatnonzero(one.X[0])] == ["V39V", "D40D", "G41G", "V54V"]


def test_entacmaea_in_both_forms_is_the_same() -> None:
    bits = ["0" * 13, "0" * 12 + "1"]
    text = ",".join([*encodings.SITES, "brightness", "other"]) + "\n"
    text += "".join(",".join([*word, str(i), "7"]) + "\n" for i, word in enumerate(bits))
    original = "binary,brightness\ngenotype,combined\n" + "".join(
        f"'{word}',{i}\n" for i, word in enumerate(bits)
    )
    one, other = encodings.entacmaea(text), encodings.entacmaea_original(original)
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.y, other.y)
    assert one.X[1].tolist() == [0] * 12 + [1]


@pytest.mark.parametrize("text", [AVGFP, AVGFP.replace(",", "\t")])
def test_avgfp_merges_genotypes_with_the_same_sites(text: str) -> None:
    found = encodings.avgfp(text)
    expected = {(): 3.5, (2,): 1.5, (2, 235): 4.0}
    assert {tuple(np.flatnonzero(x).tolist()): y for x, y in zip(found.X, found.y, strict=True)} == expected


def test_sgemm_is_one_hot_with_levels_ascending() -> None:
    settings = [f"P{i}" for i in range(14)]
    lines = [[3 - i, *[7] * 13, 1, 2, 3, 4] for i in range(3)]
    text = (
        ",".join([*settings, "a", "b", "c", "d"])
        + "\n"
        + "\n".join(",".join(map(str, line)) for line in lines)
    )
    found = encodings.sgemm(text)
    np.testing.assert_array_equal(found.X[:, :3], np.eye(3)[::-1])
    assert found.feature_names[:4] == ("P0=1", "P0=2", "P0=3", "P1=7")
    assert found.groups[:4] == ("P0", "P0", "P0", "P1")
    np.testing.assert_array_equal(found.y, [2.5] * 3)


# The download: the code as it runs for users, from a server on this machine.


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", folder
        running.shutdown()
        thread.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def small_gb1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: tuple[str, Path]) -> Path:
    """A data set of two rows in place of GB1, at the server's address; the folder that is served."""
    address, folder = server
    bits, total, _ = sources.fingerprint(encodings.gb1(GB1))
    small = replace(sources.SOURCES["gb1"], url=f"{address}/gb1", bits_sha256=bits, target_sum=total)
    monkeypatch.setitem(sources.SOURCES, "gb1", small)
    monkeypatch.delenv(sources.FOLDER, raising=False)
    monkeypatch.setattr(sources, "cache_folder", lambda: tmp_path / "cache")
    return folder


def test_a_download_is_kept(small_gb1: Path) -> None:
    (small_gb1 / "gb1").write_text(GB1_ORIGINAL)
    first = paper_data.load("gb1")
    (small_gb1 / "gb1").unlink()
    second = paper_data.load("gb1")
    np.testing.assert_array_equal(first.X, second.X)
    assert first.player_names == ("V39", "D40", "G41", "V54")
    assert [path.name for path in sources.cache_folder().iterdir()] == ["gb1.txt"]


def test_a_zip_in_a_zip_is_unpacked(small_gb1: Path) -> None:
    content = GB1_ORIGINAL.encode()
    for name in ("data.csv", "inner.zip"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("Readme.txt", "nothing")
            archive.writestr(name, content)
        content = packed.getvalue()
    (small_gb1 / "gb1").write_bytes(content)
    assert len(paper_data.load("gb1").X) == 2


@pytest.mark.parametrize(
    "text",
    [
        GB1_ORIGINAL.replace("ADGV", "CDGV"),  # other bits
        GB1_ORIGINAL.replace("0.5", "0.51"),  # other targets
        GB1_ORIGINAL.replace("0.5", "none"),
        "<html>moved</html>",
    ],
)
def test_other_content_is_refused_and_not_kept(small_gb1: Path, text: str) -> None:
    (small_gb1 / "gb1").write_text(text)
    with pytest.raises(paper_data.DatasetError, match="is not the data set 'gb1'"):
        paper_data.load("gb1")
    assert not sources.cache_folder().exists()


def test_other_bytes_are_refused_where_they_are_known(
    small_gb1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sources.SOURCES, "gb1", replace(sources.SOURCES["gb1"], sha256="0" * 64))
    (small_gb1 / "gb1").write_text(GB1_ORIGINAL)
    with pytest.raises(paper_data.DatasetError, match="SHA-256"):
        paper_data.load("gb1")


def test_no_connection_says_what_to_do(small_gb1: Path) -> None:
    with pytest.raises(
        paper_data.DatasetError, match=r"cannot be downloaded.*FOURIERSHAP_DATA.*gb1\.csv\.gz"
    ):
        paper_data.load("gb1")


def test_the_folder_comes_first(small_gb1: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(sources.FOLDER, str(tmp_path))
    with pytest.raises(paper_data.DatasetError, match=r"a folder without gb1\.csv\.gz"):
        paper_data.load("gb1")
    (tmp_path / "gb1.csv.gz").write_bytes(gzip.compress(GB1.encode()))
    assert len(paper_data.load("gb1").y) == 2
    (tmp_path / "gb1.csv.gz").write_bytes(gzip.compress(GB1.replace("ADGV", "WDGV").encode()))
    with pytest.raises(FourierShapError, match="is not the data set"):
        paper_data.load("gb1")


def test_a_file_that_ends_early(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = gzip.compress(GB1.encode())
    (tmp_path / sources.SOURCES["gb1"].file).write_bytes(whole[: len(whole) // 2])
    monkeypatch.setenv(sources.FOLDER, str(tmp_path))
    with pytest.raises(paper_data.DatasetError, match="is damaged"):
        paper_data.load("gb1")


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match=r"'iris'.*'entacmaea'"):
        paper_data.load("iris")
