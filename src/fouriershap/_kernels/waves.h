// Waves: their training, and the factors of rows. The twin, waves_numpy.py, documents every array.
// Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_WAVES_ARGUMENTS
#define FOURIERSHAP_WAVES_ARGUMENTS
namespace fouriershap {

struct WaveAnswers {
  const float* inputs;   // (n_rows, n_columns)
  const float* targets;  // (n_rows, n_outputs)
  int64_t n_columns, n_outputs;
};

struct WaveSteps {
  const int32_t* order;  // (n_steps, n_batch) rows
  int64_t n_steps, n_batch;
  const float* schedule;  // (n_steps, 3)
};

// One after the other: frequencies (n_waves, n_columns), phases (n_waves), amplitudes (n_outputs, n_waves),
// linear (n_outputs, n_columns), constant (n_outputs).
struct WaveParameters {
  float* values;
  float* moments;  // (2, n_parameters)
  int64_t n_waves, n_parameters;
};

template <class T>
struct WaveRows {
  const T* values;      // (n_rows, n_features)
  const int32_t* slot;  // (n_rows, n_features)
  int64_t n_rows, n_features;
};

template <class T>
struct WaveFrequencies {
  const T* values;  // (n_columns, n_waves)
  int64_t n_waves;
  const int32_t* player;  // (n_features,)
  int64_t n_players;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// Adam's steps, in place. False: out of memory.
bool train(const WaveAnswers& answers, const WaveSteps& steps, const WaveParameters& parameters);

// out (n_rows, n_players, 2, n_waves): cosine and sine of what each player adds to the phase of each wave.
template <class T>
void factors(const WaveRows<T>& rows, const WaveFrequencies<T>& frequencies, T* out);

}  // namespace FS_LEVEL
}  // namespace fouriershap
