// The heat map of interactions.

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
