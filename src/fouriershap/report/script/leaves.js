// SHAP values of trees, leaf by leaf. A leaf sees the background through the sets of players whose conditions on its path
// rows of it fail, and a row through the one that it fails itself: how many background rows fail each set is all that is
// needed (leaves.py). Sets are integers, a bit per player in the order of the path.

/** How many bits of an integer are set. */
function bitCount(set) {
  let count = 0;
  for (; set; set &= set - 1) count++;
  return count;
}

class Leaves extends Codes {
  constructor(header, arrays) {
    super(header, arrays);
    this.sizes = Uint8Array.from(arrays.sets, bitCount);
    this.moments = this.#makeMoments(header.most_players + 1);
    this.path = new Int32Array(header.most_players + 1); // players, in the order in which they come
    this.ratios = new Float64Array(header.most_players + 1).fill(1); // of each player on the path
    this.gain = new Float64Array(header.most_players + 1);
    this.codes = new Int32Array(arrays.level_start.length - 1);
  }

  /** The integral of t^p (1 - t)^q, by p and q. */
  #makeMoments(size) {
    const rows = [Float64Array.from({ length: size }, (_, q) => 1 / (q + 1))];
    for (let p = 0; p + 1 < size; p++) rows.push(rows[p].map((value, q) => (value * (p + 1)) / (p + 2 + q)));
    return rows;
  }

  goesLeft(node) {
    const feature = this.head[node] >> 1;
    const code = this.codes[feature];
    const test = this.test[node];
    if (test < 0) return ((this.set_bits[(-1 - test) * this.header.set_bytes + (code >> 3)] >> (code & 7)) & 1) === 1;
    const missing = code === this.level_start[feature + 1] - this.level_start[feature] + 1;
    return code < test || (missing && (this.head[node] & 1) === 1);
  }

  /** SHAP values of a row: player p and output k at p * n_outputs + k. */
  explain(row) {
    this.out = new Float64Array(this.header.n_players * this.header.n_outputs);
    for (let i = 0; i < row.length; i++) this.codes[i] = this.code(row[i], i);
    [this.node, this.leaf, this.set] = [0, 0, 0];
    for (const output of this.tree_output) {
      this.output = output;
      this.visit(0, 0);
    }
    return this.out;
  }

  /** The node that comes next and all below it; `fails` are the players that the row fails, of `n` on the path. */
  visit(fails, n) {
    const node = this.node++;
    if (this.head[node] < 0) {
      if (this.header.by_path) this.shareByPath(fails, n);
      else this.shareOfRows(fails, n);
      this.add(n);
      this.leaf++;
      return;
    }
    const player = this.players[this.head[node] >> 1];
    let at = 0;
    while (at < n && this.path[at] !== player) at++;
    this.path[at] = player;
    const most = Math.max(n, at + 1);
    const left = this.goesLeft(node);
    const before = at < n ? this.ratios[at] : 1;
    for (const side of [true, false]) {
      if (this.ratio) this.ratios[at] = before * this.ratio[this.node];
      this.visit(left === side ? fails : fails | (1 << at), most);
    }
    this.ratios[at] = before;
  }

  /** What each player on the path gets of the leaf, against background rows. */
  shareOfRows(fails, n) {
    const { gain, moments, sets, shares, sizes } = this;
    const nFails = bitCount(fails);
    const last = this.set + this.set_count[this.leaf];
    let loss = 0;
    gain.fill(0, 0, n);
    for (; this.set < last; this.set++) {
      const others = sets[this.set];
      if (others & fails) continue; // no mixture of the two rows comes here
      const size = sizes[this.set];
      const share = shares[this.set];
      if (nFails) loss += share * moments[size][nFails - 1];
      if (!size) continue;
      const part = share * moments[size - 1][nFails];
      for (let set = others, j = 0; set; set >>>= 1, j++) if (set & 1) gain[j] += part;
    }
    for (let j = 0; j < n; j++) gain[j] = ((fails >> j) & 1 ? -loss : gain[j]) / this.header.total;
  }

  /** The same where absent players follow the training rows: the integral of the multilinear extension. */
  shareByPath(fails, n) {
    const { points, point_weights: weights } = this.header;
    const { gain, ratios } = this;
    gain.fill(0, 0, n);
    const holds = (j) => ((fails >> j) & 1 ? 0 : 1);
    for (let q = 0; q < points.length; q++) {
      const t = points[q];
      const factor = (j) => t * holds(j) + (1 - t) * ratios[j];
      const after = new Float64Array(n + 1).fill(1);
      for (let j = n - 1; j >= 0; j--) after[j] = after[j + 1] * factor(j);
      for (let j = 0, before = weights[q]; j < n; before *= factor(j++)) gain[j] += (holds(j) - ratios[j]) * before * after[j + 1];
    }
  }

  add(n) {
    const { gain, out, output, path, values } = this;
    const { n_outputs: nOutputs, width } = this.header;
    const first = this.leaf * width;
    for (let j = 0; j < n; j++) {
      if (!gain[j]) continue;
      const mine = path[j] * nOutputs;
      if (output >= 0) out[mine + output] += gain[j] * values[first + (width > 1 ? output : 0)];
      else for (let k = 0; k < width; k++) out[mine + k] += gain[j] * values[first + k];
    }
  }
}
