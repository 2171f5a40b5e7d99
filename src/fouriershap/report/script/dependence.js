// The dependence of one player's values on an input, coloured by another.

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
  const traces = groups.map(({ name, members, color }) => dots({
    name,
    x: members.map((r, k) => report.value(r, x) + jitter(k)),
    y: members.map((r) => report.shap(r, input.player)),
    text: members.map(hover),
    customdata: members,
    marker: { size: 6, opacity: 0.75, ...(color ? { color } : marker) },
  }));
  const xaxis = { title: axisTitle("dependence", input.name), fixedrange: true, zeroline: false, automargin: true };
  if (input.labels) {
    xaxis.tickvals = input.labels.slice(0, 60).map((_, k) => k);
    xaxis.ticktext = input.labels.slice(0, 60).map((label) => chartLines(label, 16));
  }
  const yaxis = { title: axisTitle("dependence", `SHAP value of ${report.data.players[input.player]}`, 44), automargin: true, fixedrange: true };
  draw("dependence", traces, { height: 400, margin: MARGIN, xaxis, yaxis, hovermode: "closest", showlegend: legend, legend: LEGEND });
}

/** Dots by category with a legend, or all of them on one scale. */
function dependenceColours(report, colour, rows) {
  const { labels, name } = report.data.inputs[colour];
  if (!labels) {
    const known = rows.filter((r) => !Number.isNaN(report.value(r, colour)));
    const missing = rows.filter((r) => Number.isNaN(report.value(r, colour)));
    const bar = { title: { text: chartLines(name, 50), side: "right" }, thickness: 10, outlinewidth: 0 };
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
  const groups = sorted.slice(0, GROUPS.length - 1).map(([text, mine], k) => ({ name: chartLines(text, 30), members: mine, color: GROUPS[k] }));
  const rest = sorted.slice(GROUPS.length - 1).flatMap(([, mine]) => mine);
  if (rest.length) groups.push({ name: "others", members: rest, color: GREY });
  return { groups, legend: true, marker: {} };
}
