// SHAP values by look-ups, as encode_numpy.py and tables_numpy.py do them, by the same names: a value becomes a code, the
// codes of a block a pattern, and each table of the block holds, for each pattern, what 8 players get.

const WIDTH = 8; // players of a table
const NO_COLUMN = 2 ** 31 - 1; // where the code of an input that no table reads goes

/** Compiled tables, applied to one row at a time. */
class Tables extends Codes {
  constructor(header, arrays) {
    super(header, arrays);
    this.codes8 = new Uint8Array(header.n_narrow);
    this.codes16 = new Uint16Array(header.n_wide);
    this.patternOf = new Int32Array(arrays.base.length);
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
    return out.map((value) => value * this.header.step);
  }
}
