"""Counter-based random numbers: a pure function of (seed, purpose, index, row), equal on every machine.

Philox-4x32-10 of Salmon et al. 2011 ("Parallel random numbers: as easy as 1, 2, 3"), vectorised.
The elementary functions below use only operations that IEEE 754 rounds exactly (+, -, *, /, sqrt),
because numpy's log, sin and cos differ in the last bit between processors.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
UInts = NDArray[np.uint64]

_LOW_32_BITS = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_TWO_PI = 6.283185307179586
_LOG_2 = 0.6931471805599453
SEED_LIMIT = 2**64


class Purpose(IntEnum):
    """What a number is drawn for; purposes never share numbers. The values are part of every data set."""

    SHAPE = 1
    SPLIT = 2
    ORDER = 3
    FACTORS = 4
    TEST_FACTORS = 5
    SCENARIO = 6
    IMBALANCE = 7
    BLURRY = 8
    JITTER = 9
    MASK = 10
    JOINT = 11
    REHEARSAL = 12
    MEMORY = 13
    RECALL = 14
    FISHER = 15
    POINTS = 16
    LATENTS = 17
    REPLAY = 18
    GENERATOR = 19
    CHOICE = 20
    ENVIRONMENTS = 21
    VASE = 22
    PROBES = 23
    EDGES = 24


def check_seed(seed: int) -> int:
    """Return the seed as an int; raise if it is not an integer in 0 .. 2**64 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"seed must be a whole number, found {seed!r}")
    if not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"seed must lie in 0 .. 2**64 - 1, found {seed}")
    return int(seed)


def philox(counter: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike], key: int) -> UInts:
    """Encrypt counters of four 32-bit words under a 64-bit key; return (..., 4) words of 32 bits."""
    a, b, c, d = np.broadcast_arrays(*(np.asarray(word, np.uint64) for word in counter))
    low = key & 0xFFFFFFFF
    high = key >> 32
    for _ in range(_ROUNDS):
        # 32 x 32 -> 64 bit products: one half replaces a word, the other is mixed into the next.
        first = a * _MULTIPLIERS[0]
        second = c * _MULTIPLIERS[1]
        a, b, c, d = (
            (second >> _SHIFT) ^ b ^ np.uint64(low),
            second & _LOW_32_BITS,
            (first >> _SHIFT) ^ d ^ np.uint64(high),
            first & _LOW_32_BITS,
        )
        # The key schedule is a Weyl sequence.
        low = (low + _WEYL[0]) & 0xFFFFFFFF
        high = (high + _WEYL[1]) & 0xFFFFFFFF
    return np.stack((a, b, c, d), axis=-1)


def random_uint64(
    seed: int, purpose: Purpose, index: ArrayLike, row: ArrayLike = 0, *, count: int = 1
) -> UInts:
    """Draw `count` 64-bit integers for every (index, row); shape (..., count).

    index < 2**64 (a task or a shape id), row < 2**32, count <= 2**23.
    """
    key = np.asarray(index, np.uint64)[..., None]
    # The last counter word: the purpose in the upper 8 bits, the block of two integers in the lower 23.
    # Bit 23 is 0 here and 1 in `permutations`, so that the two never share a counter.
    blocks = np.arange((count + 1) // 2, dtype=np.uint64) | np.uint64(purpose << 24)
    rows = np.asarray(row, np.uint64)[..., None]
    out = philox((key & _LOW_32_BITS, key >> _SHIFT, rows, blocks), seed)
    pairs = (out[..., 0::2] << _SHIFT) | out[..., 1::2]
    return pairs.reshape(*pairs.shape[:-2], pairs.shape[-2] * pairs.shape[-1])[..., :count]


def uniform(
    seed: int, purpose: Purpose, index: ArrayLike, row: ArrayLike = 0, *, count: int = 1
) -> Floats:
    """Draw `count` numbers uniform on [0, 1) for every (index, row); shape (..., count)."""
    return to_uniform(random_uint64(seed, purpose, index, row, count=count))


def to_uniform(bits: UInts) -> Floats:
    """Map 64-bit integers to [0, 1) by their upper 53 bits."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permutations(
    seed: int, purpose: Purpose, index: ArrayLike, size: int, *, substream: int = 0
) -> NDArray[np.int64]:
    """Return a random permutation of 0 .. size - 1 for every index (K,); shape (K, size).

    Positions are sorted by random 64-bit keys; equal keys keep their order.

    Args:
        substream: below 2**23, distinguishes independent permutations of one index, such as epochs.
    """
    positions = np.arange((size + 1) // 2, dtype=np.uint64)
    key = np.asarray(index, np.uint64)[:, None]
    last = np.uint64((purpose << 24) | 0x800000 | substream)
    out = philox((key & _LOW_32_BITS, key >> _SHIFT, positions, last), seed)
    pairs = (out[..., 0::2] << _SHIFT) | out[..., 1::2]
    order: NDArray[np.int64] = np.argsort(
        pairs.reshape(len(key), -1)[:, :size], axis=1, kind="stable"
    )
    return order


def permutation(
    seed: int, purpose: Purpose, index: int, size: int, *, substream: int = 0
) -> NDArray[np.int64]:
    """Return a random permutation of 0 .. size - 1 for one index."""
    order: NDArray[np.int64] = permutations(seed, purpose, [index], size, substream=substream)[0]
    return order


def box_muller(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Convert two uniforms on [0, 1) to two independent standard normals (Box and Muller 1958)."""
    radius = np.sqrt(-2.0 * log(1.0 - first))
    sine, cosine = sincos_turns(second)
    return radius * cosine, radius * sine


def normals(
    seed: int, purpose: Purpose, index: ArrayLike, row: ArrayLike = 0, *, count: int = 1
) -> Floats:
    """Draw `count` standard normals for every (index, row); shape (..., count)."""
    pairs = -(-count // 2)
    u = uniform(seed, purpose, index, row, count=2 * pairs)
    return np.concatenate(box_muller(u[..., :pairs], u[..., pairs:]), axis=-1)[..., :count]


def log(x: Floats) -> Floats:
    """Return the natural logarithm of positive numbers; the relative error is below 3e-16."""
    # x = mantissa * 2**exponent with the mantissa in [sqrt(1/2), sqrt(2)), where the series is short;
    # log(m) = 2 atanh(s) with s = (m - 1) / (m + 1).
    mantissa, exponent = np.frexp(x)
    small = mantissa < 0.7071067811865476
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    exponent = exponent - small
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = np.full_like(s, 1.0 / 23.0)
    for odd in range(21, 0, -2):
        series = series * square + 1.0 / odd
    return exponent * _LOG_2 + 2.0 * s * series


def sincos_turns(turns: Floats) -> tuple[Floats, Floats]:
    """Return sine and cosine of angles in turns, by Taylor series on an eighth of a turn."""
    quarters = np.rint(turns * 4.0)
    x = (turns - quarters * 0.25) * _TWO_PI
    square = x * x
    sine = np.ones_like(x)
    cosine = np.ones_like(x)
    for k in range(8, 0, -1):
        sine = 1.0 - sine * square / (2 * k * (2 * k + 1))
        cosine = 1.0 - cosine * square / ((2 * k - 1) * 2 * k)
    sine = sine * x
    # Undo the reduction by quarter turns: odd quadrants swap sine and cosine, then signs follow.
    quadrant = quarters.astype(np.int64) & 3
    swap = (quadrant & 1) == 1
    s = np.where(swap, cosine, sine)
    c = np.where(swap, sine, cosine)
    s = np.where(quadrant >= 2, -s, s)
    c = np.where((quadrant == 1) | (quadrant == 2), -c, c)
    return s, c
