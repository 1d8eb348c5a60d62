"""The potential of the boosting game for the 0-1 loss (Mukherjee & Schapire 2010, Theorems 4 and 5).

A row's wrong label l trails its true one by u_l votes; the row is lost if some u_l <= 0 in the end. With t rounds to
come, each of whose votes is for the true label with probability p and for any wrong one with q = (1 - p) / (K - 1),

    phi_t(u) = Pr[row lost] = 1 - sum_a Binom(t, a) p^a (1 - p)^(t - a) R(t - a, a)
    R(r, a)  = Pr[N_l <= u_l + a - 1 for all l],  N multinomial: r votes, uniform over the wrong labels
             = [z^r] prod_l sum_{m <= u_l + a - 1} Pois(m; r / (K - 1)) z^m  /  Pois(r; r)

where a counts the votes for the true label. Equal labels are raised to a power by squaring. Plain IEEE operations in a
fixed order, so every member computes the same potential; its absolute error is about 1e-14.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.jit import counted_kernel, counted_step, kernel, step


def log_factorials(n: int) -> NDArray[np.float64]:
    """ln 0!, ..., ln n!, float64 [n + 1]."""
    return np.cumsum([0.0, *(float(ieee_math.log(float(k))) for k in range(1, n + 1))])


@step
def _multiply(x, y, out):  # type: ignore[no-untyped-def]
    """out (OUT): product of two polynomials, cut off at its degree."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        if x[i] != 0.0:
            for j in range(out.shape[0] - i):
                out[i + j] += x[i] * y[j]


@counted_step
def _times_power(product, factor, exponent, scratch):  # type: ignore[no-untyped-def]
    """product (IN/OUT) *= factor ** exponent; factor is used up."""
    while exponent > 0:
        if exponent % 2 == 1:
            _multiply(product, factor, scratch)
            product[:] = scratch
        exponent //= 2
        if exponent > 0:
            _multiply(factor, factor, scratch)
            factor[:] = scratch


@counted_step
def _kept(u, right, rest, log_factorial):  # type: ignore[no-untyped-def]
    """R(rest, right) for trails u (int64 [K - 1], ascending)."""
    if u[0] + right - 1 < 0:
        return 0.0
    if u[0] + right - 1 >= rest:
        return 1.0  # no label can get that many votes
    each = rest / np.float64(u.shape[0])
    product, factor, scratch = np.zeros(rest + 1), np.zeros(rest + 1), np.zeros(rest + 1)
    product[0] = 1.0
    start = 0
    while start < u.shape[0]:
        most = min(u[start] + right - 1, rest)
        stop = start + 1
        while stop < u.shape[0] and min(u[stop] + right - 1, rest) == most:
            stop += 1
        factor[:] = 0.0
        for m in range(most + 1):
            factor[m] = ieee_math.exp(m * ieee_math.log(each) - each - log_factorial[m])
        _times_power(product, factor, stop - start, scratch)
        start = stop
    whole = np.float64(rest)
    return product[rest] / ieee_math.exp(rest * ieee_math.log(whole) - whole - log_factorial[rest])


@kernel
def potential(u, rounds, p, log_factorial):  # type: ignore[no-untyped-def]
    """phi with `rounds` to come; u: int64 [K - 1], ascending; log_factorial: at least [rounds + 1]."""
    kept = 0.0
    for right in range(rounds + 1):
        rest = rounds - right
        ways = log_factorial[rounds] - log_factorial[right] - log_factorial[rest]
        chance = ieee_math.exp(ways + right * ieee_math.log(p) + rest * ieee_math.log(1.0 - p))
        kept += chance * _kept(u, right, rest, log_factorial)
    return min(max(1.0 - kept, 0.0), 1.0)


@counted_kernel
def potentials_after_vote(states, rounds, p, log_factorial, costs):  # type: ignore[no-untyped-def]
    """costs (OUT, float64 [n_states, K]): potentials after one more vote, for the true label (column 0) or a wrong one.

    states: int64 [n_states, K - 1], ascending trails; column 1 + j is a vote for the label in place j.
    """
    moved = np.empty(states.shape[1], np.int64)
    for s in range(states.shape[0]):
        u = states[s]
        moved[:] = u + 1
        costs[s, 0] = potential(moved, rounds, p, log_factorial)
        for j in range(u.shape[0]):
            if j > 0 and u[j] == u[j - 1]:
                costs[s, 1 + j] = costs[s, j]
            else:
                moved[:] = u
                moved[j] -= 1
                costs[s, 1 + j] = potential(moved, rounds, p, log_factorial)


class ExplicitPotential:
    """The game for the 0-1 loss, of any length: nothing is kept. As vote_recursion.VoteTable."""

    def __init__(self, rounds: int, n_wrong: int, p: float) -> None:
        self._rounds, self._n_wrong, self._p = rounds, n_wrong, p
        self._log_factorials = log_factorials(rounds)

    def at_start(self) -> float:
        """The potential before the first round."""
        return float(potential(np.zeros(self._n_wrong, np.int64), self._rounds, self._p, self._log_factorials))

    def seen(self, ascending: NDArray[np.int64], to_come: int) -> NDArray[np.int64]:
        """Trails as far as they matter: beyond these, nothing can change any more."""
        return np.clip(ascending, -(to_come + 1), to_come + 2)

    def over(self, ascending: NDArray[np.int64]) -> NDArray[np.float64]:
        """Whether each row is lost at the end of the game, float64 [n_rows]."""
        return np.asarray((ascending[:, 0] <= 0).astype(np.float64))

    def costs(self, states: NDArray[np.int64], to_come: int) -> NDArray[np.float64]:
        """Potentials after one more vote, [n_states, K]: see `potentials_after_vote`."""
        found = np.empty((states.shape[0], self._n_wrong + 1))
        potentials_after_vote(states, to_come, self._p, self._log_factorials, found)
        return found
