// Everything put together; the last of the scripts.

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
