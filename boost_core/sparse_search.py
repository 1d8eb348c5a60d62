"""Best cut of a node from sparse gains: tables of bins by hot classes, and sweeps over the entries of cold ones.

    left sums of a cold class:   sweep the bins from the first to the last, keeping every class's sum and the greatest
    right sums:                  the same from the last bin to the first

Cold gains are above 0, so the greatest sum so far is the greatest sum. A class without entries has the sum 0. All sums
are the exact ones of the whole gain matrix, but for one number a node that all classes share, so cuts, ties and gains
are those of cut_search.py.
"""

import numpy as np

from boost_core.cut import BIN, FEATURE, KIND, MISSING_LEFT, NO_CUT, VALUE
from boost_core.jit import inner, kernel

NOTHING = -(1 << 61)  # below every sum, and two of them still fit int64
MOST_CODES = 257  # bins of a feature, with that of missing values


@kernel
def fill_table(bins, rows, hot, counts, bin_start, features, table):  # type: ignore[no-untyped-def]
    """table (OUT) [n_bins, hot classes + 1] of some features: sums of the rows' hot gains, and last their count."""
    width = table.shape[1]
    flat, begin, end, columns, gains = table.reshape(-1), hot.begin, hot.end, hot.columns, hot.gains
    for j in range(features[0], features[1]):
        flat[bin_start[j] * width : bin_start[j + 1] * width] = 0
        codes, first = bins[j], np.uint64(bin_start[j] * width)
        for k in range(rows.shape[0]):
            i = np.uint64(rows[k])
            line = first + np.uint64(codes[i]) * np.uint64(width)
            flat[line + np.uint64(width - 1)] += counts[i]
            # unsigned indices need no check for negative ones
            for e in range(np.uint64(begin[i]), np.uint64(end[i])):
                flat[line + np.uint64(columns[e])] += gains[e]


@kernel
def node_entries(rows, cold, labels, gains, places):  # type: ignore[no-untyped-def]
    """A node's cold entries: class, gain, row (OUT, int32, int64, int32 [m], m from count_entries)."""
    to = 0
    for k in range(rows.shape[0]):
        i = np.int64(rows[k])
        for e in range(cold.begin[i], cold.end[i]):
            labels[to], gains[to], places[to] = cold.columns[e], cold.gains[e], i
            to += 1


@kernel
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
def count_entries(rows, cold):  # type: ignore[no-untyped-def]
    """Cold entries of the rows."""
    found = np.int64(0)
    for k in range(rows.shape[0]):
        found += cold.end[rows[k]] - cold.begin[rows[k]]
    return found


@inner
def _sort_by_code(codes, places, labels, gains, starts, sorted_labels, sorted_gains):  # type: ignore[no-untyped-def]
    """Labels and gains in order of codes (OUT): those of code c from starts[c] (OUT, int64 [MOST_CODES + 2]) on."""
    starts[:] = 0
    for k in range(labels.shape[0]):
        starts[np.int64(codes[places[k]]) + 2] += 1
    for c in range(2, starts.shape[0]):
        starts[c] += starts[c - 1]
    # starts[c + 1] moves from where code c begins to where it ends
    for k in range(labels.shape[0]):
        code = np.int64(codes[places[k]])
        to = starts[code + 1]
        starts[code + 1] = to + 1
        sorted_labels[to], sorted_gains[to] = labels[k], gains[k]


@inner
def _add_code(code, entries, sums, largest):  # type: ignore[no-untyped-def]
    """Add the entries of a code to the sums (IN/OUT); returns the greatest sum. entries = (starts, labels, gains)."""
    starts, labels, gains = entries
    for k in range(starts[code], starts[code + 1]):
        total = sums[labels[k]] + gains[k]
        sums[labels[k]] = total
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


@inner
def _consider(best, value, kind, last_left, missing_left):  # type: ignore[no-untyped-def]
    """Keep a candidate if it is better than the best one so far."""
    if value > best[VALUE]:
        best[VALUE] = value
        best[KIND] = kind
        best[BIN] = last_left
        best[MISSING_LEFT] = missing_left


@inner
def _search_feature(table, n_thresholds, has_missing, maxima, best):  # type: ignore[no-untyped-def]
    """Best cut of a feature, in the order of ties of cut_search.search_feature.

    table [bins of the feature, hot + 1]; maxima: int64 [4, MOST_CODES + 1], greatest sums of all other classes left,
    right, left with missing values (last: of these alone), right with them.
    """
    n_hot = table.shape[1] - 1
    total, below, nothing = np.zeros(n_hot, np.int64), np.zeros(n_hot, np.int64), np.zeros(n_hot, np.int64)
    n_rows, n_below = np.int64(0), np.int64(0)
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
            value = max(left, maxima[2, b]) + max(right, maxima[1, b])
            _consider(best, value, 0, b, 1)
        if 0 < n_below < n_rows:
            left, right = _hot_sides(below, nothing, total)
            with_missing = maxima[3, b] if n_missing > 0 else maxima[1, b]
            value = max(left, maxima[0, b]) + max(right, with_missing)
            _consider(best, value, 0, b, 0 if n_missing > 0 else 1)
    if 0 < n_missing < n_rows:
        left, right = _hot_sides(missing, nothing, total)
        value = max(left, maxima[2, MOST_CODES]) + max(right, maxima[0, n_thresholds])
        _consider(best, value, 1, 0, 1)


@kernel
def search_sparse(table, layout, features, floor, codes, cold, n_labels, best):  # type: ignore[no-untyped-def]
    """Best cut of a range of features: the first one of the greatest value (best: OUT [RECORD_FIELDS]).

    table [n_bins, hot + 1], its first row being bin layout[3] of all features; layout = (bin_start, n_thresholds,
    has_missing, first bin, feature that codes begin with); floor: the least that the greatest sum of the classes that
    are not hot can be; codes: uint8 [d, n]; cold = (places, labels, gains): the node's cold entries are in the columns
    `places` of codes and have labels 0..n_labels - 1.
    """
    bin_start, n_thresholds, has_missing, origin, first = layout
    places, labels, gains = cold
    sorted_labels, sorted_gains = np.empty_like(labels), np.empty_like(gains)
    starts, sums = np.empty(MOST_CODES + 2, np.int64), np.empty(n_labels, np.int64)
    maxima = np.full((4, MOST_CODES + 1), floor, np.int64)
    best[VALUE] = NO_CUT
    for j in range(features[0], features[1]):
        part, m = table[bin_start[j] - origin : bin_start[j + 1] - origin], n_thresholds[j]
        if labels.shape[0] > 0 and (m > 0 or has_missing[j]):
            _sort_by_code(codes[j - first], places, labels, gains, starts, sorted_labels, sorted_gains)
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
        _search_feature(part, m, has_missing[j], maxima, best)
        if best[VALUE] > before:
            best[FEATURE] = j


@kernel
def leaf_sums(rows, cold, hot, classes, seen, scratch, labels, sums):  # type: ignore[no-untyped-def]
    """The hot classes and those with entries in a leaf's rows, and their sums (labels, sums: OUT int64); how many.

    seen: bool [n_classes], scratch: int64 [n_classes]; both all 0 before and after.
    """
    count = classes.shape[0]
    labels[:count] = classes
    sums[:count] = 0
    for k in range(rows.shape[0]):
        i = np.int64(rows[k])
        for e in range(hot.begin[i], hot.end[i]):
            sums[hot.columns[e]] += hot.gains[e]
        for e in range(cold.begin[i], cold.end[i]):
            label = cold.columns[e]
            if not seen[label]:
                seen[label] = True
                labels[count] = label
                count += 1
            scratch[label] += cold.gains[e]
    for k in range(classes.shape[0], count):
        label = labels[k]
        sums[k] = scratch[label]
        scratch[label], seen[label] = 0, False
    return count


@kernel
def name_segments(order, segments, leaf_of_row):  # type: ignore[no-untyped-def]
    """leaf_of_row (OUT, int32 [n_rows]): the index of the segment (int64 [n_leaves, 2], of order) each row is in."""
    for leaf in range(segments.shape[0]):
        for k in range(segments[leaf, 0], segments[leaf, 1]):
            leaf_of_row[order[k]] = leaf
