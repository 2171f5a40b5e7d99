// SHAP values of sums of waves, and of linear models.

/**
 * Sums of waves against what a background was compiled to, for one row at a time. Complex numbers are two arrays of
 * one entry per wave, real parts before imaginary ones, as in products_numpy.py; the strategies are those of
 * `_shapley/products`.
 */
class Products {
  constructor(header, arrays) {
    Object.assign(this, arrays);
    this.header = header;
    this.size = 2 * header.n_waves; // of one factor
    if (header.strategy === "mixture") this.marginals = this.mixed();
  }

  /** The mean of all components. */
  mixed() {
    const out = new Float64Array(this.header.n_players * this.size);
    this.weights.forEach((weight, c) => {
      for (let i = 0; i < out.length; i++) out[i] += weight * this.components[c * out.length + i];
    });
    return out;
  }

  /** The one column that a feature shows, and its value there (`Columns.slots`). */
  slot(value, f) {
    const levels = this.n_levels[f];
    const label = levels > 0;
    if (Number.isNaN(value)) return [this.first[f] + Math.max(levels, 1), label ? this.header.label_value : 1];
    if (label) return [this.first[f] + value, this.header.label_value];
    const scaled = (value - this.center[f]) / this.scale[f];
    const inner = Math.min(Math.max(scaled, this.low[f]), this.high[f]);
    const beyond = Math.min(Math.max(scaled, this.least[f]), this.most[f]) - inner;
    return [this.first[f], inner + Math.sign(beyond) * Math.log1p(Math.abs(beyond))];
  }

  /** SHAP values of a row: player p and output k at p * n_outputs + k. */
  explain(row) {
    const { n_players: nPlayers, n_outputs: nOutputs, n_waves: nWaves, strategy } = this.header;
    const nColumns = this.frequencies.length / nWaves;
    const factors = new Float64Array(nPlayers * this.size);
    const out = Float64Array.from(this.centre, (mean) => -mean);
    for (let f = 0; f < row.length; f++) {
      const [column, value] = this.slot(row[f], f);
      const player = this.player[f];
      for (let m = 0; m < nWaves; m++) factors[player * this.size + m] += value * this.frequencies[m * nColumns + column];
      for (let k = 0; k < nOutputs; k++) out[player * nOutputs + k] += value * this.linear[column * nOutputs + k];
    }
    for (let p = 0; p < nPlayers; p++) {
      for (let m = p * this.size; m < p * this.size + nWaves; m++) {
        const angle = factors[m];
        factors[m] = Math.cos(angle);
        factors[m + nWaves] = Math.sin(angle);
      }
    }
    const found = this[strategy](factors);
    for (let i = 0; i < out.length; i++) out[i] += found[i];
    return out;
  }

  /** sums[j] += weight * (x_j - a_j) * the integral of the product of all others, for one component a. */
  addComponent(sums, x, a, weight, points, pointWeights) {
    const { n_players: nPlayers, n_waves: nWaves } = this.header;
    const beforeReal = new Float64Array(nPlayers);
    const beforeImag = new Float64Array(nPlayers);
    for (let q = 0; q < points.length; q++) {
      for (let m = 0; m < nWaves; m++) {
        const factor = (j) => {
          const i = j * this.size + m;
          const t = points[q];
          return [a[i] + t * (x[i] - a[i]), a[i + nWaves] + t * (x[i + nWaves] - a[i + nWaves])];
        };
        let real = weight * pointWeights[q];
        let imag = 0;
        for (let j = 0; j < nPlayers; j++) {
          [beforeReal[j], beforeImag[j]] = [real, imag];
          const [r, i] = factor(j);
          [real, imag] = [real * r - imag * i, real * i + imag * r];
        }
        [real, imag] = [1, 0];
        for (let j = nPlayers - 1; j >= 0; j--) {
          const otherReal = beforeReal[j] * real - beforeImag[j] * imag;
          const otherImag = beforeReal[j] * imag + beforeImag[j] * real;
          const at = j * this.size + m;
          const [dr, di] = [x[at] - a[at], x[at + nWaves] - a[at + nWaves]];
          sums[at] += dr * otherReal - di * otherImag;
          sums[at + nWaves] += dr * otherImag + di * otherReal;
          const [r, i] = factor(j);
          [real, imag] = [real * r - imag * i, real * i + imag * r];
        }
      }
    }
  }

  /** Values (n, n_outputs) of sums (n, 2, n_waves): by the coefficients, whose imaginary parts are negated. */
  project(sums) {
    const { n_outputs: nOutputs } = this.header;
    const out = new Float64Array((sums.length / this.size) * nOutputs);
    for (let i = 0; i < out.length; i++) {
      const sum = Math.floor(i / nOutputs) * this.size;
      const coefficient = (i % nOutputs) * this.size;
      for (let m = 0; m < this.size; m++) out[i] += this.coefficients[coefficient + m] * sums[sum + m];
    }
    return out;
  }

  addComponents(x) {
    const { points, point_weights: pointWeights } = this.header;
    const sums = new Float64Array(x.length);
    this.weights.forEach((weight, c) => {
      this.addComponent(sums, x, this.components.subarray(c * x.length, (c + 1) * x.length), weight, points, pointWeights);
    });
    return sums;
  }

  pairs(x) {
    return this.project(this.addComponents(x));
  }

  /** By components; the ends of the integral are known, and a share of what is missed there is taken back. */
  mixture(x) {
    const { n_players: nPlayers, n_outputs: nOutputs, n_waves: nWaves } = this.header;
    const sums = this.addComponents(x);
    this.addComponent(sums, x, this.marginals, 1, [1], [this.header.end]);
    const near = this.near.subarray(0, x.length);
    const apart = this.near.subarray(x.length);
    const missed = new Float64Array(x.length);
    const all = new Float64Array(this.size).fill(1, 0, nWaves);
    for (let j = 0; j < nPlayers; j++) {
      for (let m = 0; m < nWaves; m++) {
        const [re, im] = [j * this.size + m, j * this.size + m + nWaves];
        sums[re] += this.header.end * (x[re] * near[re] - x[im] * near[im] - this.whole[m]);
        sums[im] += this.header.end * (x[re] * near[im] + x[im] * near[re] - this.whole[m + nWaves]);
        missed[re] = x[re] * apart[re] - x[im] * apart[im] - this.whole[this.size + m];
        missed[im] = x[re] * apart[im] + x[im] * apart[re] - this.whole[this.size + m + nWaves];
        const real = all[m];
        all[m] = real * x[re] - all[m + nWaves] * x[im];
        all[m + nWaves] = real * x[im] + all[m + nWaves] * x[re];
      }
    }
    const out = this.project(sums);
    const known = this.project(missed);
    const whole = this.project(all);
    for (let k = 0; k < nOutputs; k++) {
      let left = whole[k] + this.header.constant[k] - this.header.mean[k];
      let size = 0;
      for (let i = k; i < out.length; i += nOutputs) {
        out[i] += this.header.kappa * known[i];
        left -= out[i];
        size += Math.abs(known[i]) + Number.MIN_VALUE;
      }
      for (let i = k; i < out.length; i += nOutputs) out[i] += (left * (Math.abs(known[i]) + Number.MIN_VALUE)) / size;
    }
    return out;
  }

  /** The worth of every coalition, by the players of the row. */
  subsets(x) {
    const { n_players: nPlayers, n_outputs: nOutputs, n_waves: nWaves } = this.header;
    const out = new Float64Array(nPlayers * nOutputs);
    const nSets = 2 ** nPlayers;
    const products = new Float64Array(nSets * this.size).fill(1, 0, nWaves);
    const weight = [1 / nPlayers]; // of a coalition without the player, by its size
    for (let s = 1; s < nPlayers; s++) weight.push((weight[s - 1] * s) / (nPlayers - s));
    for (let set = 0, top = -1; set < nSets; set++) {
      const mine = set * this.size;
      if (set === 2 ** (top + 1)) top++;
      if (set > 0) {
        const rest = (set - 2 ** top) * this.size;
        for (let m = 0; m < nWaves; m++) {
          const [re, im] = [x[top * this.size + m], x[top * this.size + m + nWaves]];
          products[mine + m] = products[rest + m] * re - products[rest + m + nWaves] * im;
          products[mine + m + nWaves] = products[rest + m] * im + products[rest + m + nWaves] * re;
        }
      }
      const members = bitCount(set);
      for (let k = 0; k < nOutputs; k++) {
        const entry = (k * nSets + set) * this.size;
        let worth = 0;
        for (let m = 0; m < this.size; m++) worth += this.table[entry + m] * products[mine + m];
        for (let p = 0; p < nPlayers; p++) {
          out[p * nOutputs + k] += (set >> p) & 1 ? weight[members - 1] * worth : -weight[members] * worth;
        }
      }
    }
    return out;
  }
}

/** SHAP values of linear models: slopes times the distance from the mean of the background. */
class Linear {
  constructor(header, arrays) {
    Object.assign(this, arrays);
    this.header = header;
  }

  /** SHAP values of a row: player p and output k at p * n_outputs + k. */
  explain(row) {
    const { n_outputs: nOutputs } = this.header;
    const out = this.centre.map((mean) => -mean);
    row.forEach((value, f) => {
      for (let k = 0; k < nOutputs; k++) out[this.player[f] * nOutputs + k] += value * this.linear[f * nOutputs + k];
    });
    return out;
  }
}
