// Pieces of softmax attention of 16 query rows over 32 cache rows at a time, on tensor cores, with cache rows
// read from global memory straight into operands.
//
//   scores   S = Q K^T: lane (g, t) holds 8 neighbouring elements of query rows g, g + 8 and of cache row g
//   values   O += P V:  lane (g, t) reads 8 neighbouring elements 8g .. of the rows 2t, 2t+1, 2t+8, 2t+9, so
//            column n of the j-th of 8 products is element 8n + j, and a lane ends up with 16 neighbours
//
// Rows that are not attended to count as absent: they are never read, their probability is zero.
#pragma once

#include "gpu/attention_params.h"
#include "gpu/line.h"
#include "gpu/mma.h"

namespace sinter::gpu {

template <typename T>
constexpr int kPartsOf = 1;  // bf16 whose sum is an element
template <>
inline constexpr int kPartsOf<float> = 3;

// Elements i .. i + 7 of a row of `width`, zeros behind its end or where row is null, as four pairs.
template <typename T>
struct Octet {
  U32 pairs[kPartsOf<T>][4];

  SINTER_DEVICE void load(const T* row, int i, int width, bool aligned) {
    const int count = row == nullptr ? 0 : width - i;
    if constexpr (sizeof(T) == 2) {
      Line line = {};
      if (count > 0) line = load_line(reinterpret_cast<const U16*>(row + i), count, aligned);
      SINTER_UNROLL
      for (int j = 0; j < 4; ++j) pairs[0][j] = line.word[j];
    } else {
      SINTER_UNROLL
      for (int half = 0; half < 2; ++half) {
        Line line = {};
        if (count > 4 * half)
          line = load_line(reinterpret_cast<const U32*>(row + i) + 4 * half, count - 4 * half, aligned);
        SINTER_UNROLL
        for (int j = 0; j < 2; ++j) {
          U32 parts[3];
          split_pair(float_of(line.word[2 * j]), float_of(line.word[2 * j + 1]), parts);
          for (int part = 0; part < 3; ++part) pairs[part][2 * half + j] = parts[part];
        }
      }
    }
  }
};

// Where the rows of a step lie; lane i knows the i-th.
struct ContextRows {
  int position;  // in the sequence, -1: absent
  I64 row;       // in the cache, counted over all pages, -1: absent

  // Entries first .. of the context: row i itself, or indices[i] where given; `end` and behind are absent.
  SINTER_DEVICE void find(const int* pages, int P, const int* indices, int first, int end) {
    const int i = first + lane_idx();
    position = i >= end ? -1 : indices == nullptr ? i : indices[i];
    row = position < 0 ? -1 : static_cast<I64>(pages[position / P]) * P + position % P;
  }
  SINTER_DEVICE bool is_empty() const { return ballot(position >= 0) == 0; }
};

using Scores = float[kContextStep / 8][4];

// Largest score and mass of the query rows g and g + 8, so far.
struct SoftmaxState {
  float max[2] = {-infinity(), -infinity()};
  float mass[2] = {0, 0};

  // Scores become probabilities relative to the new largest; `rescale`: what older sums are worth now.
  SINTER_DEVICE void update(Scores& scores, float (&rescale)[2]) {
    SINTER_UNROLL
    for (int half = 0; half < 2; ++half) {
      float largest = max[half];
      SINTER_UNROLL
      for (int i = 0; i < kContextStep / 8; ++i)
        largest = max_of(largest, max_of(scores[i][2 * half], scores[i][2 * half + 1]));
      largest = max_of(largest, shuffle_xor(largest, 1));
      largest = max_of(largest, shuffle_xor(largest, 2));
      // Equal ones first: infinities would give NaN.
      rescale[half] = max[half] == largest ? 1 : expf(max[half] - largest);
      max[half] = largest;
      float sum = 0;
      SINTER_UNROLL
      for (int i = 0; i < kContextStep / 8; ++i) SINTER_UNROLL
      for (int j = 0; j < 2; ++j) {
        float& score = scores[i][2 * half + j];
        score = score == -infinity() ? 0 : score == largest ? 1 : expf(score - largest);
        sum += score;
      }
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      mass[half] = mass[half] * rescale[half] + sum;
    }
  }
};

// scores of 16 query rows with the cache rows of a step over elements chunk * 32 .. + 31; queries: the lines
// of that chunk in shared memory, [part][2][lane], parts `part_stride` lines apart; keys[i]: start of row 8i
// + g, or null.
template <typename Query, typename Cache>
SINTER_DEVICE void add_scores(const Line* queries, int part_stride, int chunk, int width, bool aligned,
                              const Cache* const (&keys)[kContextStep / 8], Scores& scores) {
  Line q[kPartsOf<Query>][2];
  SINTER_UNROLL
  for (int part = 0; part < kPartsOf<Query>; ++part) SINTER_UNROLL
  for (int half = 0; half < 2; ++half)
    q[part][half] = queries[part * part_stride + half * kWarp + lane_idx()];
  SINTER_UNROLL
  for (int i = 0; i < kContextStep / 8; ++i) {
    Octet<Cache> k;
    k.load(keys[i], chunk * 32 + lane_idx() % 4 * 8, width, aligned);
    SINTER_UNROLL
    for (int left = 0; left < kPartsOf<Query>; ++left) SINTER_UNROLL
    for (int right = 0; right < kPartsOf<Cache>; ++right) {
      if (left + right > 2) continue;  // under 2^-24 of the product
      SINTER_UNROLL
      for (int j = 0; j < 4; j += 2) {
        const U32 a[4] = {q[left][0].word[j], q[left][1].word[j], q[left][0].word[j + 1],
                          q[left][1].word[j + 1]};
        const U32 b[2] = {k.pairs[right][j], k.pairs[right][j + 1]};
        mma(scores[i], a, b);
      }
    }
  }
}

// Probabilities of 16 cache rows as the left operand; float32 results want them in three parts.
template <int kParts>
SINTER_DEVICE void pack_probabilities(const Scores& p, int half_step, U32 (&a)[kParts][4]) {
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float* pair = p[2 * half_step + i / 2] + i % 2 * 2;
    U32 parts[kParts];
    split_pair(pair[0], pair[1], parts);
    for (int part = 0; part < kParts; ++part) a[part][i] = parts[part];
  }
}

// sums[c] += probabilities times values over elements first + 64c .. + 63; value(i): start of row i, or null.
template <typename Query, typename Cache, int kChunks, typename Value>
SINTER_DEVICE void add_values(const Scores& p, int first, int width, bool aligned, const Value& value,
                              float (&sums)[kChunks][8][4]) {
  const int g = lane_idx() / 4, t = lane_idx() % 4;
  SINTER_UNROLL
  for (int half_step = 0; half_step < kContextStep / 16; ++half_step) {
    U32 a[kPartsOf<Query>][4];
    pack_probabilities(p, half_step, a);
    const Cache* rows[4];
    SINTER_UNROLL
    for (int i = 0; i < 4; ++i) rows[i] = value(16 * half_step + 2 * t + i / 2 * 8 + i % 2);
    SINTER_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      // Keeps the loads of later chunks behind: with those of four in registers, sm_100 and later spill.
      if constexpr (kChunks > 2) sync_warp();
      Octet<Cache> v[4];
      SINTER_UNROLL
      for (int i = 0; i < 4; ++i) v[i].load(rows[i], first + 64 * chunk + 8 * g, width, aligned);
      SINTER_UNROLL
      for (int j = 0; j < 8; ++j) SINTER_UNROLL
      for (int right = 0; right < kPartsOf<Cache>; ++right) {
        const U32 selector = j % 2 == 0 ? 0x5410 : 0x7632;
        const U32 b[2] = {pick_bytes(v[0].pairs[right][j / 2], v[1].pairs[right][j / 2], selector),
                          pick_bytes(v[2].pairs[right][j / 2], v[3].pairs[right][j / 2], selector)};
        SINTER_UNROLL
        for (int left = 0; left < kPartsOf<Query>; ++left)
          if (left + right <= 2) mma(sums[chunk][j], a[left], b);
      }
    }
  }
}

// Column, in its chunk, of sums[chunk][j][i] (row g, or g + 8 for i >= 2).
SINTER_DEVICE int value_column(int j, int i) { return lane_idx() % 4 * 16 + i % 2 * 8 + j; }

template <int kChunks>
SINTER_DEVICE void rescale_sums(float (&sums)[kChunks][8][4], const float (&rescale)[2]) {
  SINTER_UNROLL
  for (int chunk = 0; chunk < kChunks; ++chunk) SINTER_UNROLL
  for (int j = 0; j < 8; ++j) SINTER_UNROLL
  for (int i = 0; i < 4; ++i) sums[chunk][j][i] *= rescale[i / 2];
}

// One of 16 query rows into the lines that add_scores reads: element i of row r. width: rounded up to 32.
template <typename Query, typename Element>
SINTER_DEVICE void put_queries(Line* lines, int width, int first_thread, int num_sharing,
                               const Element& element) {
  const int num_lines = width / 32 * 2 * kWarp;
  for (int i = first_thread; i < num_lines; i += num_sharing) {
    const int lane = i % kWarp, half = i / kWarp % 2, chunk = i / kWarp / 2;
    const int row = lane / 4 + 8 * half, column = chunk * 32 + lane % 4 * 8;
    Line parts[kPartsOf<Query>];
    SINTER_UNROLL
    for (int j = 0; j < 4; ++j) {
      U32 pair[kPartsOf<Query>];
      split_pair(element(row, column + 2 * j), element(row, column + 2 * j + 1), pair);
      for (int part = 0; part < kPartsOf<Query>; ++part) parts[part].word[j] = pair[part];
    }
    for (int part = 0; part < kPartsOf<Query>; ++part) lines[part * num_lines + i] = parts[part];
  }
}

}  // namespace sinter::gpu
