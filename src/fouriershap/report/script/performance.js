// How well predictions agree with observations.

function showPerformance(report) {
  const { actual } = report.data;
  if (!actual) return;
  byId("performance").hidden = byId("performance-link").hidden = false;
  for (const [name, number, text] of actual.metrics) {
    const hasUnit = !actual.labels && name !== "R²";
    const pair = byId("metrics").appendChild(element("div"));
    pair.append(element("dt", name), element("dd", hasUnit ? `${format(number)} ${report.predictedUnit}`.trimEnd() : format(number)), element("dd", text, { class: "meaning" }));
  }
  byId("performance-text").textContent = `On ${count(report.data.n_rows, "row")} with known outcome.`;
}

function drawPerformance(report) {
  if (!report.data.actual) return;
  if (report.arrays.calibration) drawCalibration(report);
  else drawPredicted(report);
}

const DIAGONAL = { type: "scatter", mode: "lines", line: { color: GREY, dash: "dot", width: 1.5 }, hoverinfo: "skip" };
const SQUARE = { height: 360, margin: { ...MARGIN, b: 50 } };

/** Observed shares against predicted probabilities. */
function drawCalibration(report) {
  const nClasses = report.arrays.calibration.length / 50;
  const k = report.output >= report.data.first_raw ? report.output - report.data.first_raw : report.output;
  const all = Array.from({ length: 10 }, (_, b) => report.arrays.calibration.subarray((k % nClasses) * 50 + 5 * b, (k % nClasses) * 50 + 5 * b + 5));
  const bins = all.filter((bin) => bin[4] > 0);
  const name = shorten(report.data.actual.labels[nClasses === 1 ? 1 : k]);
  const observed = bins.map((bin) => bin[1]);
  const line = dots({
    mode: "lines+markers",
    x: bins.map((bin) => bin[0]),
    y: observed,
    error_y: errorBars(observed, bins.map((bin) => [bin[2], bin[3]])),
    text: bins.map((bin) => `predicted ${percent(bin[0])}<br>observed ${percent(bin[1])} (${percent(bin[2])} to ${percent(bin[3])})<br>${count(bin[4], "row")}`),
    line: { color: GROUPS[0] },
    marker: { color: GROUPS[0], size: 8 },
  });
  const axis = (text, width) => ({ title: axisTitle("performance-chart", text, width), range: [-0.03, 1.03], tickformat: ".0%", fixedrange: true, zeroline: false });
  const axes = { xaxis: axis(`predicted probability of ${name}`, 60), yaxis: axis(`share of ${name}`, 40) };
  draw("performance-chart", [{ ...DIAGONAL, x: [0, 1], y: [0, 1] }, line], { ...SQUARE, ...axes });
  byId("performance-caption").textContent = "Calibration: rows in ten groups by their prediction, with 95 % intervals. On the dotted line, observed shares equal predictions.";
}

/** Observed against predicted values. */
function drawPredicted(report) {
  const rows = report.sample(MOST_DOTS);
  const predicted = rows.map((r) => report.stored(r).response(0) ?? report.stored(r).prediction(0));
  const observed = rows.map((r) => report.rows.actual[r]);
  const ends = [Math.min(...predicted, ...observed), Math.max(...predicted, ...observed)];
  const pairs = dots({
    x: predicted,
    y: observed,
    customdata: rows,
    text: rows.map((r, i) => `row ${chartText(report.rowName(r))}<br>predicted ${format(predicted[i])}<br>observed ${format(observed[i])}`),
    marker: { color: GROUPS[0], size: 5, opacity: 0.6 },
  });
  const axis = (what) => ({ title: axisTitle("performance-chart", report.predictedUnit ? `${what} (${report.predictedUnit})` : what), fixedrange: true, zeroline: false });
  const axes = { xaxis: axis("predicted"), yaxis: axis("observed") };
  draw("performance-chart", [{ ...DIAGONAL, x: ends, y: ends }, pairs], { ...SQUARE, ...axes, hovermode: "closest" });
  byId("performance-caption").textContent = "A dot per row. On the dotted line, predictions equal observations.";
}
