"""exp, log and rounding from IEEE additions, multiplications and, where it is asked for by name, fused ones only.

Library versions differ between processors and releases by a unit in the last place, which would change a model.
These do not: each operation is correctly rounded by IEEE 754 and LLVM is not allowed to fuse or reorder them.
Their error is below 2 units in the last place, of log1p and atan below 5 (tested against the library), far finer than
the grid that gains and alphas are rounded to.
"""

import numpy as np

from boost_core.intrinsics import bits_of, from_bits, fused
from boost_core.jit import inner, inner_kernel, kernel, step

LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # ln 2 with 20 trailing zero bits: exact times a small integer
LN2_LOW = 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2**52: adding and subtracting it rounds to an integer, half to even
ROUND_BITS = 0x4338000000000000  # its bits; an integer added to it sits in the low bits
EXP_FLOOR = -700.0  # below it results would lose bits or vanish: they are exp(-700) then, see exp
LOG2_E_UNITS = LOG2_E * 2.0**-20
UNITS_FLOOR = EXP_FLOOR * 2.0**20
# 2**f = 1 + sum of POWER_i f**i for |f| <= 1/2, (2**f - 1) / f interpolated at 8 Chebyshev nodes
POWER_1 = 0.6931471805568327
POWER_2 = 0.2402265069588854
POWER_3 = 0.055504109063244156
POWER_4 = 0.009618129135234632
POWER_5 = 0.0013333478475345828
POWER_6 = 0.00015403475185848947
POWER_7 = 1.530370025193406e-05
POWER_8 = 1.3250805750431027e-06
MANTISSA_MASK = 0x000FFFFFFFFFFFFF
ONE_BITS = 0x3FF0000000000000
SQRT2 = 1.4142135623730951
HALF_PI = 1.5707963267948966


@inner
def round_half_even(value):  # type: ignore[no-untyped-def]
    """Nearest integer as int64, ties to even; |value| < 2**51."""
    return bits_of(value + ROUND) - ROUND_BITS


@inner_kernel
def exp(x):  # type: ignore[no-untyped-def]
    """e**x for x <= 700, without branches so that loops over it vectorise; below -700 it stays at e**-700."""
    x = max(x, EXP_FLOOR)
    shifted = x * LOG2_E + ROUND
    k = shifted - ROUND
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    # Taylor series of e**r, |r| <= ln(2)/2: the first term left out is below 2**-57. Its terms are added by pairs and
    # fours (Estrin), since a chain of 26 operations would wait for each of them.
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 / 24.0 + r * (1.0 / 120.0)) + (1.0 / 720.0 + r * (1.0 / 5040.0)) * r2
    high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + (1.0 / 3628800.0 + r * (1.0 / 39916800.0)) * r2
    high = high + (1.0 / 479001600.0 + r * (1.0 / 6227020800.0)) * r4
    p = 1.0 + (r + ((0.5 + r * (1.0 / 6.0)) * r2 + (low + high * r4) * r4))
    return from_bits(bits_of(p) + ((bits_of(shifted) - ROUND_BITS) << 52))


@inner
def exp_units(x):  # type: ignore[no-untyped-def]
    """e**(x * 2**-20) for whole x <= 0, a difference of scores; as fine as gains of 30 bits need, and faster than exp.

    The relative error is below 2**-38 where the result is above 2**-32; a gain is rounded to 2**-30 of the largest one.
    """
    t = max(x, UNITS_FLOOR) * LOG2_E_UNITS
    shifted = t + ROUND
    f = t - (shifted - ROUND)
    f2 = f * f
    f4 = f2 * f2
    low = fused(fused(POWER_3, f, POWER_2), f2, fused(POWER_1, f, 1.0))
    high = fused(fused(POWER_7, f, POWER_6), f2, fused(POWER_5, f, POWER_4))
    p = fused(fused(POWER_8, f4, high), f4, low)
    return from_bits(bits_of(p) + ((bits_of(shifted) - ROUND_BITS) << 52))


@kernel
def log(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of a normal x > 0."""
    bits = bits_of(x)
    exponent = (bits >> 52) - 1023
    m = from_bits((bits & MANTISSA_MASK) | ONE_BITS)
    if m > SQRT2:
        m = m * 0.5
        exponent = exponent + 1
    f = (m - 1.0) / (m + 1.0)
    f2 = f * f
    # ln m = 2 artanh f = 2 (f + f**3/3 + ...), |f| <= 0.172: 12 terms leave less than 2**-60
    series = 0.0
    for odd in range(23, 1, -2):
        series = (series + 1.0 / odd) * f2
    return exponent * LN2_HIGH + (2.0 * f + (2.0 * f * series + exponent * LN2_LOW))


@kernel
def three_logs(x, y, z):  # type: ignore[no-untyped-def]
    """Natural logarithms of three numbers in one call: to call a kernel takes ten times as long as the logarithm."""
    return log(x), log(y), log(z)


@kernel
def logs(numbers, out):  # type: ignore[no-untyped-def]
    """out (OUT, float64 [n]): natural logarithms of many numbers."""
    for i in range(numbers.shape[0]):
        out[i] = log(numbers[i])


@step
def log1p(x):  # type: ignore[no-untyped-def]
    """ln(1 + x) for x >= 0, as exact for small x: the error of 1 + x is divided out again (Kahan)."""
    whole = 1.0 + x
    return x if whole == 1.0 else log(whole) * x / (whole - 1.0)


@inner_kernel
def atan(x):  # type: ignore[no-untyped-def]
    """Arc tangent: of 1 / x beyond 1, of x / (1 + sqrt(1 + x**2)), half the angle, twice, then its series."""
    size = abs(x)
    y = 1.0 / size if size > 1.0 else size
    y = y / (1.0 + np.sqrt(1.0 + y * y))
    y = y / (1.0 + np.sqrt(1.0 + y * y))
    y2 = y * y
    # |y| <= 0.199: 13 terms leave less than 2**-60
    series = 0.0
    for odd in range(25, 1, -2):
        series = (1.0 / odd - series) * y2
    angle = 4.0 * (y - y * series)
    if size > 1.0:
        angle = HALF_PI - angle
    return angle if x >= 0.0 else -angle
