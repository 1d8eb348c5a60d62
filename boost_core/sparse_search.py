"""Best cut of a node from sparse gains: tables of bins by hot classes, and sweeps over the entries of cold ones.

    left sums of a cold class:   sweep the bins from the first to the last, keeping every class's sum and the greatest
    right sums:                  the same from the last bin to the first

Cold gains are above 0, so the greatest sum so far is the greatest sum. A class without entries has the sum 0. A class
whose sum over the node is small wins no side of the best cut, so few classes are swept (sparse_growth.py). All sums
are the exact ones of the whole gain matrix, but for one number a node that all classes share, so cuts, ties and gains
are those of cut_search.py.
"""

import numpy as np

from boost_core.cut import FEATURE, NO_CUT, VALUE
from boost_core.cut_search import consider
from boost_core.jit import counted_inner, counted_kernel, inner, kernel

NOTHING = -(1 << 61)  # below every sum, and two of them still fit int64
MOST_CODES = 257  # bins of a feature, with that of missing values
LINE = 8  # sums of a cache line
FEATURES = 4  # whose sums are made in one pass over the entries


@inner
def _add_entries(bins, of_row, gains, segment, bin_start, features, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [bins of the features]) += the gains of a segment of entries, by the bins of their rows.

    FEATURES a pass, so that an entry is read once for them; unsigned indices need no check for negative ones.
    """
    origin = bin_start[features[0]]
    for j in range(features[0], features[1], FEATURES):
        if j + FEATURES <= features[1]:
            codes = (bins[j], bins[j + 1], bins[j + 2], bins[j + 3])
            parts = (
                sums[bin_start[j] - origin :],
                sums[bin_start[j + 1] - origin :],
                sums[bin_start[j + 2] - origin :],
                sums[bin_start[j + 3] - origin :],
            )
            for e in range(np.uint64(segment[0]), np.uint64(segment[1])):
                row, gain = np.uint64(of_row[e]), gains[e]
                parts[0][np.uint64(codes[0][row])] += gain
                parts[1][np.uint64(codes[1][row])] += gain
                parts[2][np.uint64(codes[2][row])] += gain
                parts[3][np.uint64(codes[3][row])] += gain
        else:
            for last in range(j, features[1]):
                part = sums[bin_start[last] - origin :]
                for e in range(np.uint64(segment[0]), np.uint64(segment[1])):
                    part[np.uint64(bins[last, np.uint64(of_row[e])])] += gains[e]


@counted_kernel
def fill_table(bins, entries, rows, counts, bin_start, features, table):  # type: ignore[no-untyped-def]
    """table (OUT) [n_bins, hot classes + 1] of some features: sums of a node's hot gains, and last its count of rows.

    entries = (starts int64 [hot classes + 1], rows, gains), sorted by class: so a class's bins stay in the nearest
    cache. LINE classes are written at a time, that is whole cache lines. counts: of every row.
    """
    starts, of_row, gains = entries
    n_hot, first_bin = table.shape[1] - 1, bin_start[features[0]]
    n_bins = bin_start[features[1]] - first_bin
    sums = np.empty((LINE, n_bins), np.int64)
    for first in range(0, n_hot + 1, LINE):
        width = min(LINE, n_hot + 1 - first)
        sums[:width] = 0
        for c in range(width):
            if first + c < n_hot:
                segment = (starts[first + c], starts[first + c + 1])
                _add_entries(bins, of_row, gains, segment, bin_start, features, sums[c])
                continue
            for j in range(features[0], features[1]):
                part = sums[c, bin_start[j] - first_bin :]
                for k in range(rows.shape[0]):
                    part[np.uint64(bins[j, rows[k]])] += counts[rows[k]]
        for b in range(n_bins):
            for c in range(width):
                table[first_bin + b, first + c] = sums[c, b]


@kernel
def node_entries(rows, cold, labels, gains, places):  # type: ignore[no-untyped-def]
    """A node's cold entries: class, gain, row (OUT, int32, int64, int32 [m], m from count_entries)."""
    to = 0
    for k in range(rows.shape[0]):
        i = np.int64(rows[k])
        for e in range(cold.begin[i], cold.end[i]):
            labels[to], gains[to], places[to] = cold.columns[e], cold.gains[e], i
            to += 1


@counted_kernel
def number_labels(labels, numbers):  # type: ignore[no-untyped-def]
    """labels (IN/OUT): classes become numbers from 0 in order of appearance, so that a small node has small sums.

    numbers: scratch int32 [n_classes], all -1 before and after. Returns how many there are.
    """
    count = 0
    found = np.empty(min(labels.shape[0], numbers.shape[0]), np.int32)
    for k in range(labels.shape[0]):
        label = labels[k]
        if numbers[label] < 0:
            numbers[label] = count
            found[count] = label
            count += 1
        labels[k] = numbers[label]
    for k in range(count):
        numbers[found[k]] = -1
    return count


@kernel
def sum_by_label(labels, gains, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [n_labels]) += the gains of each label."""
    for k in range(labels.shape[0]):
        sums[labels[k]] += gains[k]


@kernel
def select_entries(labels, gains, places, kept, out):  # type: ignore[no-untyped-def]
    """out (OUT) = (labels, gains, places) of the entries whose label is kept (bool [n_labels]); how many there are."""
    count = 0
    for k in range(labels.shape[0]):
        if kept[labels[k]]:
            out[0][count], out[1][count], out[2][count] = labels[k], gains[k], places[k]
            count += 1
    return count


@kernel
def count_entries(rows, cold):  # type: ignore[no-untyped-def]
    """Cold entries of the rows."""
    found = np.int64(0)
    for k in range(rows.shape[0]):
        found += cold.end[rows[k]] - cold.begin[rows[k]]
    return found


@inner
def _sort_by_code(codes, places, labels, gains, starts, own_codes, sorted_labels, sorted_gains):  # type: ignore[no-untyped-def]
    """Labels and gains in order of codes (OUT): those of code c from starts[c] (OUT, int64 [MOST_CODES + 2]) on.

    own_codes: scratch uint8 [m], the entries' codes, so that they are gathered once. Unsigned indices need no check for
    negative ones.
    """
    starts[:] = 0
    for k in range(labels.shape[0]):
        code = codes[np.uint64(places[k])]
        own_codes[k] = code
        starts[np.uint64(code) + np.uint64(2)] += 1
    for c in range(2, starts.shape[0]):
        starts[c] += starts[c - 1]
    # starts[c + 1] moves from where code c begins to where it ends
    for k in range(labels.shape[0]):
        after = np.uint64(own_codes[k]) + np.uint64(1)
        to = np.uint64(starts[after])
        starts[after] = to + np.uint64(1)
        sorted_labels[to], sorted_gains[to] = labels[k], gains[k]


@inner
def _add_code(code, entries, sums, largest):  # type: ignore[no-untyped-def]
    """Add the entries of a code to the sums (IN/OUT); returns the greatest sum. entries = (starts, labels, gains)."""
    starts, labels, gains = entries
    for k in range(np.uint64(starts[code]), np.uint64(starts[code + 1])):
        label = np.uint64(labels[k])
        total = sums[label] + gains[k]
        sums[label] = total
        largest = max(largest, total)
    return largest


@inner
def _sweep(entries, n_thresholds, with_missing, upwards, sums, largest):  # type: ignore[no-untyped-def]
    """largest (OUT, int64 [n_thresholds + 1]): greatest cold sum of the bins up to each, or of those above each.

    with_missing: missing values are on that side too. The last entry is that of all bins (upwards only).
    """
    sums[:] = 0
    found = np.int64(0)
    if with_missing:
        found = _add_code(n_thresholds + 1, entries, sums, found)
    if upwards:
        for code in range(n_thresholds + 1):
            found = _add_code(code, entries, sums, found)
            largest[code] = found
    else:
        for code in range(n_thresholds, 0, -1):
            found = _add_code(code, entries, sums, found)
            largest[code - 1] = found


@inner
def _hot_sides(below, added, total):  # type: ignore[no-untyped-def]
    """Greatest hot sums left and right of a cut whose left side has the sums below + added."""
    left, right = np.int64(NOTHING), np.int64(NOTHING)
    for h in range(below.shape[0]):
        here = below[h] + added[h]
        left = max(left, here)
        right = max(right, total[h] - here)
    return left, right


@counted_inner
def _search_feature(table, n_thresholds, has_missing, maxima, best):  # type: ignore[no-untyped-def]
    """Best cut of a feature, in the order of ties of cut_search.search_feature; returns the greatest hot sum of a side.

    table [bins of the feature, hot + 1]; maxima: int64 [4, MOST_CODES + 1], greatest sums of all other classes left,
    right, left with missing values (last: of these alone), right with them.
    """
    n_hot = table.shape[1] - 1
    total, below, nothing = np.zeros(n_hot, np.int64), np.zeros(n_hot, np.int64), np.zeros(n_hot, np.int64)
    n_rows, n_below, greatest = np.int64(0), np.int64(0), np.int64(NOTHING)
    for b in range(n_thresholds + 1 + has_missing):
        n_rows += table[b, n_hot]
        for h in range(n_hot):
            total[h] += table[b, h]
    missing = table[n_thresholds + 1, :n_hot] if has_missing else nothing
    n_missing = table[n_thresholds + 1, n_hot] if has_missing else np.int64(0)
    for b in range(n_thresholds):
        if b > 0 and table[b, n_hot] == 0:
            continue
        n_below += table[b, n_hot]
        for h in range(n_hot):
            below[h] += table[b, h]
        if n_missing > 0 and n_below + n_missing < n_rows:
            left, right = _hot_sides(below, missing, total)
            greatest = max(greatest, left, right)
            value = max(left, maxima[2, b]) + max(right, maxima[1, b])
            consider(best, value, 0, b, 1)
        if 0 < n_below < n_rows:
            left, right = _hot_sides(below, nothing, total)
            greatest = max(greatest, left, right)
            with_missing = maxima[3, b] if n_missing > 0 else maxima[1, b]
            value = max(left, maxima[0, b]) + max(right, with_missing)
            consider(best, value, 0, b, 0 if n_missing > 0 else 1)
    if 0 < n_missing < n_rows:
        left, right = _hot_sides(missing, nothing, total)
        greatest = max(greatest, left, right)
        value = max(left, maxima[2, MOST_CODES]) + max(right, maxima[0, n_thresholds])
        consider(best, value, 1, 0, 1)
    return greatest


@counted_kernel
def search_sparse(table, layout, features, floor, codes, cold, n_labels, best):  # type: ignore[no-untyped-def]
    """Best cut of a range of features: the first one of the greatest value (best: OUT [RECORD_FIELDS]).

    Returns the greatest sum of a hot class on a side of a cut.

    table [n_bins, hot + 1], its first row being bin layout[3] of all features; layout = (bin_start, n_thresholds,
    has_missing, first bin, feature that codes begin with); floor: the least that the greatest sum of the classes that
    are not hot can be; codes: uint8 [d, n]; cold = (places, labels, gains): the node's cold entries are in the columns
    `places` of codes and have labels 0..n_labels - 1.
    """
    bin_start, n_thresholds, has_missing, origin, first = layout
    places, labels, gains = cold
    own_codes, sorted_labels, sorted_gains = (
        np.empty(labels.shape[0], np.uint8),
        np.empty_like(labels),
        np.empty_like(gains),
    )
    starts, sums = np.empty(MOST_CODES + 2, np.int64), np.empty(n_labels, np.int64)
    maxima = np.full((4, MOST_CODES + 1), floor, np.int64)
    best[VALUE] = NO_CUT
    greatest = np.int64(NOTHING)
    for j in range(features[0], features[1]):
        part, m = table[bin_start[j] - origin : bin_start[j + 1] - origin], n_thresholds[j]
        if labels.shape[0] > 0 and (m > 0 or has_missing[j]):
            _sort_by_code(codes[j - first], places, labels, gains, starts, own_codes, sorted_labels, sorted_gains)
            entries = (starts, sorted_labels, sorted_gains)
            _sweep(entries, m, False, True, sums, maxima[0])
            _sweep(entries, m, False, False, sums, maxima[1])
            if has_missing[j] and starts[m + 1] < starts[m + 2]:
                _sweep(entries, m, True, True, sums, maxima[2])
                _sweep(entries, m, True, False, sums, maxima[3])
                sums[:] = 0
                maxima[2, MOST_CODES] = _add_code(m + 1, entries, sums, np.int64(0))
            else:
                maxima[2] = maxima[0]
                maxima[3] = maxima[1]
                maxima[2, MOST_CODES] = 0
        before = best[VALUE]
        greatest = max(greatest, _search_feature(part, m, has_missing[j], maxima, best))
        if best[VALUE] > before:
            best[FEATURE] = j
    return greatest


@kernel
def name_segments(order, segments, leaf_of_row):  # type: ignore[no-untyped-def]
    """leaf_of_row (OUT, int32 [n_rows]): the index of the segment (int64 [n_leaves, 2], of order) each row is in."""
    for leaf in range(segments.shape[0]):
        for k in range(segments[leaf, 0], segments[leaf, 1]):
            leaf_of_row[order[k]] = leaf
