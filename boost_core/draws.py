"""Random draws that depend on what they are for, never on who makes them or in which order.

A stream is named by a few integers (seed, round, attempt); its draw number k is the k-th output of splitmix64 (Steele,
Lea & Flood 2014) from there. Every member of a gang can compute every draw.
"""

import numpy as np

from boost_core.binning import mix64
from boost_core.jit import inner_kernel, kernel

GOLDEN = 0x9E3779B97F4A7C15


@kernel
def _join(key, number):  # type: ignore[no-untyped-def]
    return mix64(key + np.uint64(GOLDEN)) ^ np.uint64(number)


def stream(*names: int) -> int:
    """Start of the stream of these names, 0 <= each < 2**63."""
    key = 0
    with np.errstate(over="ignore"):  # the hash wraps around
        for name in names:
            key = int(_join(np.uint64(key), np.uint64(name)))
    return key


@inner_kernel
def draw(start, number, total):  # type: ignore[no-untyped-def]
    """Draw `number` of a stream (start: uint64) as an int64 in 0..total - 1, 0 < total < 2**63.

    The high half of a 64 by 64 bit product: any interval of integers has its probability to 2**-64.
    """
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    bits = mix64(start + np.uint64(number + 1) * np.uint64(GOLDEN))
    bound = np.uint64(total)
    low, high = bits & mask, bits >> half
    bound_low, bound_high = bound & mask, bound >> half
    middle = high * bound_low + ((low * bound_low) >> half)
    other = low * bound_high + (middle & mask)
    return np.int64(high * bound_high + (middle >> half) + (other >> half))
