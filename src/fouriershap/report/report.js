// The report page: rows, charts, and SHAP values computed anew when a reader changes a row.
//
// The look-ups of tables are those of encode_numpy.py and tables_numpy.py, by the same names: a value becomes a code, the codes of a
// block a pattern, and each table of the block holds, for each pattern, what 8 players get.

const WIDTH = 8; // players of a table
const NO_COLUMN = 2 ** 31 - 1; // where the code of an input that no table reads goes
const TYPES = { uint8: Uint8Array, uint16: Uint16Array, int32: Int32Array, float32: Float32Array, float64: Float64Array };

// ---- Data ----------------------------------------------------------------------------------------------------

/** A typed array from base64 of deflated bytes. */
async function unpack({ dtype, data }) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new TYPES[dtype](await new Response(stream).arrayBuffer());
}

export async function unpackAll(packed) {
  const names = Object.keys(packed);
  const arrays = await Promise.all(names.map((name) => unpack(packed[name])));
  return Object.fromEntries(names.map((name, i) => [name, arrays[i]]));
}

// ---- Codes, patterns, look-ups -------------------------------------------------------------------------------

/** How many of levels[first ... last - 1], which are sorted, are <= value. */
function countUpTo(levels, first, last, value) {
  let low = first;
  let high = last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (levels[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - first;
}

/** Compiled tables, applied to one row at a time. */
export class Tables {
  constructor(header, arrays) {
    Object.assign(this, arrays);
    this.header = header;
    this.codes8 = new Uint8Array(header.n_narrow);
    this.codes16 = new Uint16Array(header.n_wide);
    this.patternOf = new Int32Array(arrays.base.length);
  }

  /** A number as the model compares it: in its own precision, NaN where it counts as missing. */
  clean(value, input) {
    const { single, missing_value: missing, zero_band: band } = this.header;
    const number = single ? Math.fround(value) : value;
    if (missing !== null && number === (single ? Math.fround(missing) : missing)) return NaN;
    return this.zero_as_missing[input] && Math.abs(number) <= band ? NaN : number;
  }

  /** The code of an input's value: categories by position, numbers by how many thresholds are <= them. */
  code(value, input) {
    const first = this.level_start[input];
    const last = this.level_start[input + 1];
    const number = this.clean(value, input);
    if (Number.isNaN(number)) return last - first + 1;
    if (!this.categorical[input]) return countUpTo(this.levels, first, last, number);
    const whole = Math.trunc(number);
    const upTo = countUpTo(this.levels, first, last, whole);
    return upTo > 0 && this.levels[first + upTo - 1] === whole ? upTo - 1 : last - first;
  }

  /** Write the codes of a row where the tables read them. */
  encode(row) {
    for (let i = 0; i < row.length; i++) {
      const column = this.column[i];
      if (column === NO_COLUMN) continue;
      if (column >= 0) this.codes8[column] = this.code(row[i], i);
      else this.codes16[~column] = this.code(row[i], i);
    }
    if (this.page_line) this.pages();
  }

  /** Narrow codes that are read off wide ones; a line of several pages is their parity. */
  pages() {
    for (const line of this.page_line) this.codes8[line] = 0;
    for (let p = 0; p < this.page_line.length; p++) {
      this.codes8[this.page_line[p]] ^= this.page_lut[this.page_offset[p] + this.codes16[this.page_source[p]]];
    }
  }

  /** The pattern of each block. Cuts on missing values are never left out: other codes do not reach them. */
  patterns() {
    for (let b = 0; b < this.base.length; b++) {
      let pattern = this.base[b];
      for (let c = this.cut_start[b]; c < this.cut_start[b + 1]; c++) {
        const column = this.cut_column[c];
        const code = column >= 0 ? this.codes8[column] : this.codes16[~column];
        if (code >= this.cut_at[c]) pattern += this.cut_weight[c];
      }
      this.patternOf[b] = pattern;
    }
  }

  /** SHAP values of a row: player p and output k at p * n_outputs + k. */
  explain(row) {
    const { n_players: nPlayers, n_outputs: nOutputs } = this.header;
    const out = new Float64Array(nPlayers * nOutputs);
    this.encode(row);
    this.patterns();
    for (let g = 0; g < this.group_output.length; g++) {
      for (let t = this.group_start[g]; t < this.group_start[g + 1]; t++) {
        const block = this.table_block[t];
        const size = this.n_patterns[block] * WIDTH;
        for (let w = 0; w < this.group_width[g]; w++) {
          const entry = this.table_offset[t] + w * size + this.patternOf[block] * WIDTH;
          for (let j = 0; j < WIDTH; j++) {
            const player = this.group_players[g * WIDTH + j];
            if (player >= 0) out[player * nOutputs + this.group_output[g] + w] += this.values[entry + j];
          }
        }
      }
    }
    return out;
  }
}

// ---- Waves ---------------------------------------------------------------------------------------------------

/**
 * Sums of waves against what a background was compiled to, for one row at a time. Complex numbers are two arrays of
 * one entry per wave, real parts before imaginary ones, as in products_numpy.py; the roads are those of
 * `_shapley/products`.
 */
export class Products {
  constructor(header, arrays) {
    Object.assign(this, arrays);
    this.header = header;
    this.size = 2 * header.n_waves; // of one factor
    if (header.road === "mixture") this.marginals = this.mixed();
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
    const { n_players: nPlayers, n_outputs: nOutputs, n_waves: nWaves, road } = this.header;
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
    const found = this[road](factors);
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

  pairs(x) {
    const { points, point_weights: pointWeights } = this.header;
    const sums = new Float64Array(x.length);
    this.weights.forEach((weight, c) => {
      this.addComponent(sums, x, this.components.subarray(c * x.length, (c + 1) * x.length), weight, points, pointWeights);
    });
    return this.project(sums);
  }

  /** By components; the ends of the integral are known, and a share of what is missed there is taken back. */
  mixture(x) {
    const { n_players: nPlayers, n_outputs: nOutputs, n_waves: nWaves, points, point_weights: pointWeights } = this.header;
    const sums = new Float64Array(x.length);
    this.weights.forEach((weight, c) => {
      this.addComponent(sums, x, this.components.subarray(c * x.length, (c + 1) * x.length), weight, points, pointWeights);
    });
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
      let members = 0;
      for (let p = 0; p < nPlayers; p++) members += (set >> p) & 1;
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

/** Explainers whose values add up. */
class Sum {
  constructor(parts) {
    this.parts = parts;
  }

  explain(row) {
    return this.parts.map((part) => part.explain(row)).reduce((a, b) => a.map((value, i) => value + b[i]));
  }
}

async function whatIfOf(parts) {
  const make = async (part) => new (part.kind === "products" ? Products : Tables)(part, await unpackAll(part.arrays));
  return new Sum(await Promise.all(parts.map(make)));
}

// ---- Text ----------------------------------------------------------------------------------------------------

const MISSING = "missing";

function format(number) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? MISSING : String(number);
  if (number !== 0 && Math.abs(number) < 1e-4) return number.toExponential(2).replace("-", "−");
  return String(Number(number.toPrecision(5))).replace("-", "−");
}

function signed(number) {
  return (number >= 0 ? "+" : "") + format(number);
}

/** Numbers that stand below each other: as many decimals as three digits of their range need. */
function decimals(span) {
  return span > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(span)), 0), 9) : 2;
}

function fixed(number, digits, sign = false) {
  const text = Math.abs(number) < 1e7 ? number.toFixed(digits) : number.toExponential(2);
  return (sign && number >= 0 ? "+" : "") + text.replace("-", "−");
}

function shorten(text, length) {
  const characters = Array.from(text.slice(0, 4 * length));
  return characters.length > length ? characters.slice(0, length - 1).join("") + "…" : characters.join("");
}

/** Text for plotly, which reads some HTML: escaped, and short enough for a chart. */
function chartText(text, length = 24) {
  return shorten(text, length).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\s/g, " ");
}

/** An element with text; never markup. */
function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const byId = (id) => document.getElementById(id);

// ---- The report's state --------------------------------------------------------------------------------------

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

// ---- Waterfall -----------------------------------------------------------------------------------------------

const MOST_BARS = 12;

/** From the expected value to the prediction, a bar per player; drawn once, then moved. */
class Waterfall {
  constructor(container) {
    this.heading = container.appendChild(element("h3"));
    this.list = container.appendChild(element("ol"));
    this.items = [];
  }

  #item(index) {
    if (!this.items[index]) {
      const item = this.list.appendChild(element("li"));
      const name = item.appendChild(element("span", "", { class: "name" }));
      const label = name.appendChild(element("span"));
      const value = name.appendChild(element("small"));
      const bar = item.appendChild(element("span", "", { class: "track" })).appendChild(element("span", "", { class: "bar" }));
      this.items[index] = { item, name, label, value, bar, number: item.appendChild(element("data")) };
    }
    return this.items[index];
  }

  /** Each step: {name, text, from, to, kind}; positions are shares of the range. */
  draw(title, steps, [low, high]) {
    this.heading.textContent = title;
    const place = (x) => (100 * (x - low)) / (high - low || 1);
    const digits = decimals(high - low);
    steps.forEach((step, index) => {
      const { item, name, label, value, bar, number } = this.#item(index);
      item.className = step.kind;
      label.textContent = shorten(step.name, 200);
      value.textContent = step.text ? ` = ${shorten(step.text, 200)}` : "";
      name.title = shorten(label.textContent + value.textContent, 400);
      bar.style.left = `${place(Math.min(step.from, step.to))}%`;
      bar.style.width = step.kind === "total" ? "" : `${place(Math.max(step.from, step.to)) - place(Math.min(step.from, step.to))}%`;
      number.value = String(step.number);
      number.textContent = fixed(step.number, digits, step.kind !== "total");
      if (step.player === undefined) item.removeAttribute("data-player");
      else item.dataset.player = step.player;
    });
    while (this.items.length > steps.length) this.items.pop().item.remove();
  }
}

/** Players to draw: those with the largest values, and all that were changed. */
function playersToDraw(report, shap, changed) {
  const size = (p) => Math.abs(shap[p * report.nOutputs + report.output]);
  const order = Array.from({ length: report.nPlayers }, (_, p) => p).sort((a, b) => size(b) - size(a));
  const first = order.slice(0, order.length <= MOST_BARS + 1 ? MOST_BARS + 1 : MOST_BARS);
  return first.concat([...changed].filter((p) => !first.includes(p)));
}

function waterfallSteps(report, shap, values, players, changed) {
  const { data, output, nOutputs } = report;
  let at = data.expected[output];
  const steps = [{ name: "expected value", from: at, to: at, number: at, kind: "total" }];
  const add = (name, text, number, player) => {
    const kind = (number >= 0 ? "plus" : "minus") + (changed.has(player) ? " changed" : "");
    steps.push({ name, text, from: at, to: at + number, number, kind, player });
    at += number;
  };
  for (const p of players) add(data.players[p], report.playerText(p, values), shap[p * nOutputs + output], p);
  const prediction = report.prediction(shap);
  const nOthers = report.nPlayers - players.length;
  if (nOthers > 0) add(`${nOthers} others`, "", prediction - at);
  steps.push({ name: "prediction", from: prediction, to: prediction, number: prediction, kind: "total" });
  return steps;
}

function stepRange(...lists) {
  const ends = lists.flat().flatMap((step) => [step.from, step.to]);
  return [Math.min(...ends), Math.max(...ends)];
}

// ---- Charts --------------------------------------------------------------------------------------------------

const CONFIG = { displayModeBar: false, responsive: true };
const SCALE = [[0, "#3a86d8"], [0.5, "#9d86c4"], [1, "#e5487f"]]; // readable on light and on dark
const GROUPS = ["#3a86d8", "#e58a1f", "#2a9d74", "#e5487f", "#9d6fd0", "#8d9a2b", "#c0694e", "#808b9c"];
const GREY = "#808b9c";
const MOST_SHOWN = 15; // players in a chart
const MOST_DOTS = 3000; // SVG elements that browsers draw without effort

function layout(changes) {
  return {
    margin: { l: 150, r: 20, t: 10, b: 45 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13 },
    hoverlabel: { bgcolor: "#1d2430", bordercolor: "#1d2430", font: { color: "#ffffff" }, align: "left" },
    showlegend: false,
    dragmode: false,
    ...changes,
  };
}

function playerAxis(report, players) {
  return {
    tickvals: players.map((_, rank) => rank),
    ticktext: players.map((p) => chartText(report.data.players[p], 20)),
    range: [players.length - 0.4, -0.6],
    showgrid: false,
    zeroline: false,
    fixedrange: true,
  };
}

const chartHeight = (n) => 80 + 26 * Math.max(n, 3);

function drawImportance(report) {
  const all = report.ranking();
  const players = all.slice(0, MOST_SHOWN);
  const sizes = players.map((p) => report.importance(p));
  const trace = {
    type: "bar",
    orientation: "h",
    x: sizes,
    y: players.map((_, rank) => rank),
    hoverinfo: "text",
    hovertext: players.map((p, i) => `${chartText(report.data.players[p], 60)}<br>${format(sizes[i])}`),
  };
  const xaxis = { title: { text: "mean |SHAP value|" }, fixedrange: true, zeroline: false };
  const shape = layout({ height: chartHeight(players.length), xaxis, yaxis: playerAxis(report, players), bargap: 0.35 });
  Plotly.react("importance", [trace], shape, CONFIG);
  const table = byId("importance-table");
  table.replaceChildren();
  const head = table.createTHead().insertRow();
  for (const text of ["feature", "mean |SHAP value|"]) head.append(element("th", text, { scope: "col" }));
  const body = table.createTBody();
  for (const p of all) {
    const line = body.insertRow();
    line.append(element("td", shorten(report.data.players[p], 80)), element("td", format(report.importance(p))));
  }
}

/** Numbers between 0 and 1 by which an input's values are coloured: their ranks, so that outliers do not rule. */
function colourRanks(report, input, rows) {
  const values = rows.map((r) => report.value(r, input));
  const sorted = Float64Array.from(values.filter((v) => !Number.isNaN(v))).sort();
  const span = Math.max(sorted.length - 1, 1);
  return values.map((v) => (Number.isNaN(v) ? NaN : (countUpTo(sorted, 0, sorted.length, v) - 1) / span));
}

/** Offsets that spread dots of about the same place over the height of a line. */
function swarm(values) {
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const filled = new Map();
  const heights = values.map((v) => {
    const bin = Math.round((80 * (v - low)) / span);
    const n = filled.get(bin) ?? 0;
    filled.set(bin, n + 1);
    return n % 2 ? (n + 1) / 2 : -n / 2;
  });
  const widest = Math.max(...heights.map(Math.abs), 6);
  return heights.map((h) => (0.4 * h) / widest);
}

function drawBeeswarm(report) {
  const players = report.ranking().slice(0, MOST_SHOWN);
  const rows = report.sample(Math.floor(MOST_DOTS / players.length));
  const dots = { x: [], y: [], color: [], text: [], customdata: [] };
  players.forEach((player, rank) => {
    const shap = rows.map((r) => report.shap(r, player));
    const offsets = swarm(shap);
    const mine = report.inputsOf[player];
    const ranks = mine.length === 1 ? colourRanks(report, mine[0], rows) : rows.map(() => NaN);
    const name = chartText(report.data.players[player], 40);
    rows.forEach((row, k) => {
      dots.x.push(shap[k]);
      dots.y.push(rank + offsets[k]);
      dots.color.push(Number.isNaN(ranks[k]) ? GREY : colourAt(ranks[k]));
      const value = mine.length === 1 ? ` = ${chartText(report.text(mine[0], report.value(row, mine[0])), 40)}` : "";
      dots.text.push(`${name}${value}<br>row ${chartText(report.rowName(row))}: ${signed(shap[k])}`);
      dots.customdata.push(row);
    });
  });
  const trace = {
    type: "scatter",
    mode: "markers",
    x: dots.x,
    y: dots.y,
    text: dots.text,
    customdata: dots.customdata,
    hoverinfo: "text",
    marker: { color: dots.color, size: 5, opacity: 0.75 },
  };
  const xaxis = { title: { text: "SHAP value" }, fixedrange: true, zeroline: true };
  const shape = layout({ height: chartHeight(players.length), xaxis, yaxis: playerAxis(report, players), hovermode: "closest" });
  Plotly.react("beeswarm", [trace], shape, CONFIG);
  const few = rows.length < report.nRows ? ` Drawn: ${rows.length} rows, evenly spread.` : "";
  byId("beeswarm-text").textContent = `A dot per row: blue for low values of the feature (labels: early in their list), red for high ones.${few}`;
}

function colourAt(share) {
  const [from, to] = share < 0.5 ? [SCALE[0][1], SCALE[1][1]] : [SCALE[1][1], SCALE[2][1]];
  const t = share < 0.5 ? 2 * share : 2 * share - 1;
  const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  return `rgb(${[0, 1, 2].map((k) => Math.round(part(from, k) + t * (part(to, k) - part(from, k)))).join(",")})`;
}

function drawDependence(report) {
  const x = Number(byId("dependence-x").value);
  const colour = Number(byId("dependence-color").value);
  const input = report.data.inputs[x];
  const all = report.sample(MOST_DOTS);
  const rows = all.filter((r) => !Number.isNaN(report.value(r, x)));
  const hover = (r) => {
    const line = (i) => `${chartText(report.data.inputs[i].name, 40)} = ${chartText(report.text(i, report.value(r, i)), 40)}`;
    const lines = x === colour ? [line(x)] : [line(x), line(colour)];
    return [...lines, `row ${chartText(report.rowName(r))}: ${signed(report.shap(r, input.player))}`].join("<br>");
  };
  const { groups, legend, marker } = dependenceColours(report, colour, rows);
  const jitter = (k) => (input.labels ? (((k * 0.618) % 1) - 0.5) * 0.4 : 0);
  const traces = groups.map(({ name, members, color }) => ({
    type: "scatter",
    mode: "markers",
    name,
    x: members.map((r, k) => report.value(r, x) + jitter(k)),
    y: members.map((r) => report.shap(r, input.player)),
    text: members.map(hover),
    customdata: members,
    hoverinfo: "text",
    marker: { size: 6, opacity: 0.75, ...(color ? { color } : marker) },
  }));
  const xaxis = { title: { text: chartText(input.name, 60) }, fixedrange: true, zeroline: false, automargin: true };
  if (input.labels) {
    xaxis.tickvals = input.labels.slice(0, 60).map((_, k) => k);
    xaxis.ticktext = input.labels.slice(0, 60).map((label) => chartText(label, 16));
  }
  const yaxis = { title: { text: `SHAP value of ${chartText(report.data.players[input.player], 24)}` }, fixedrange: true };
  const key = { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 };
  const shape = layout({ height: 400, margin: { l: 65, r: 20, t: 10, b: 45 }, xaxis, yaxis, hovermode: "closest", showlegend: legend, legend: key });
  Plotly.react("dependence", traces, shape, CONFIG);
}

/** Dots by category with a legend, or all of them on one scale. */
function dependenceColours(report, colour, rows) {
  const { labels, name } = report.data.inputs[colour];
  if (!labels) {
    const known = rows.filter((r) => !Number.isNaN(report.value(r, colour)));
    const missing = rows.filter((r) => Number.isNaN(report.value(r, colour)));
    const bar = { title: { text: chartText(name, 24), side: "right" }, thickness: 10, outlinewidth: 0 };
    const marker = { color: known.map((r) => report.value(r, colour)), colorscale: SCALE, colorbar: bar };
    return { groups: [{ name: MISSING, members: missing, color: GREY }, { name: "", members: known }], legend: false, marker };
  }
  const members = new Map();
  for (const r of rows) {
    const text = report.text(colour, report.value(r, colour));
    if (!members.has(text)) members.set(text, []);
    members.get(text).push(r);
  }
  const sorted = [...members].sort((a, b) => b[1].length - a[1].length);
  const groups = sorted.slice(0, GROUPS.length - 1).map(([text, mine], k) => ({ name: chartText(text, 20), members: mine, color: GROUPS[k] }));
  const rest = sorted.slice(GROUPS.length - 1).flatMap(([, mine]) => mine);
  if (rest.length) groups.push({ name: "others", members: rest, color: GREY });
  return { groups, legend: true, marker: {} };
}

function drawInteractions(report) {
  const all = report.arrays.interactions;
  if (!all) return;
  byId("interactions-figure").hidden = false;
  const n = report.nPlayers;
  const players = report.ranking();
  const at = (a, b) => all[(report.output * n + a) * n + b];
  const names = players.map((p) => chartText(report.data.players[p], 20));
  const axis = { tickvals: players.map((_, k) => k), ticktext: names, fixedrange: true, showgrid: false, zeroline: false };
  const trace = {
    type: "heatmap",
    z: players.map((a) => players.map((b) => at(a, b))),
    text: players.map((a, i) => players.map((b, j) => `${names[i]}, ${names[j]}<br>${format(at(a, b))}`)),
    hoverinfo: "text",
    colorscale: [[0, "rgba(128,139,156,0.12)"], [1, "#e5487f"]],
    colorbar: { thickness: 10, outlinewidth: 0 },
  };
  const shape = layout({ height: 160 + 22 * n, margin: { l: 150, r: 10, t: 10, b: 110 }, xaxis: { ...axis, tickangle: 45 }, yaxis: { ...axis, autorange: "reversed" } });
  Plotly.react("interactions", [trace], shape, CONFIG);
}

function drawSpectrum({ arrays }) {
  if (!arrays.degree_terms) return;
  byId("spectrum-figure").hidden = false;
  const { degree_terms: terms, degree_share: energyShare, curve_terms: count, curve_share: share } = arrays;
  const degrees = Array.from(terms, (_, d) => d).slice(1);
  const bars = (values, axis) => ({ type: "bar", x: degrees, y: values, yaxis: axis, hoverinfo: "x+y" });
  const xaxis = { title: { text: "degree" }, dtick: 1, fixedrange: true };
  const yaxis = { title: { text: "terms" }, domain: [0.56, 1], fixedrange: true };
  const yaxis2 = { title: { text: "share of variance" }, domain: [0, 0.44], fixedrange: true, tickformat: ".0%" };
  const margin = { l: 65, r: 20, t: 10, b: 45 };
  const parts = [bars(Array.from(terms).slice(1), "y"), bars(degrees.map((d) => energyShare[d]), "y2")];
  Plotly.react("degrees", parts, layout({ height: 340, margin, xaxis: { ...xaxis, anchor: "y2" }, yaxis, yaxis2 }), CONFIG);
  const line = { type: "scatter", mode: "lines", x: Array.from(count), y: Array.from(share), hoverinfo: "x+y" };
  const curveAxes = { xaxis: { title: { text: "largest terms" }, fixedrange: true }, yaxis: { tickformat: ".0%", range: [0, 1.03], fixedrange: true } };
  Plotly.react("energy", [line], layout({ height: 340, margin, ...curveAxes }), CONFIG);
}

// ---- Rows ----------------------------------------------------------------------------------------------------

const PAGE = 10;
const MOST_COLUMNS = 12;

/** The searchable table. */
class RowTable {
  constructor(report, onChoose) {
    Object.assign(this, { report, onChoose });
    this.columns = report.inputRanking().slice(0, MOST_COLUMNS);
    this.sortBy = null;
    this.page = 0;
    byId("search").addEventListener("input", () => this.find());
    byId("previous").addEventListener("click", () => this.turn(-1));
    byId("next").addEventListener("click", () => this.turn(1));
    this.find();
  }

  /** All that can be found of a row, in lower case; made when it is first searched. */
  #searchText(row) {
    this.texts ??= [];
    const { report } = this;
    this.texts[row] ??= [report.rowName(row), ...report.data.inputs.map((_, i) => report.text(i, report.value(row, i)))].join(" ").toLowerCase();
    return this.texts[row];
  }

  find() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = Array.from({ length: this.report.nRows }, (_, r) => r);
    this.found = words.length ? rows.filter((r) => words.every((word) => this.#searchText(r).includes(word))) : rows;
    this.page = 0;
    this.sort();
  }

  sort() {
    const { report } = this;
    if (this.sortBy) {
      const { column, sign } = this.sortBy;
      const key = column < 0 ? (r) => report.prediction(report.stored(r)) : (r) => report.value(r, column);
      const keys = new Map(this.found.map((r) => [r, Number.isNaN(key(r)) ? Infinity : sign * key(r)]));
      this.found.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
    }
    this.draw();
  }

  turn(step) {
    this.page += step;
    this.draw();
  }

  #header() {
    const line = element("tr");
    line.append(element("th", "row", { scope: "col" }));
    for (const column of [-1, ...this.columns]) {
      const name = column < 0 ? "prediction" : this.report.data.inputs[column].name;
      const sorted = this.sortBy?.column === column ? this.sortBy.sign : 0;
      const head = element("th", "", { scope: "col", "aria-sort": sorted ? (sorted > 0 ? "ascending" : "descending") : "none" });
      const mark = sorted ? (sorted > 0 ? " ↑" : " ↓") : "";
      const button = head.appendChild(element("button", shorten(name, 40) + mark, { type: "button", title: shorten(name, 300) }));
      button.addEventListener("click", () => {
        this.sortBy = { column, sign: sorted > 0 ? -1 : 1 };
        this.sort();
      });
      line.append(head);
    }
    return line;
  }

  draw() {
    const { report } = this;
    const nPages = Math.max(1, Math.ceil(this.found.length / PAGE));
    this.page = Math.min(Math.max(this.page, 0), nPages - 1);
    const table = byId("row-table");
    table.tHead.replaceChildren(this.#header());
    const lines = this.found.slice(this.page * PAGE, (this.page + 1) * PAGE).map((row) => {
      const line = element("tr", "", row === report.row ? { class: "chosen", "aria-current": "true" } : {});
      const button = element("button", shorten(report.rowName(row), 30), { type: "button", "aria-label": `Show row ${shorten(report.rowName(row), 60)}` });
      button.addEventListener("click", () => this.onChoose(row));
      line.append(element("td"), element("td", format(report.prediction(report.stored(row)))));
      line.firstChild.append(button);
      for (const column of this.columns) {
        const value = report.value(row, column);
        const text = report.text(column, value);
        line.append(element("td", shorten(text, 60), Number.isNaN(value) ? { class: "missing" } : { title: shorten(text, 300) }));
      }
      return line;
    });
    table.tBodies[0].replaceChildren(...lines);
    const hidden = report.data.inputs.length - this.columns.length;
    byId("found").textContent = `${this.found.length.toLocaleString("en")} rows${hidden > 0 ? `; ${hidden} more columns, all of them searched` : ""}`;
    byId("page-text").textContent = `page ${this.page + 1} of ${nPages.toLocaleString("en")}`;
    byId("previous").disabled = this.page === 0;
    byId("next").disabled = this.page === nPages - 1;
  }
}

// ---- What if -------------------------------------------------------------------------------------------------

/** The controls of one input. `show` puts a value into them; `onChange` hears of the reader's. */
class Control {
  constructor(input, index, onChange) {
    this.input = input;
    this.box = element("div", "", { class: "control" });
    const head = this.box.appendChild(element("div", "", { class: "head" }));
    head.append(element("label", shorten(input.name, 200), { for: `input-${index}`, title: shorten(input.name, 400) }));
    this.was = head.appendChild(element("span", "", { class: "was" }));
    this.edit = this.box.appendChild(element("div", "", { class: "edit" }));
    const name = shorten(input.name, 100);
    if (input.labels) this.#choice(index, onChange);
    else this.#number(index, name, onChange);
  }

  #choice(index, onChange) {
    this.select = this.edit.appendChild(element("select", "", { id: `input-${index}` }));
    this.input.labels.forEach((label, k) => this.select.append(element("option", shorten(label, 120), { value: k })));
    if (this.input.missing) this.select.append(element("option", MISSING, { value: "" }));
    this.select.addEventListener("input", () => onChange(this.select.value === "" ? NaN : Number(this.select.value)));
  }

  #number(index, name, onChange) {
    const { low, high, whole } = this.input;
    const limits = { min: low, max: high, step: whole ? 1 : "any" };
    this.range = this.edit.appendChild(element("input", "", { type: "range", "aria-label": `${name}, slider`, ...limits }));
    this.field = this.edit.appendChild(element("input", "", { type: "number", id: `input-${index}`, step: "any" }));
    this.range.addEventListener("input", () => {
      const value = Number(Number(this.range.value).toPrecision(6)); // what is shown is what is used
      this.field.value = String(value);
      this.#present();
      onChange(value);
    });
    this.field.addEventListener("input", () => {
      if (this.field.value === "") return; // while the reader types
      this.range.value = this.field.value;
      this.#present();
      onChange(Number(this.field.value));
    });
    if (!this.input.missing) return;
    const label = this.edit.appendChild(element("label"));
    this.absent = label.appendChild(element("input", "", { type: "checkbox", "aria-label": `${name} is missing` }));
    label.append(` ${MISSING}`);
    this.absent.addEventListener("input", () => {
      this.range.disabled = this.field.disabled = this.absent.checked;
      if (this.field.value === "") this.field.value = this.range.value;
      onChange(this.absent.checked ? NaN : Number(this.field.value));
    });
  }

  #present() {
    if (this.absent) this.absent.checked = false;
  }

  show(value, text) {
    this.was.textContent = `row: ${shorten(text, 60)}`;
    const missing = Number.isNaN(value);
    if (this.select) {
      this.select.value = missing ? "" : String(value);
      return;
    }
    this.field.value = missing ? "" : String(value);
    if (!missing) this.range.value = String(value);
    if (this.absent) {
      this.absent.checked = missing;
      this.range.disabled = this.field.disabled = missing;
    }
  }
}

class WhatIf {
  constructor(report) {
    this.report = report;
    byId("what-if").hidden = byId("what-if-link").hidden = false;
    this.edited = new Waterfall(byId("edited-waterfall"));
    this.original = new Waterfall(byId("original-waterfall"));
    this.controls = [];
    for (const i of report.inputRanking()) {
      const control = new Control(report.data.inputs[i], i, (value) => {
        report.edited[i] = value;
        this.draw();
      });
      this.controls[i] = control;
      byId("controls").append(control.box);
    }
    byId("filter-label").hidden = report.data.inputs.length <= MOST_COLUMNS;
    byId("filter").addEventListener("input", () => this.#filter(byId("filter").value.toLowerCase()));
    byId("reset").addEventListener("click", () => {
      report.choose(report.row);
      this.start();
    });
    this.start();
  }

  #filter(text) {
    this.controls.forEach(({ box, input }) => (box.hidden = !input.name.toLowerCase().includes(text)));
  }

  /** Begin with the chosen row as it is. */
  start() {
    const { report } = this;
    this.controls.forEach((control, i) => control.show(report.edited[i], report.text(i, report.edited[i])));
    this.rowValues = report.original();
    this.rowShap = report.explain(this.rowValues);
    this.draw();
  }

  draw() {
    const { report, rowShap, rowValues } = this;
    const shap = report.explain(report.edited);
    const changed = new Set();
    this.controls.forEach(({ box, input }, i) => {
      const differs = !Object.is(report.edited[i], rowValues[i]);
      box.classList.toggle("changed", differs);
      if (differs) changed.add(input.player);
    });
    const players = playersToDraw(report, rowShap, changed);
    const before = waterfallSteps(report, rowShap, rowValues, players, new Set());
    const after = waterfallSteps(report, shap, report.edited, players, changed);
    const range = stepRange(before, after);
    this.edited.draw(changed.size ? "Changed" : "Unchanged", after, range);
    this.original.draw(`Row ${shorten(report.rowName(report.row), 40)} as it is`, before, range);
    this.#answer(shap);
    if (report.nOutputs > 1) this.#outputs(shap);
  }

  #answer(shap) {
    const now = this.report.prediction(shap);
    const was = this.report.prediction(this.rowShap);
    const number = element("data", format(now), { value: now });
    const strong = element("strong");
    strong.append(number);
    byId("answer").replaceChildren("Prediction ", strong, now === was ? "" : ` (${signed(now - was)} from ${format(was)})`);
  }

  /** All outputs of the changed row beside those of the row as it is. */
  #outputs(shap) {
    const { report } = this;
    const shares = report.probabilities(shap);
    const table = element("table");
    const head = table.createTHead().insertRow();
    for (const text of ["output", "prediction", "as it is", ...(shares ? ["softmax"] : [])]) head.append(element("th", text, { scope: "col" }));
    const body = table.createTBody();
    report.data.outputs.forEach((name, k) => {
      const line = body.insertRow();
      if (k === report.output) line.className = "chosen";
      line.append(element("td", shorten(name, 40)), element("td", format(report.prediction(shap, k))), element("td", format(report.prediction(this.rowShap, k))));
      if (shares) line.append(element("td", `${(100 * shares[k]).toFixed(1)} %`));
    });
    byId("outputs").replaceChildren(table);
  }
}

// ---- Start ---------------------------------------------------------------------------------------------------

function showGlance({ data, nRows }) {
  const facts = [...data.facts, ["Rows", nRows < data.n_rows ? `${data.n_rows.toLocaleString("en")} explained, ${nRows.toLocaleString("en")} of them here` : `${data.n_rows.toLocaleString("en")} explained`]];
  if (data.outputs.length === 1) facts.push(["Expected value", format(data.expected[0])]);
  else facts.push(["Expected values", data.outputs.slice(0, 12).map((name, k) => `${shorten(name, 20)}: ${format(data.expected[k])}`).join(", ")]);
  for (const [term, text] of facts) {
    const pair = byId("facts").appendChild(element("div"));
    pair.append(element("dt", term), element("dd", shorten(text, 300)));
  }
  for (const text of data.meaning) byId("meaning").append(element("p", text));
  for (const text of data.notes) byId("notes").append(element("p", text, { class: "note" }));
}

function fillChoices(report) {
  const order = report.inputRanking();
  for (const [id, chosen] of [["dependence-x", order[0]], ["dependence-color", order[1] ?? order[0]]]) {
    const select = byId(id);
    for (const i of order) select.append(element("option", shorten(report.data.inputs[i].name, 60), { value: i }));
    select.value = String(chosen);
    select.addEventListener("input", () => drawDependence(report));
  }
  report.data.outputs.forEach((name, k) => byId("output").append(element("option", shorten(name, 60), { value: k })));
  byId("output-label").hidden = report.nOutputs === 1;
}

async function start() {
  const data = JSON.parse(byId("data").textContent);
  const [arrays, rows] = await Promise.all([unpackAll(data.arrays), unpackAll(data.rows.arrays)]);
  const tables = data.what_if && (await whatIfOf(data.what_if));
  const report = new Report(data, arrays, { ...rows, names: data.rows.names }, tables);
  showGlance(report);
  fillChoices(report);
  const waterfall = new Waterfall(byId("row-waterfall"));
  const drawRow = () => {
    const shap = report.stored(report.row);
    const steps = waterfallSteps(report, shap, report.original(), playersToDraw(report, shap, []), new Set());
    waterfall.draw(`Row ${shorten(report.rowName(report.row), 40)}`, steps, stepRange(steps));
  };
  const whatIf = tables && new WhatIf(report);
  const table = new RowTable(report, (row) => choose(row));
  const choose = (row) => {
    report.choose(row);
    drawRow();
    table.draw();
    if (whatIf) whatIf.start();
  };
  const drawCharts = () => [drawImportance, drawBeeswarm, drawDependence, drawInteractions].forEach((draw) => draw(report));
  byId("output").addEventListener("input", () => {
    report.output = Number(byId("output").value);
    drawCharts();
    drawRow();
    table.draw();
    if (whatIf) whatIf.draw();
  });
  drawCharts();
  drawSpectrum(report);
  drawRow();
  for (const id of ["beeswarm", "dependence"]) byId(id).on("plotly_click", ({ points }) => choose(points[0].customdata));
  document.documentElement.dataset.ready = "true";
}

if (typeof document !== "undefined") start();
