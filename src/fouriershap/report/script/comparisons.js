// Mean SHAP values of groups of rows: why the mean prediction changed, and how cohorts differ.

const MOST_BESIDE = 4; // groups as bars beside each other; more are lines
const MOST_PANELS = 8;

/** A result of an analysis with its own part of the page. */
class Part {
  /** Unpack its data, if there are some, and show the elements with these ids. */
  static async make(report, name, ids) {
    const part = report.data[name];
    if (!part) return null;
    for (const id of ids) byId(id).hidden = false;
    for (const text of part.words) byId(`${name}-words`).append(element("p", text));
    return Object.assign(new this(), { report, name, part, arrays: await unpackAll(part.arrays) });
  }
}

/** One of the two sections that compare groups. */
class Comparison extends Part {
  /** The output that is shown: an explained one, not a raw one. */
  get output() {
    const { first_raw: first } = this.report.data;
    return first && this.report.output >= first ? this.report.output - first : this.report.output;
  }

  at(array, group, player) {
    return this.arrays[array][(group * this.report.nPlayers + player) * this.part.n_outputs + this.output];
  }

  ends(group, player) {
    const ends = [this.at("low", group, player), this.at("high", group, player)];
    return Number.isNaN(ends[0]) ? null : ends;
  }

  mean(group) {
    return this.arrays.means[group * this.part.n_outputs + this.output];
  }

  groupName(group) {
    return this.part.groups[group] || "all of them";
  }

  /** Players whose means are largest, or differ most, first. */
  ranking() {
    const groups = this.part.groups.map((_, g) => g);
    const size = (p) => {
      const values = groups.map((g) => this.at("values", g, p));
      return groups.length === 1 ? Math.abs(values[0]) : Math.max(...values) - Math.min(...values);
    };
    return Array.from({ length: this.report.nPlayers }, (_, p) => p).sort((a, b) => size(b) - size(a));
  }

  draw() {
    const { report, part, name } = this;
    const base = this.arrays.base[this.output];
    const label = shorten(report.label(this.output));
    const after = part.groups.map((group, g) => `${group ? `${shorten(group)}: ` : ""}${report.amount(this.mean(g), this.output)} (${count(part.n_rows[g], "row")})`);
    const arrow = part.groups.length === 1 ? ` → ${after[0]}` : `; ${after.slice(0, MOST_BESIDE).join(", ")}${after.length > MOST_BESIDE ? ", …" : ""}`;
    byId(`${name}-means`).textContent = `Mean ${label}: ${report.amount(base, this.output)} in the background${arrow}`;
    const many = part.groups.length > MOST_BESIDE;
    byId(`${name}-scale`).hidden = !many;
    byId(`${name}-scale`).textContent = `${report.valueText(this.output, "Mean SHAP value")} of the ${MOST_PANELS} features that differ most; all panels have one scale.`;
    if (many) this.#lines();
    else this.#bars();
    fillTable(byId(`${name}-table`), ...this.table());
  }

  #bars() {
    const { report, part, name } = this;
    const players = this.ranking().slice(0, part.groups.length > 1 ? 8 : MOST_SHOWN);
    const traces = part.groups.map((group, g) => {
      const x = players.map((p) => this.at("values", g, p));
      const ends = players.map((p) => this.ends(g, p));
      const between = (pair) => (pair ? `<br>${signed(pair[0])} to ${signed(pair[1])}` : "");
      const color = part.groups.length > 1 ? GROUPS[g] : x.map((value) => (value >= 0 ? GROUPS[3] : GROUPS[0]));
      return bars({
        name: chartLines(this.groupName(g), 40),
        x,
        y: players.map((_, rank) => rank),
        error_x: errorBars(x, ends),
        marker: { color },
        hovertext: players.map((p, i) => `${chartText(report.data.players[p], 60)}${group ? `, ${chartText(group, 40)}` : ""}<br>${signed(x[i])}${between(ends[i])}`),
      });
    });
    const { margin, yaxis, height } = playerLines(report, players, `${name}-chart`);
    const many = part.groups.length > 1;
    const xaxis = { title: valueTitle(report, `${name}-chart`, "mean SHAP value", this.output), fixedrange: true };
    const grown = many ? 60 + players.length * (14 * part.groups.length + 14) : height;
    draw(`${name}-chart`, traces, { margin: many ? { ...margin, t: 40 } : margin, yaxis, xaxis, height: grown, bargap: 0.3, showlegend: many, legend: LEGEND });
  }

  /** A panel per player, with a line over the groups, which usually are periods; all on one scale. */
  #lines() {
    const { report, part, name } = this;
    const id = `${name}-chart`;
    const columns = isNarrow(id) ? 1 : 2;
    const players = this.ranking().slice(0, MOST_PANELS);
    const nLines = Math.ceil(players.length / columns);
    const every = Math.ceil(part.groups.length / 4);
    const shown = part.groups.map((_, g) => g).filter((g) => g % every === 0);
    const [margin, panel] = [{ ...MARGIN, t: 10, b: 20 }, 175];
    const layout = { height: margin.t + margin.b + panel * nLines, margin, hovermode: "closest", annotations: [] };
    const traces = players.map((p, k) => {
      const y = part.groups.map((_, g) => this.at("values", g, p));
      const axis = k ? String(k + 1) : "";
      const [left, top] = [(k % columns) / columns, 1 - Math.floor(k / columns) / nLines];
      const domain = [left + (k % columns ? 0.05 : 0), left + 1 / columns - (columns > 1 && k % columns === 0 ? 0.02 : 0)];
      const ticktext = shown.map((g) => chartLines(part.groups[g], 14));
      layout[`xaxis${axis}`] = { domain, anchor: `y${axis}`, tickvals: shown, ticktext, tickangle: 0, tickfont: { size: 11 }, fixedrange: true, zeroline: false };
      layout[`yaxis${axis}`] = { domain: [top - 0.74 / nLines, top - 0.2 / nLines], anchor: `x${axis}`, fixedrange: true, nticks: 4, ...(k ? { matches: "y" } : {}) };
      const title = chartLines(report.data.players[p], 36, 2);
      layout.annotations.push({ text: `<b>${title}</b>`, align: "left", x: domain[0], y: top - 0.18 / nLines, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false });
      return dots({
        mode: "lines+markers",
        xaxis: `x${axis}`,
        yaxis: `y${axis}`,
        x: part.groups.map((_, g) => g),
        y,
        error_y: errorBars(y, part.groups.map((_, g) => this.ends(g, p))),
        line: { color: GROUPS[0] },
        hovertext: part.groups.map((group, g) => `${chartText(report.data.players[p], 60)}<br>${chartText(group, 40)}: ${signed(y[g])}`),
      });
    });
    draw(id, traces, layout);
  }

  /** Header and lines of the table. */
  table() {
    const { part, report } = this;
    const groups = part.groups.map((_, g) => g);
    const known = this.ends(0, 0) !== null;
    const heads = groups.flatMap((g) => [this.groupName(g), ...(known ? ["from", "to"] : [])]);
    const cells = (p) => groups.flatMap((g) => [this.at("values", g, p), ...(known ? this.ends(g, p) ?? [NaN, NaN] : [])]);
    const means = groups.flatMap((g) => [this.mean(g), ...(known ? ["", ""] : [])]);
    const lines = this.ranking().map((p) => [report.data.players[p], ...cells(p)]);
    return [["feature", ...heads], [[`mean ${report.heading(this.output)}`, ...means], ...lines]];
  }

  /** All numbers of all outputs, for a file. */
  json() {
    const { n_outputs: n, groups } = this.part;
    const nothing = (number) => (Number.isFinite(number) ? number : null);
    const labels = this.report.data.outputs.slice(0, n).map((output) => output.label);
    const means = groups.flatMap((group, g) => labels.map((output, k) => ({ group, output, mean: this.arrays.means[g * n + k] })));
    const values = groups.flatMap((group, g) => this.report.data.players.flatMap((feature, p) => labels.map((output, k) => {
      const at = (g * this.report.nPlayers + p) * n + k;
      const [value, low, high] = ["values", "low", "high"].map((name) => nothing(this.arrays[name][at]));
      return { group, output, feature, value, low, high };
    })));
    return { base: Array.from(this.arrays.base), means, values };
  }
}
