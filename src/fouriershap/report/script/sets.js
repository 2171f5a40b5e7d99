// Sets of two or more features that interact: bars, coloured by the number of features.

const MOST_SETS = 20; // in the chart; the table has all of them

class Sets extends Part {
  /** The output that is shown, counted from their first. */
  get output() {
    const { report } = this;
    return report.rawOutput() - report.data.first_raw;
  }

  /** The same among the outputs of the page. */
  get shown() {
    return this.part.first + this.output;
  }

  at(array, set) {
    return this.arrays[array][set * this.part.n_outputs + this.output];
  }

  nameOf(set, length = 300) {
    return this.part.players[set].map((p) => shorten(this.report.data.players[p], length)).join(" × ");
  }

  /** The names beside a bar: below each other where there is little room. */
  tick(set, narrow) {
    if (!narrow) return chartLines(this.nameOf(set), 44);
    return this.part.players[set].map((p) => chartLines(this.report.data.players[p], 17)).join(" ×<br>");
  }

  /** Sets, the strongest in the chosen output first. */
  ranking() {
    return this.part.players.map((_, k) => k).sort((a, b) => this.at("strength", b) - this.at("strength", a));
  }

  draw() {
    const { report, part } = this;
    const narrow = isNarrow("sets");
    const sets = this.ranking().slice(0, narrow ? MOST_SETS / 2 : MOST_SETS);
    fillTable(byId("sets-table"), ...this.table());
    if (!sets.length) return;
    const sizes = [...new Set(part.players.map((players) => players.length))].sort((a, b) => a - b);
    const traces = sizes.map((size, colour) => {
      const mine = sets.map((set, rank) => [set, rank]).filter(([set]) => part.players[set].length === size);
      return bars({
        name: `${size} features`,
        width: 0.65, // otherwise sparse traces would have wider bars
        x: mine.map(([set]) => this.at("strength", set)),
        y: mine.map(([, rank]) => rank),
        marker: { color: GROUPS[colour % GROUPS.length] },
        hovertext: mine.map(([set]) => `${chartText(this.nameOf(set, 40), 130)}<br>mean |value| ${format(this.at("strength", set))}, mean ${signed(this.at("means", set))}`),
      });
    });
    const yaxis = lineAxis(sets.map((set) => this.tick(set, narrow)));
    const xaxis = { title: valueTitle(report, "sets", "mean |value|", this.shown), fixedrange: true, zeroline: false, rangemode: "tozero" };
    const margin = { ...MARGIN, l: narrow ? 150 : 330, t: 34 };
    const line = 11 + 15 * countLines(yaxis.ticktext);
    const height = 110 + line * Math.max(sets.length, 3);
    draw("sets", traces, { margin, xaxis, yaxis, height, bargap: 0.35, barmode: "overlay", showlegend: true, legend: LEGEND });
  }

  /** Header and lines of the table. */
  table() {
    const line = (set) => [this.nameOf(set), this.part.players[set].length, this.at("strength", set), this.at("means", set)];
    return [["set", "features", this.report.valueText(this.shown, "mean |value|"), "mean"], this.ranking().map(line)];
  }

  /** All numbers of all outputs, for a file. */
  json() {
    const { n_outputs: n, players, first } = this.part;
    const labels = this.report.data.outputs.slice(first, first + n).map((output) => output.label);
    const values = players.flatMap((mine, set) => labels.map((output, k) => {
      const [strength, mean] = ["strength", "means"].map((name) => this.arrays[name][set * n + k]);
      return { set: mine.map((p) => this.report.data.players[p]), output, strength, mean };
    }));
    return { words: this.part.words, values };
  }
}
