// The report's state: its data, and the reader's choices.

const ROUNDING = 3e-7;

/** SHAP values of one row: those of player p and output k lie at p * n + k - first. */
class Values {
  constructor(report, shap, first, n, errors = null) {
    Object.assign(this, { report, shap, first, n, errors });
  }

  /** The standard error; 0 where values are exact. */
  error(player, output) {
    return this.errors?.[player * this.n + output - this.first] ?? 0;
  }

  at(player, output) {
    return this.shap[player * this.n + output - this.first];
  }

  /** The expected value plus the SHAP values; 0 if it is just the rounding error of single precision. */
  prediction(output) {
    let total = this.report.data.expected[output];
    let size = Math.abs(total);
    for (let p = 0; p < this.report.nPlayers; p++) {
      total += this.at(p, output);
      size += Math.abs(this.at(p, output));
    }
    return Math.abs(total) < ROUNDING * size ? 0 : total;
  }

  /** What the model predicts from raw output k (counted from the first raw one); null if that is the raw output. */
  response(k) {
    const { data, nRaw } = this.report;
    const raw = (i) => this.prediction(data.first_raw + i);
    if (data.link === "logistic") return 1 / (1 + Math.exp(-raw(k)));
    if (data.link === "exp") return Math.exp(raw(k));
    if (data.link === "expm1") return Math.expm1(raw(k));
    if (data.link !== "softmax") return null;
    const all = Array.from({ length: nRaw }, (_, i) => raw(i));
    const largest = Math.max(...all);
    return Math.exp(all[k] - largest) / all.reduce((sum, x) => sum + Math.exp(x - largest), 0);
  }
}

class Report {
  constructor(data, arrays, rows) {
    Object.assign(this, { data, arrays, tables: null, other: null });
    this.hold(rows);
    this.output = data.output;
    this.nPlayers = data.players.length;
    this.nOutputs = data.outputs.length;
    this.nRaw = this.nOutputs - data.first_raw;
    // A player with a single input shows the value of that input.
    this.inputsOf = data.players.map(() => []);
    data.inputs.forEach((input, i) => this.inputsOf[input.player].push(i));
    this.choose(0);
  }

  /** Rows, and later all of them: the first ones stay what they are. */
  hold(rows) {
    this.rows = rows;
    this.nRows = rows.index.length;
  }

  get isWhole() {
    return this.nRows === this.data.n_held;
  }

  choose(row) {
    this.row = row;
    this.edited = this.original();
  }

  /** The raw output that belongs to the chosen one. */
  rawOutput(output = this.output) {
    return output >= this.data.first_raw ? output : this.data.first_raw + output;
  }

  label(output = this.output) {
    return this.data.outputs[output].label;
  }

  /** The unit that the label does not tell: "points", "". */
  unit(output = this.output) {
    const { label, scale } = this.data.outputs[output];
    return scale === label ? "" : shorten(scale);
  }

  /** The unit of what the model predicts, and of observations. */
  get predictedUnit() {
    return this.data.response_unit || this.unit(0);
  }

  /** "prediction (points)". */
  heading(output = this.output) {
    const unit = this.unit(output);
    return unit ? `${this.label(output)} (${unit})` : this.label(output);
  }

  /** "208.02 points". */
  amount(number, output = this.output, sign = false) {
    return `${sign ? signed(number) : format(number)} ${this.unit(output)}`.trimEnd();
  }

  /** "SHAP value", with its unit if that is known. */
  valueText(output = this.output, what = "SHAP value") {
    const { scale } = this.data.outputs[output];
    return scale ? `${what} (${shorten(scale)})` : what;
  }

  value(row, input) {
    return this.rows.inputs[input * this.nRows + row];
  }

  shap(row, player, output = this.output) {
    return this.rows.shap[(row * this.nPlayers + player) * this.nOutputs + output];
  }

  stored(row) {
    const size = this.nPlayers * this.nOutputs;
    const mine = (array) => array?.subarray(row * size, (row + 1) * size);
    return new Values(this, mine(this.rows.shap), 0, this.nOutputs, mine(this.rows.error));
  }

  original(row = this.row) {
    return Float64Array.from(this.data.inputs, (_, i) => this.value(row, i));
  }

  /** SHAP values of raw outputs for a row of inputs; labels enter by their codes. */
  explain(values) {
    const numbers = values.map((value, i) => {
      const { labels, numbers } = this.data.inputs[i];
      return labels && !Number.isNaN(value) ? numbers[value] : value;
    });
    return new Values(this, this.tables.explain(numbers), this.data.first_raw, this.nRaw);
  }

  /** A prediction in words: "log-odds of good 1.2 (probability 77.0 %)". */
  predictionText(values, output = this.output) {
    const response = output >= this.data.first_raw ? values.response(output - this.data.first_raw) : null;
    return `${this.amount(values.prediction(output), output)}${response === null ? "" : ` (${this.responseText(response)})`}`;
  }

  responseText(response) {
    return ["logistic", "softmax"].includes(this.data.link) ? `probability ${percent(response)}` : `predicts ${format(response)} ${this.data.response_unit}`.trimEnd();
  }

  text(input, value) {
    const { labels } = this.data.inputs[input];
    if (Number.isNaN(value)) return MISSING;
    return labels ? labels[value] : format(value);
  }

  /** What a player looks like in a row of inputs. */
  playerText(player, values) {
    const mine = this.inputsOf[player];
    if (mine.length === 1) return this.text(mine[0], values[mine[0]]);
    return mine.map((i) => `${this.data.inputs[i].name} = ${this.text(i, values[i])}`).join(", ");
  }

  rowName(row) {
    return this.rows.names ? this.rows.names[row] : String(this.rows.index[row]);
  }

  /** The observation of a row; null if it is unknown. */
  actualText(row) {
    if (!this.data.actual) return null;
    const value = this.rows.actual[row];
    return this.data.actual.labels ? this.data.actual.labels[value] : format(value);
  }

  importance(player, output = this.output) {
    return this.arrays.importance[player * this.nOutputs + output];
  }

  /** Ends of the interval of the importance; null if there is none. */
  importanceEnds(player, output = this.output) {
    if (!this.arrays.importance_low) return null;
    const at = player * this.nOutputs + output;
    return [this.arrays.importance_low[at], this.arrays.importance_high[at]];
  }

  /** Players, the most important first. */
  ranking(output = this.output) {
    const players = Array.from({ length: this.nPlayers }, (_, p) => p);
    return players.sort((a, b) => this.importance(b, output) - this.importance(a, output));
  }

  /** Inputs, those of the most important players first. */
  inputRanking() {
    return this.ranking().flatMap((player) => this.inputsOf[player]);
  }

  /** Rows spread evenly over those that the page holds, at most `most`. */
  sample(most) {
    const n = Math.min(this.nRows, most);
    return Array.from({ length: n }, (_, k) => Math.floor((k * this.nRows) / n));
  }
}
