// SHAP values of linear models: slopes times the distance from the mean of the background.

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
