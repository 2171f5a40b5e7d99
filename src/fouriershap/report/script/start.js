// Starts the page; the last of the scripts.

function showGlance(report) {
  const { data } = report;
  const nRows = data.n_held;
  const facts = [...data.facts];
  facts.splice(1, 0, ["Explained", [...new Set(data.outputs.slice(0, 12).map((output) => output.label))].join(", ")]);
  facts.splice(2, 0, ["Rows", nRows < data.n_rows ? `${data.n_rows.toLocaleString("en")} explained, ${nRows.toLocaleString("en")} of them here` : `${data.n_rows.toLocaleString("en")} explained`]);
  const base = new Values(report, new Float64Array(report.nPlayers * report.nOutputs), 0, report.nOutputs);
  if (data.outputs.length === 1) facts.splice(3, 0, ["Expected value", report.predictionText(base)]);
  else facts.splice(3, 0, ["Expected values", data.outputs.slice(0, 12).map((output, k) => `${shorten(output.label)}: ${report.amount(data.expected[k], k)}`).join(", ")]);
  byId("record").hidden = !data.record.length;
  for (const [id, pairs] of [["record", data.record], ["facts", facts]]) {
    for (const [term, text] of pairs) {
      const pair = byId(id).appendChild(element("div"));
      pair.append(element("dt", term), element("dd", shorten(text, 3000)));
    }
  }
  for (const text of data.meaning) byId("meaning").append(element("p", text));
  for (const text of data.notes) byId("notes").append(element("p", text, { class: "note" }));
}

function fillChoices(report) {
  const order = report.inputRanking();
  for (const [id, chosen] of [["dependence-x", order[0]], ["dependence-color", order[1] ?? order[0]]]) {
    const select = byId(id);
    for (const i of order) select.append(element("option", shorten(report.data.inputs[i].name), { value: i }));
    select.value = String(chosen);
    select.addEventListener("input", () => drawDependence(report));
  }
  report.data.outputs.forEach((output, k) => byId("output").append(element("option", shorten(output.label), { value: k })));
  byId("output").value = String(report.output);
  byId("output-label").hidden = report.nOutputs === 1;
}

/** Resolves when the whole file is read: large data are at its end. */
const wholeFile = () => new Promise((resolve) => {
  if (document.readyState !== "loading") resolve();
  else document.addEventListener("DOMContentLoaded", resolve, { once: true });
});

async function unpackRows(packed) {
  return { ...(await unpackAll(packed.arrays)), names: packed.names };
}

/** Resolves when the browser has rendered. */
const shown = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

async function start() {
  const data = JSON.parse(byId("data").textContent);
  const [arrays, rows] = await Promise.all([unpackAll(data.arrays), unpackRows(data.rows)]);
  const report = new Report(data, arrays, rows);
  showGlance(report);
  showPerformance(report);
  fillChoices(report);
  const comparisons = (await Promise.all(["drift", "cohorts"].map((name) => Comparison.make(report, name, [name, `${name}-link`])))).filter(Boolean);
  const sets = await Sets.make(report, "sets", ["sets-figure"]);
  const row = new OneRow(report);
  let whatIf = null;
  const redraw = () => {
    row.draw();
    table.draw();
  };
  const choose = (chosen) => {
    report.choose(chosen);
    if (report.other === chosen) report.other = null;
    redraw();
    whatIf?.start();
  };
  const compare = (other) => {
    report.other = other;
    redraw();
  };
  const table = new RowTable(report, { onChoose: choose, onCompare: compare });
  byId("compare-end").addEventListener("click", () => compare(null));
  byId("save-csv").addEventListener("click", () => download(fileName(report, "rows.csv"), "text/csv", rowsAsCsv(report, table.found)));
  byId("save-json").addEventListener("click", () => download(fileName(report, "report.json"), "application/json", asJson(report, comparisons, sets)));
  const saves = ["save-csv", "save-json"].map(byId);
  saves.forEach((button) => (button.disabled = !report.isWhole));
  row.draw();
  await shown();
  await wholeFile();
  if (!report.isWhole) {
    report.hold(await unpackRows(JSON.parse(byId("all-rows").textContent)));
    byId("all-rows").textContent = "";
    table.grow();
    saves.forEach((button) => (button.disabled = false));
    await shown();
  }
  if (data.what_if) {
    report.tables = await whatIfOf(data.what_if);
    whatIf = new WhatIf(report);
  }
  await loadPlotly();
  const charts = [drawPerformance, drawImportance, drawBeeswarm, drawDependence, drawInteractions, ...[sets, ...comparisons].filter(Boolean).map((part) => () => part.draw())];
  const drawCharts = () => charts.forEach((draw) => draw(report));
  byId("output").addEventListener("input", () => {
    report.output = Number(byId("output").value);
    drawCharts();
    redraw();
    whatIf?.draw();
  });
  for (const draw of [...charts, drawSpectrum]) {
    draw(report);
    await shown();
  }
  for (const id of ["beeswarm", "dependence"]) byId(id).on("plotly_click", ({ points }) => choose(points[0].customdata));
  fitToPaper(() => [...charts, drawSpectrum].forEach((draw) => draw(report)));
  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawCharts, 200); // the length of names depends on the width
  });
  document.documentElement.dataset.ready = "true";
}

if (typeof document !== "undefined") start();
