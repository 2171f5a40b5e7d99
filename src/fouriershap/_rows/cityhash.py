"""CityHash64 in version 1.0 (Pike and Alakuijala, 2011).

Models that keep hashes of category labels instead of the labels need it to read rows. Later versions of CityHash give
other numbers. All arithmetic is modulo 2^64.
"""

from __future__ import annotations

from typing import Any

_MASK = (1 << 64) - 1
_K0, _K1 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273
_K2, _K3 = 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_K_PAIR = 0x9DDFEA08EB382D69


def hash_label(label: Any) -> int:
    """Return the 32-bit hash of a category label: of a string, or of an integer or truth value as an integer's text."""
    if isinstance(label, bool):
        label = int(label)
    return cityhash64(str(label).encode()) & 0xFFFFFFFF


def cityhash64(data: bytes) -> int:
    """Return the hash of ``data``, an integer under 2^64.

    Examples
    --------
    >>> cityhash64(b"") == 0x9AE16A3B2F90404F
    True
    """
    n = len(data)
    if n <= 16:
        return _up_to_16(data)
    if n <= 32:
        return _up_to_32(data)
    if n <= 64:
        return _up_to_64(data)
    return _over_64(data)


def _word(data: bytes, start: int) -> int:
    """Return the little-endian 64-bit word at ``start``; a negative start counts from the end."""
    start %= len(data)
    return int.from_bytes(data[start : start + 8], "little")


def _rotate(value: int, by: int) -> int:
    value &= _MASK
    return (value >> by | value << (64 - by)) & _MASK


def _mix(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _pair(low: int, high: int) -> int:
    """One word from two."""
    first = _mix((low ^ high) * _K_PAIR)
    return _mix((high ^ first) * _K_PAIR) * _K_PAIR & _MASK


def _up_to_16(data: bytes) -> int:
    n = len(data)
    if n > 8:
        last = _word(data, -8)
        return _pair(_word(data, 0), _rotate(last + n, n)) ^ last
    if n >= 4:
        first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
        return _pair(n + (first << 3), last)
    if n > 0:
        y = data[0] + (data[n // 2] << 8)
        z = n + (data[-1] << 2)
        return _mix(y * _K2 ^ z * _K3) * _K2 & _MASK
    return _K2


def _up_to_32(data: bytes) -> int:
    a, b = _word(data, 0) * _K1, _word(data, 8)
    c, d = _word(data, -8) * _K2, _word(data, -16) * _K0
    low = _rotate(a - b, 43) + _rotate(c, 30) + d
    return _pair(low & _MASK, (a + _rotate(b ^ _K3, 20) - c + len(data)) & _MASK)


def _half(start: int, second: int, third: int, last: int) -> tuple[int, int]:
    """Two words from the four that stand for one half of 33 to 64 bytes."""
    turned = _rotate(start + last, 52) + _rotate(start, 37) + _rotate(start + second, 7)
    total = start + second + third
    return total + last, turned + _rotate(total, 31)


def _up_to_64(data: bytes) -> int:
    seeded = _word(data, 0) + (len(data) + _word(data, -16)) * _K0
    v = _half(seeded, _word(data, 8), _word(data, 16), _word(data, 24))
    w = _half(_word(data, 16) + _word(data, -32), _word(data, -24), _word(data, -16), _word(data, -8))
    r = _mix((v[0] + w[1]) * _K2 + (w[0] + v[1]) * _K0)
    return _mix(r * _K0 + v[1]) * _K2 & _MASK


def _absorb(data: bytes, start: int, a: int, b: int) -> tuple[int, int]:
    """Two words of state from 32 bytes and two seeds."""
    w, x, y, z = (_word(data, start + offset) for offset in (0, 8, 16, 24))
    a += w
    b = _rotate(b + a + z, 21) + _rotate(a + x + y, 44)
    return (a + x + y + z) & _MASK, (b + a) & _MASK


def _over_64(data: bytes) -> int:
    n = len(data)
    x, y, z = _word(data, 0), _word(data, -16) ^ _K1, _word(data, -56) ^ _K0
    v = _absorb(data, n - 64, n, y)
    w = _absorb(data, n - 32, n * _K1, _K0)
    z = (z + _mix(v[1]) * _K1) & _MASK
    x, y = _rotate(z + x, 39) * _K1, _rotate(y, 33) * _K1
    for start in range(0, n - 1 - (n - 1) % 64, 64):
        x = _rotate(x + y + v[0] + _word(data, start + 16), 37) * _K1 ^ w[1]
        y = _rotate(y + v[1] + _word(data, start + 48), 42) * _K1 ^ v[0]
        z = _rotate(z ^ w[0], 33)
        v = _absorb(data, start, v[1] * _K1, x + w[0])
        w = _absorb(data, start + 32, z + w[1], y)
        x, z = z, x & _MASK
    return _pair(
        (_pair(v[0], w[0]) + _mix(y) * _K1 + z) & _MASK,
        (_pair(v[1], w[1]) + x) & _MASK,
    )
