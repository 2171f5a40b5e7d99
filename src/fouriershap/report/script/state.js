// The report's state.

/** Everything that is shown: the data as they came, and what the reader has chosen. */
class Report {
  constructor(data, arrays, rows, tables) {
    Object.assign(this, { data, arrays, rows, tables });
    this.output = 0;
    this.nRows = rows.index.length;
    this.nPlayers = data.players.length;
    this.nOutputs = data.outputs.length;
    // An input that a player owns alone gives the player its value.
    this.inputsOf = data.players.map(() => []);
    data.inputs.forEach((input, i) => this.inputsOf[input.player].push(i));
    this.choose(0);
  }

  choose(row) {
    this.row = row;
    this.edited = this.original();
  }

  value(row, input) {
    return this.rows.inputs[input * this.nRows + row];
  }

  shap(row, player, output = this.output) {
    return this.rows.shap[(row * this.nPlayers + player) * this.nOutputs + output];
  }

  /** SHAP values of a stored row, laid out as `Tables.explain` does. */
  stored(row) {
    const size = this.nPlayers * this.nOutputs;
    return this.rows.shap.subarray(row * size, (row + 1) * size);
  }

  original() {
    return Float64Array.from(this.data.inputs, (_, i) => this.value(this.row, i));
  }

  /** SHAP values of a row of inputs; labels enter by the numbers that the model knows them by. */
  explain(values) {
    const numbers = values.map((value, i) => {
      const { labels, numbers } = this.data.inputs[i];
      return labels && !Number.isNaN(value) ? numbers[value] : value;
    });
    return this.tables.explain(numbers);
  }

  prediction(shap, output = this.output) {
    let total = this.data.expected[output];
    for (let p = 0; p < this.nPlayers; p++) total += shap[p * this.nOutputs + output];
    return total;
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

  importance(player) {
    return this.arrays.importance[player * this.nOutputs + this.output];
  }

  /** Players, the most important first. */
  ranking() {
    const players = Array.from({ length: this.nPlayers }, (_, p) => p);
    return players.sort((a, b) => this.importance(b) - this.importance(a));
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

  probabilities(shap) {
    if (this.data.link !== "softmax") return null;
    const raw = this.data.outputs.map((_, k) => this.prediction(shap, k));
    const largest = Math.max(...raw);
    const powers = raw.map((x) => Math.exp(x - largest));
    const total = powers.reduce((a, b) => a + b);
    return powers.map((x) => x / total);
  }
}
