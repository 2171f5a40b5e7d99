// The heat map of interactions of raw outputs, for the strongest players if there are many.

const CELL = 22; // pixels per name of one line

function drawInteractions(report) {
  const { interactions: all, interaction_players: known } = report.arrays;
  if (!all) return;
  byId("interactions-figure").hidden = false;
  const output = report.rawOutput();
  const narrow = isNarrow("interactions");
  const margin = { l: narrow ? 105 : 170, r: 10, t: 10, b: narrow ? 105 : 170 };
  const position = new Map(Array.from(known, (player, i) => [player, i]));
  const n = known.length;
  const nameOf = (p) => chartLines(report.data.players[p], narrow ? 13 : 22);
  const ranking = report.ranking(output).filter((p) => position.has(p));
  const cell = Math.max(CELL, 7 + 15 * countLines(ranking.map(nameOf)));
  const players = ranking.slice(0, Math.max(3, Math.floor((byId("interactions").clientWidth - margin.l - 80) / cell)));
  const at = (a, b) => all[((output - report.data.first_raw) * n + position.get(a)) * n + position.get(b)];
  const names = players.map(nameOf);
  const axis = { tickvals: players.map((_, k) => k), ticktext: names, fixedrange: true, showgrid: false, zeroline: false };
  const trace = {
    type: "heatmap",
    z: players.map((a) => players.map((b) => at(a, b))),
    text: players.map((a, i) => players.map((b, j) => `${chartText(report.data.players[a], 60)}, ${chartText(report.data.players[b], 60)}<br>${format(at(a, b))}`)),
    hoverinfo: "text",
    hoverongaps: false,
    colorscale: [[0, "rgba(128,139,156,0.12)"], [1, "#e5487f"]],
    colorbar: { thickness: 10, outlinewidth: 0 },
  };
  const axes = { xaxis: { ...axis, tickangle: 90 }, yaxis: { ...axis, autorange: "reversed" } };
  draw("interactions", [trace], { height: margin.t + margin.b + cell * players.length, margin, ...axes });
  const main = Number.isNaN(at(players[0], players[0])) ? "" : " main effects on the diagonal,";
  const few = players.length < report.nPlayers ? ` Shown: the ${players.length} strongest of ${count(report.nPlayers, "feature")}.` : "";
  const scale = report.data.outputs[output].scale;
  byId("interactions-text").textContent = `Mean absolute SHAP interaction values${scale ? ` (${shorten(scale)})` : ""} over the first 200 rows:${main} half of each pair's interaction on each side.${few}`;
}
