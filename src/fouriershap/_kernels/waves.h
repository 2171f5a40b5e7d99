// Waves: their training, and the factors of rows. waves_numpy.py is the specification.
#pragma once
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

// Adam's steps, in place.
void train(const WaveAnswers& answers, const WaveSteps& steps, const WaveParameters& parameters);

// out (n_rows, n_players, 2, n_waves): cosine and sine of each player's part of the phase of each wave.
template <class T>
void factors(const WaveRows<T>& rows, const WaveFrequencies<T>& frequencies, T* out);

}  // namespace fouriershap
