// Charts of all rows: importance, spread, and the terms of a spectrum.

function drawImportance(report) {
  const all = report.ranking();
  const players = all.slice(0, MOST_SHOWN);
  const sizes = players.map((p) => report.importance(p));
  const ends = players.map((p) => report.importanceEnds(p));
  const between = (pair) => (pair ? ` (${format(pair[0])} to ${format(pair[1])})` : "");
  const trace = bars({
    x: sizes,
    y: players.map((_, rank) => rank),
    error_x: errorBars(sizes, ends),
    hovertext: players.map((p, i) => `${chartText(report.data.players[p], 60)}<br>${format(sizes[i])}${between(ends[i])}`),
  });
  const xaxis = { title: valueTitle(report, "importance", "mean |SHAP value|"), fixedrange: true, zeroline: false, rangemode: "tozero" };
  draw("importance", [trace], { ...playerLines(report, players, "importance"), xaxis, bargap: 0.35 });
  byId("importance-text").textContent = `Mean absolute SHAP values over all rows${ends[0] ? ", with 95 % intervals" : ""}.`;
  fillTable(byId("importance-table"), ...importanceTable(report));
}

/** Header and lines of the table of importance. */
function importanceTable(report) {
  const ends = report.importanceEnds(0) !== null;
  const heads = ["feature", report.valueText(report.output, "mean |SHAP value|"), ...(ends ? ["from", "to"] : [])];
  const line = (p) => [report.data.players[p], report.importance(p), ...(report.importanceEnds(p) ?? [])];
  return [heads, report.ranking().map(line)];
}

/** Colours of an input's values as numbers between 0 and 1: their ranks, so that outliers do not dominate. */
function colourRanks(report, input, rows) {
  const values = rows.map((r) => report.value(r, input));
  const sorted = Float64Array.from(values.filter((v) => !Number.isNaN(v))).sort();
  const span = Math.max(sorted.length - 1, 1);
  return values.map((v) => (Number.isNaN(v) ? NaN : (countUpTo(sorted, 0, sorted.length, v) - 1) / span));
}

/** Offsets that spread overlapping dots over the height of a line. */
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
  const [trace, color] = [{ x: [], y: [], text: [], customdata: [] }, []];
  players.forEach((player, rank) => {
    const shap = rows.map((r) => report.shap(r, player));
    const offsets = swarm(shap);
    const mine = report.inputsOf[player];
    const ranks = mine.length === 1 ? colourRanks(report, mine[0], rows) : rows.map(() => NaN);
    const name = chartText(report.data.players[player], 40);
    rows.forEach((row, k) => {
      trace.x.push(shap[k]);
      trace.y.push(rank + offsets[k]);
      color.push(Number.isNaN(ranks[k]) ? GREY : colourAt(ranks[k]));
      const value = mine.length === 1 ? ` = ${chartText(report.text(mine[0], report.value(row, mine[0])), 40)}` : "";
      trace.text.push(`${name}${value}<br>row ${chartText(report.rowName(row))}: ${signed(shap[k])}`);
      trace.customdata.push(row);
    });
  });
  const xaxis = { title: valueTitle(report, "beeswarm", "SHAP value"), fixedrange: true, zeroline: true };
  const marker = { color, size: 5, opacity: 0.75 };
  draw("beeswarm", [dots({ ...trace, marker })], { ...playerLines(report, players, "beeswarm"), xaxis, hovermode: "closest" });
  const few = rows.length < report.nRows ? ` Shown: ${rows.length} evenly spaced rows.` : "";
  const labels = report.data.inputs.some((input) => input.labels) ? " (labels: early in their list)" : "";
  byId("beeswarm-text").textContent = `A dot per row: blue for low values of the feature${labels}, red for high ones.${few}`;
}

function colourAt(share) {
  const [from, to] = share < 0.5 ? [SCALE[0][1], SCALE[1][1]] : [SCALE[1][1], SCALE[2][1]];
  const t = share < 0.5 ? 2 * share : 2 * share - 1;
  const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  return `rgb(${[0, 1, 2].map((k) => Math.round(part(from, k) + t * (part(to, k) - part(from, k)))).join(",")})`;
}

/** Terms and energy of a spectrum. */
function drawSpectrum({ arrays }) {
  if (!arrays.degree_terms) return;
  byId("spectrum-figure").hidden = false;
  const { degree_terms: terms, degree_share: energyShare, curve_terms: count, curve_share: share } = arrays;
  const degrees = Array.from(terms, (_, d) => d).slice(1);
  const columns = (values, axis) => ({ type: "bar", x: degrees, y: values, yaxis: axis, hoverinfo: "x+y" });
  const xaxis = { title: { text: "degree" }, dtick: 1, fixedrange: true };
  const yaxis = { title: { text: "terms" }, domain: [0.56, 1], fixedrange: true };
  const yaxis2 = { title: { text: "share of variance" }, domain: [0, 0.44], fixedrange: true, tickformat: ".0%" };
  const parts = [columns(Array.from(terms).slice(1), "y"), columns(degrees.map((d) => energyShare[d]), "y2")];
  draw("degrees", parts, { height: 340, margin: MARGIN, xaxis: { ...xaxis, anchor: "y2" }, yaxis, yaxis2 });
  const line = { type: "scatter", mode: "lines", x: Array.from(count), y: Array.from(share), hoverinfo: "x+y" };
  const curveAxes = { xaxis: { title: { text: "largest terms" }, fixedrange: true }, yaxis: { tickformat: ".0%", range: [0, 1.03], fixedrange: true } };
  draw("energy", [line], { height: 340, margin: MARGIN, ...curveAxes });
}
