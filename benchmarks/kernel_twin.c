/* The twin of boost_core/histogram.py's add_rows in C, for benchmarks.kernel: the same layout, the same passes.

   totals (int64 [n_bins, CHANNELS]) += gains (int32 [n_rows, PITCH], of which the first CHANNELS) of the rows, for the
   features of a range; bins are uint8 [d, n_bin_rows]. Compiled once for a number of CHANNELS, a PITCH, a TILE of rows and
   the BLOCK_SUMS from which a block of features is full. A vector is as wide as the machine's registers. */

#include <stdint.h>

#ifdef __AVX512F__
#define WIDE 8
#else
#define WIDE 4
#endif
#define AHEAD 12
#define CACHE_LINE 64

typedef int64_t wide_sum __attribute__((vector_size(8 * WIDE), aligned(8), may_alias));
typedef int32_t wide_gain __attribute__((vector_size(4 * WIDE), aligned(4), may_alias));
typedef int64_t lane_sum __attribute__((vector_size(32), aligned(8), may_alias));
typedef int32_t lane_gain __attribute__((vector_size(16), aligned(4), may_alias));

static inline __attribute__((always_inline)) void fetch(const int32_t *row) {
#pragma GCC unroll 64
    for (int offset = 0; offset < 4 * CHANNELS; offset += CACHE_LINE) __builtin_prefetch((const char *)row + offset, 0, 3);
}

/* A row is read and widened once for four sums, which are apart. */
static inline __attribute__((always_inline)) void add_four(int64_t *restrict t0, int64_t *restrict t1, int64_t *restrict t2,
                                                           int64_t *restrict t3, const int32_t *restrict row) {
    int c = 0;
#pragma GCC unroll 64
    for (; c + WIDE <= CHANNELS; c += WIDE) {
        wide_sum added = __builtin_convertvector(*(const wide_gain *)(row + c), wide_sum);
        *(wide_sum *)(t0 + c) += added;
        *(wide_sum *)(t1 + c) += added;
        *(wide_sum *)(t2 + c) += added;
        *(wide_sum *)(t3 + c) += added;
    }
#pragma GCC unroll 64
    for (; c + 4 <= CHANNELS; c += 4) {
        lane_sum added = __builtin_convertvector(*(const lane_gain *)(row + c), lane_sum);
        *(lane_sum *)(t0 + c) += added;
        *(lane_sum *)(t1 + c) += added;
        *(lane_sum *)(t2 + c) += added;
        *(lane_sum *)(t3 + c) += added;
    }
#pragma GCC unroll 64
    for (; c < CHANNELS; c++) {
        int64_t added = row[c];
        t0[c] += added;
        t1[c] += added;
        t2[c] += added;
        t3[c] += added;
    }
}

static inline __attribute__((always_inline)) void add_one(int64_t *restrict total, const int32_t *restrict row) {
    int c = 0;
#pragma GCC unroll 64
    for (; c + WIDE <= CHANNELS; c += WIDE)
        *(wide_sum *)(total + c) += __builtin_convertvector(*(const wide_gain *)(row + c), wide_sum);
#pragma GCC unroll 64
    for (; c + 4 <= CHANNELS; c += 4)
        *(lane_sum *)(total + c) += __builtin_convertvector(*(const lane_gain *)(row + c), lane_sum);
#pragma GCC unroll 64
    for (; c < CHANNELS; c++) total[c] += row[c];
}

static void add_block(const uint8_t *restrict bins, int64_t n_bin_rows, const int32_t *restrict rows, int64_t n_rows,
                      const int32_t *restrict gains, const int64_t *restrict bin_start, int64_t first, int64_t stop,
                      int64_t *restrict totals) {
    for (int64_t tile_start = 0; tile_start < n_rows; tile_start += TILE) {
        int64_t tile_stop = tile_start + TILE < n_rows ? tile_start + TILE : n_rows;
        int64_t j = first;
        for (; j + 4 <= stop; j += 4) {
            int64_t *b0 = totals + bin_start[j] * CHANNELS, *b1 = totals + bin_start[j + 1] * CHANNELS;
            int64_t *b2 = totals + bin_start[j + 2] * CHANNELS, *b3 = totals + bin_start[j + 3] * CHANNELS;
            const uint8_t *codes0 = bins + j * n_bin_rows, *codes1 = codes0 + n_bin_rows;
            const uint8_t *codes2 = codes1 + n_bin_rows, *codes3 = codes2 + n_bin_rows;
            for (int64_t k = tile_start; k < tile_stop; k++) {
                int64_t i = rows[k], ahead = k + AHEAD < n_rows ? k + AHEAD : n_rows - 1;
                fetch(gains + (int64_t)rows[ahead] * PITCH);
                add_four(b0 + (int64_t)codes0[i] * CHANNELS, b1 + (int64_t)codes1[i] * CHANNELS,
                         b2 + (int64_t)codes2[i] * CHANNELS, b3 + (int64_t)codes3[i] * CHANNELS, gains + i * PITCH);
            }
        }
        for (; j < stop; j++) {
            int64_t *base = totals + bin_start[j] * CHANNELS;
            const uint8_t *codes = bins + j * n_bin_rows;
            for (int64_t k = tile_start; k < tile_stop; k++) {
                int64_t i = rows[k];
                add_one(base + (int64_t)codes[i] * CHANNELS, gains + i * PITCH);
            }
        }
    }
}

void add_rows(const uint8_t *restrict bins, int64_t n_bin_rows, const int32_t *restrict rows, int64_t n_rows,
              const int32_t *restrict gains, const int64_t *restrict bin_start, int64_t first, int64_t stop,
              int64_t *restrict totals) {
    for (int64_t start = first; start < stop;) {
        int64_t end = start;
        while (end < stop && (end < start + 4 || (bin_start[end] - bin_start[start]) * CHANNELS < BLOCK_SUMS))
            end = end + 4 < stop ? end + 4 : stop;
        add_block(bins, n_bin_rows, rows, n_rows, gains, bin_start, start, end, totals);
        start = end;
    }
}
