"""Where the data sets are: a folder, the user's cache, a public address; and whether they are what they should be."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import sys
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fouriershap import FourierShapError
from fouriershap._base.atomic import atomic_file
from fouriershap._base.messages import error_text, truncated_repr, truncated_text
from paper_data import encodings
from paper_data.encodings import Encoded, Reader

FOLDER = "FOURIERSHAP_DATA"
TIMEOUT_SECONDS = 60.0


class DatasetError(FourierShapError):
    """A data set cannot be had: which, where it was looked for, what to do."""


@dataclass(frozen=True)
class Source:
    """One data set.

    Attributes
    ----------
    file : str
        Its name in the folder, a gzip-compressed CSV.
    url : str
        A public address; ``sha256`` is of the text that is found there (a file of a zip, where it is one), None
        where the bytes are not known.
    bits_sha256, target_sum
        What the encoded data must give: see `check`.
    """

    file: str
    read: Reader
    url: str
    read_url: Reader
    sha256: str | None
    bits_sha256: str
    target_sum: float
    citation: str


_GITHUB = "https://raw.githubusercontent.com/"

SOURCES = {
    "entacmaea": Source(
        file="entacmaea.csv.gz",
        read=encodings.entacmaea,
        url=_GITHUB
        + "dhbrookes/FitnessSparsity/f61e40101eb8c3100bb120ed8736fc8c456c6ee4/data/mtagbfp_raw_data.csv",
        read_url=encodings.entacmaea_original,
        sha256=None,
        bits_sha256="40be0a42bdcfd136853fe01f8154324d00d981a109ffa69fdde82500538de791",
        target_sum=2.437205324640755,
        citation="F. J. Poelwijk, M. Socolich, R. Ranganathan, Learning the pattern of epistasis linking genotype and "
        "phenotype in a protein, Nature Communications 10, 4213 (2019), doi:10.1038/s41467-019-12130-8",
    ),
    "sgemm": Source(
        file="sgemm_product.csv.gz",
        read=encodings.sgemm,
        url="https://archive.ics.uci.edu/static/public/440/sgemm+gpu+kernel+performance.zip",
        read_url=encodings.sgemm,
        sha256="b545b908c203eaa4d0b78c88e3a7196857efc34da3b6da9be774f017f2b5e960",
        bits_sha256="dc24b1ce8b0758017f0b4eeeccfd1c4913ecaf11301f462d2e0a489f9b3f6a2b",
        target_sum=13043.743187429976,
        citation="C. Nugteren, V. Codreanu, CLTune: A Generic Auto-Tuner for OpenCL Kernels, MCSoC 2015; "
        "R. Ballester-Ripoll, E. G. Paredes, R. Pajarola, Sobol Tensor Trains for Global Sensitivity Analysis, "
        "arXiv:1712.00233 (2017); doi:10.24432/C5MK70",
    ),
    "gb1": Source(
        file="gb1.csv.gz",
        read=encodings.gb1,
        url=_GITHUB
        + "RomeroLab/nn-extrapolation/554c9567c74f22c4376ce06bb461b56d72a5edbb/data/elife-16965-supp1-v4.csv",
        read_url=encodings.gb1_original,
        sha256=None,
        bits_sha256="0966b2583eaef548bb51c5b36f60dc836ba63d97a0e13ff14b59bd9c6eb1e2d3",
        target_sum=147.03212918141108,
        citation="N. C. Wu, L. Dai, C. A. Olson, J. O. Lloyd-Smith, R. Sun, Adaptation in protein fitness landscapes "
        "is facilitated by indirect paths, eLife 5:e16965 (2016), doi:10.7554/eLife.16965",
    ),
    "avgfp": Source(
        file="avgfp.csv.gz",
        read=encodings.avgfp,
        url="https://figshare.com/ndownloader/files/4820647",
        read_url=encodings.avgfp,
        sha256="5581230b9888f9960708a4769ce1c9b4453561f0b5f0374525445b4a984d54d5",
        bits_sha256="26e0fcd11af3faa7ccc824aea19d21f3960a5eb3396ac4d1963de2c7f9ebab40",
        target_sum=-26.236937386957827,
        citation="K. S. Sarkisyan et al., Local fitness landscape of the green fluorescent protein, Nature 533, 397 "
        "(2016), doi:10.1038/nature17995",
    ),
}


def find(name: str) -> Encoded:
    """The data set from the folder if one is named, else from the cache, else from its public address."""
    source = SOURCES[name]
    folder = os.environ.get(FOLDER)
    if folder:
        path = Path(folder) / source.file
        if not path.is_file():
            raise DatasetError(
                f"{FOLDER} names a folder without {source.file}. Put the file there, or unset the variable to "
                f"download the data from {source.url}."
            )
        try:
            content = gzip.decompress(path.read_bytes())
        except (OSError, EOFError, zlib.error) as error:
            raise DatasetError(
                f"{truncated_text(path)} is damaged ({error_text(error)}). Put a whole copy of the file there."
            ) from error
        return _read(name, path, content, source.read)
    path = cache_folder() / f"{name}.txt"
    if not path.is_file():
        return _download(name, path)
    return _read(name, path, path.read_bytes(), source.read_url)


def cache_folder() -> Path:
    """The user's cache, by the custom of the system."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fouriershap"


def _download(name: str, path: Path) -> Encoded:
    """Fetch, check and only then keep."""
    source = SOURCES[name]
    try:
        with urllib.request.urlopen(source.url, timeout=TIMEOUT_SECONDS) as answer:
            content = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise DatasetError(
            f"{truncated_repr(name)} cannot be downloaded from {source.url} ({error_text(error)}). Set {FOLDER} to a "
            f"folder that holds {source.file}, or try again with a connection."
        ) from error
    try:
        content = _unzipped(name, content)
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise DatasetError(f"what {source.url} sent is damaged ({error_text(error)}); try again.") from error
    found = hashlib.sha256(content).hexdigest()
    if source.sha256 is not None and found != source.sha256:
        raise DatasetError(
            f"{source.url} holds something else than it did: SHA-256 {found}, expected {source.sha256}. Nothing "
            f"was kept. Set {FOLDER} to a folder that holds {source.file}."
        )
    encoded = _read(name, source.url, content, source.read_url)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)
    return encoded


def _unzipped(name: str, content: bytes) -> bytes:
    """The CSV of a zip file, or of a zip file inside it; any other content as it is."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.namelist():
            if member.lower().endswith((".csv", ".zip")):
                return _unzipped(name, archive.read(member))
    raise DatasetError(
        f"{SOURCES[name].url} is a zip file without a CSV. Set {FOLDER} to a folder with the data."
    )


def _read(name: str, place: Path | str, content: bytes, read: Reader) -> Encoded:
    try:
        encoded = read(content.decode("utf-8-sig"))
    except (ValueError, IndexError) as error:
        raise DatasetError(
            f"{truncated_text(place)} is not the data set {truncated_repr(name)}: {error_text(error)}."
        ) from error
    check(name, place, encoded)
    return encoded


def check(name: str, place: Path | str, encoded: Encoded) -> None:
    """Raise unless the bits have their checksum and the targets, which sources round differently, their sum."""
    source = SOURCES[name]
    bits, total, scale = fingerprint(encoded)
    if bits != source.bits_sha256 or abs(total - source.target_sum) > 1e-8 * scale:
        raise DatasetError(
            f"{truncated_text(place)} is not the data set {truncated_repr(name)} of the paper: its "
            f"{encoded.X.shape[0]:,} rows of "
            f"{encoded.X.shape[1]} bits or their targets differ. Remove the file, and load again."
        )


def fingerprint(encoded: Encoded) -> tuple[str, float, float]:
    """SHA-256 of the bits; a sum of the targets in which each row has its own weight, and the sum of their sizes."""
    bits = hashlib.sha256(np.packbits(encoded.X).tobytes()).hexdigest()
    weights = np.cos(np.arange(len(encoded.y)))
    return bits, float(encoded.y @ weights), float(np.abs(encoded.y).sum())
