// Terms and energy of a spectrum.

function drawSpectrum({ arrays }) {
  if (!arrays.degree_terms) return;
  byId("spectrum-figure").hidden = false;
  const { degree_terms: terms, degree_share: energyShare, curve_terms: count, curve_share: share } = arrays;
  const degrees = Array.from(terms, (_, d) => d).slice(1);
  const bars = (values, axis) => ({ type: "bar", x: degrees, y: values, yaxis: axis, hoverinfo: "x+y" });
  const xaxis = { title: { text: "degree" }, dtick: 1, fixedrange: true };
  const yaxis = { title: { text: "terms" }, domain: [0.56, 1], fixedrange: true };
  const yaxis2 = { title: { text: "share of variance" }, domain: [0, 0.44], fixedrange: true, tickformat: ".0%" };
  const margin = { l: 65, r: 20, t: 10, b: 45 };
  const parts = [bars(Array.from(terms).slice(1), "y"), bars(degrees.map((d) => energyShare[d]), "y2")];
  Plotly.react("degrees", parts, layout({ height: 340, margin, xaxis: { ...xaxis, anchor: "y2" }, yaxis, yaxis2 }), CONFIG);
  const line = { type: "scatter", mode: "lines", x: Array.from(count), y: Array.from(share), hoverinfo: "x+y" };
  const curveAxes = { xaxis: { title: { text: "largest terms" }, fixedrange: true }, yaxis: { tickformat: ".0%", range: [0, 1.03], fixedrange: true } };
  Plotly.react("energy", [line], layout({ height: 340, margin, ...curveAxes }), CONFIG);
}
