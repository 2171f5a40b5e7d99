// Waves: their training, and the factors of rows. waves_numpy.py is the specification.
#pragma once
#include "scratch.h"
#include "sincos.h"
#include "span.h"

namespace fouriershap {

struct WaveAnswers {
  Matrix<const float> inputs;   // (n_rows, n_columns)
  Matrix<const float> targets;  // (n_rows, n_outputs)
};

struct WaveSteps {
  Matrix<const int32_t> order;   // (n_steps, n_batch) rows; n_batch is a multiple of 16
  Matrix<const float> schedule;  // (n_steps, 3)
};

// One after the other: frequencies (n_waves, n_columns), phases (n_waves), amplitudes (n_outputs, n_waves),
// linear (n_outputs, n_columns), constant (n_outputs).
struct WaveParameters {
  Span<float> values;
  Matrix<float> moments;  // (2, n_parameters)
  int64_t n_waves;
};

template <class T>
struct WaveRows {
  Matrix<const T> values;      // (n_rows, n_features)
  Matrix<const int32_t> slot;  // (n_rows, n_features)
};

template <class T>
struct WaveFrequencies {
  Matrix<const T> values;      // (n_columns, n_waves)
  Span<const int32_t> player;  // (n_features,)
  int64_t n_players;
};

namespace {

typedef Vec<float>::type f32v;
constexpr int64_t kLanes = Vec<float>::lanes;
constexpr int64_t kTile = 2 * kLanes;  // columns of a product that stay in registers, in kRows rows
constexpr int64_t kRows = 4;
constexpr int64_t kBatch = 16;  // batches are a multiple of it, and so a multiple of kTile
constexpr int64_t kBlock = 64;  // rows of a batch at a time, whose data stay in the first-level cache

// Row-major (n_rows, n_inner) or, with the strides exchanged, its transpose.
struct Left {
  const float* values;
  int64_t by_row, by_inner;
};

// out[i][j..] (+)= sum_k left[i][k] right[k][j..] for Rows rows and kTile columns.
template <int64_t Rows>
inline void multiply_tile(const Left& left, int64_t n_inner, const float* right, int64_t width, bool add,
                          float* out) {
  f32v sums[Rows][2] = {};
  for (int64_t k = 0; k < n_inner; ++k) {
    const f32v first = load<f32v>(right + k * width), second = load<f32v>(right + k * width + kLanes);
    for (int64_t i = 0; i < Rows; ++i) {
      const float scale = left.values[i * left.by_row + k * left.by_inner];
      sums[i][0] += scale * first;
      sums[i][1] += scale * second;
    }
  }
  for (int64_t i = 0; i < Rows; ++i)
    for (int64_t v = 0; v < 2; ++v) {
      float* at = out + i * width + v * kLanes;
      store(at, add ? load<f32v>(at) + sums[i][v] : sums[i][v]);
    }
}

// out (n_rows, width) (+)= left (n_rows, n_inner) right (n_inner, width). width: a multiple of kTile.
void multiply(const Left& left, int64_t n_rows, int64_t n_inner, const float* right, int64_t width, bool add,
              float* out) {
  assert(width % kTile == 0);
  for (int64_t j = 0; j < width; j += kTile) {
    int64_t i = 0;
    for (; i + kRows <= n_rows; i += kRows)
      multiply_tile<kRows>({left.values + i * left.by_row, left.by_row, left.by_inner}, n_inner, right + j,
                           width, add, out + i * width + j);
    for (; i < n_rows; ++i)
      multiply_tile<1>({left.values + i * left.by_row, left.by_row, left.by_inner}, n_inner, right + j, width,
                       add, out + i * width + j);
  }
}

inline float total(f32v v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

inline float sum_of(const float* a, int64_t n) {
  f32v sum = {};
  for (int64_t i = 0; i < n; i += kLanes) sum += load<f32v>(a + i);
  return total(sum);
}

inline float dot(const float* a, const float* b, int64_t n) {
  f32v sum = {};
  for (int64_t i = 0; i < n; i += kLanes) sum += load<f32v>(a + i) * load<f32v>(b + i);
  return total(sum);
}

// Where the parts of the parameters begin; a gradient has the same ones.
struct Parts {
  float *frequencies, *phases, *amplitudes, *linear, *constant;
};

inline Parts parts_of(float* values, int64_t n_waves, int64_t n_columns, int64_t n_outputs) {
  float* phases = values + n_waves * n_columns;
  float* amplitudes = phases + n_waves;
  float* linear = amplitudes + n_outputs * n_waves;
  return {values, phases, amplitudes, linear, linear + n_outputs * n_columns};
}

struct Batch {
  int64_t n;  // rows at a time
  int64_t n_columns, n_outputs, n_waves;
  int64_t width;   // n_columns, rounded up to a multiple of kTile
  float* rows;     // (n, width), padded by zeros
  float* columns;  // (n_columns, n)
  float* cosine;   // (n_waves, n)
  float* sine;     // (n_waves, n)
  float* missed;   // (n_outputs, n): prediction less target
  float* slope;    // (n_waves, n): angles, then the gradient of the error by them
  float* wide;     // (n_waves + n_outputs, width): slopes of the frequencies, then of the linear part
};

void gather(const WaveAnswers& answers, const int32_t* order, const float* constant, const Batch& batch) {
  for (int64_t i = 0; i < batch.n; ++i) {
    const float* row = answers.inputs[order[i]];
    std::memcpy(batch.rows + i * batch.width, row, batch.n_columns * sizeof(float));
    for (int64_t k = 0; k < batch.n_columns; ++k) batch.columns[k * batch.n + i] = row[k];
    const float* target = answers.targets[order[i]];
    for (int64_t q = 0; q < batch.n_outputs; ++q) batch.missed[q * batch.n + i] = constant[q] - target[q];
  }
}

void forward(const Parts& p, const Batch& batch) {
  const int64_t n = batch.n, n_columns = batch.n_columns, n_waves = batch.n_waves;
  multiply({p.linear, n_columns, 1}, batch.n_outputs, n_columns, batch.columns, n, true, batch.missed);
  multiply({p.frequencies, n_columns, 1}, n_waves, n_columns, batch.columns, n, false, batch.slope);
  for (int64_t m = 0; m < n_waves; ++m)
    for (int64_t i = m * n; i < (m + 1) * n; i += kLanes) {
      f32v sine, cosine;
      sincos<float>(load<f32v>(batch.slope + i) + p.phases[m], &sine, &cosine);
      store(batch.sine + i, sine);
      store(batch.cosine + i, cosine);
    }
  multiply({p.amplitudes, n_waves, 1}, batch.n_outputs, n_waves, batch.cosine, n, true, batch.missed);
}

void copy_narrow(const float* wide, int64_t n_rows, int64_t width, int64_t n_columns, float* out) {
  for (int64_t i = 0; i < n_rows; ++i)
    std::memcpy(out + i * n_columns, wide + i * width, n_columns * sizeof(float));
}

// Adds the gradient of the square error times scale, summed over outputs; of frequencies and the linear part
// to `wide`.
void backward(const Parts& p, const Batch& batch, float scale, const Parts& gradient) {
  const int64_t n = batch.n, n_waves = batch.n_waves, n_outputs = batch.n_outputs;
  for (int64_t i = 0; i < n_outputs * n; ++i) batch.missed[i] *= scale;
  multiply({p.amplitudes, 1, n_waves}, n_waves, n_outputs, batch.missed, n, false, batch.slope);
  for (int64_t m = 0; m < n_waves; ++m) {
    for (int64_t i = m * n; i < (m + 1) * n; ++i) batch.slope[i] *= -batch.sine[i];
    gradient.phases[m] += sum_of(batch.slope + m * n, n);
    for (int64_t q = 0; q < n_outputs; ++q)
      gradient.amplitudes[q * n_waves + m] += dot(batch.cosine + m * n, batch.missed + q * n, n);
  }
  for (int64_t q = 0; q < n_outputs; ++q) gradient.constant[q] += sum_of(batch.missed + q * n, n);
  multiply({batch.slope, n, 1}, n_waves, n, batch.rows, batch.width, true, batch.wide);
  multiply({batch.missed, n, 1}, n_outputs, n, batch.rows, batch.width, true,
           batch.wide + n_waves * batch.width);
}

// schedule: the rate, its correction for young second moments, and what is left of the frequencies.
void step(const float* schedule, const float* gradient, const WaveParameters& parameters,
          int64_t n_frequencies) {
  const float rate = schedule[0], correction = schedule[1], kept = schedule[2];
  float *values = parameters.values, *first = parameters.moments[0], *second = parameters.moments[1];
  for (int64_t i = 0; i < parameters.values.size; ++i) {
    const float g = gradient[i];
    first[i] = 0.9f * first[i] + 0.1f * g;
    second[i] = 0.99f * second[i] + 0.01f * g * g;
    values[i] -= rate * first[i] / (__builtin_sqrtf(second[i] * correction) + 1e-8f);
  }
  for (int64_t i = 0; i < n_frequencies; ++i) values[i] *= kept;
}

// Adam's steps, in place.
void train(const WaveAnswers& answers, const WaveSteps& steps, const WaveParameters& parameters) {
  const int64_t n_batch = steps.order.columns, n = n_batch % kBlock ? kBatch : kBlock;
  const int64_t n_waves = parameters.n_waves, n_parameters = parameters.values.size;
  const int64_t n_columns = answers.inputs.columns, n_outputs = answers.targets.columns;
  const int64_t width = (n_columns + kTile - 1) / kTile * kTile, n_wide = (n_waves + n_outputs) * width;
  const AlignedScratch<float> rows(n * width, 0.0f), columns(n_columns * n), missed(n_outputs * n);
  const AlignedScratch<float> cosine(n_waves * n), sine(n_waves * n), slope(n_waves * n), wide(n_wide);
  const AlignedScratch<float> gradient(n_parameters);
  const Batch batch = {n,       n_columns, n_outputs, n_waves, width, rows,
                       columns, cosine,    sine,      missed,  slope, wide};
  const Parts values = parts_of(parameters.values, n_waves, n_columns, n_outputs);
  const Parts slopes = parts_of(gradient, n_waves, n_columns, n_outputs);
  for (int64_t s = 0; s < steps.order.rows; ++s) {
    const int32_t* order = steps.order[s];
    std::memset(static_cast<float*>(gradient), 0, n_parameters * sizeof(float));
    std::memset(static_cast<float*>(wide), 0, n_wide * sizeof(float));
    for (int64_t first = 0; first < n_batch; first += n) {
      gather(answers, order + first, values.constant, batch);
      forward(values, batch);
      backward(values, batch, 2.0f / static_cast<float>(n_batch), slopes);
    }
    copy_narrow(wide, n_waves, width, n_columns, slopes.frequencies);
    copy_narrow(wide + n_waves * width, n_outputs, width, n_columns, slopes.linear);
    step(steps.schedule[s], gradient, parameters, n_waves * n_columns);
  }
}

// out (n_rows, n_players, 2, n_waves): cosine and sine of each player's part of the phase of each wave.
template <class T>
void factors(const WaveRows<T>& rows, const WaveFrequencies<T>& frequencies, T* out) {
  typedef typename Vec<T>::type V;
  constexpr int64_t lanes = Vec<T>::lanes;
  const int64_t n = frequencies.values.columns, stride = 2 * n * frequencies.n_players;
  for (int64_t r = 0; r < rows.values.rows; ++r) {
    T* mine = out + r * stride;
    for (int64_t i = 0; i < stride; ++i) mine[i] = T(0);
    for (int64_t f = 0; f < rows.values.columns; ++f) {
      const T value = rows.values[r][f];
      const T* frequency = frequencies.values[rows.slot[r][f]];
      T* angle = mine + frequencies.player[f] * 2 * n;
      for (int64_t m = 0; m < n; m += lanes)
        store(angle + m, load<V>(angle + m) + value * load<V>(frequency + m));
    }
    for (int64_t p = 0; p < frequencies.n_players; ++p)
      for (int64_t m = 0; m < n; m += lanes) {
        T* at = mine + p * 2 * n + m;
        V sine, cosine;
        sincos<T>(load<V>(at), &sine, &cosine);
        store(at, cosine);
        store(at + n, sine);
      }
  }
}

}  // namespace
}  // namespace fouriershap
