// What all charts share.

const CONFIG = { displayModeBar: false, responsive: true };
const SCALE = [[0, "#3a86d8"], [0.5, "#9d86c4"], [1, "#e5487f"]]; // readable on light and on dark
const GROUPS = ["#3a86d8", "#e58a1f", "#2a9d74", "#e5487f", "#9d6fd0", "#8d9a2b", "#c0694e", "#808b9c"];
const GREY = "#808b9c";
const MOST_SHOWN = 15; // players in a chart
const MOST_DOTS = 3000; // SVG elements that browsers draw without effort
const NARROW = 560; // pixels below which names have shorter lines
const LEGEND = { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 };
const MARGIN = { l: 65, r: 20, t: 10, b: 45 };

const dots = (trace) => ({ type: "scatter", mode: "markers", hoverinfo: "text", ...trace });
const bars = (trace) => ({ type: "bar", orientation: "h", hoverinfo: "text", ...trace });

/** Run plotly, which is packed until here: what needs no chart is shown before. Its hash is in the page's policy. */
async function loadPlotly() {
  const packed = byId("plotly");
  packed.replaceWith(element("script", await inflate(packed.textContent).text()));
}

const PRINTED = 680; // pixels across a sheet of paper

/** Charts as wide as paper while the page is printed, and drawn anew afterwards. */
function fitToPaper(drawCharts) {
  const drawn = () => [...document.querySelectorAll(".chart.js-plotly-plot")];
  window.addEventListener("beforeprint", () => drawn().forEach((chart) => Plotly.relayout(chart, { width: PRINTED })));
  window.addEventListener("afterprint", () => {
    drawn().forEach((chart) => Plotly.relayout(chart, { width: null, autosize: true })); // which also forgets the height
    drawCharts();
  });
}

const isNarrow = (id) => byId(id).clientWidth < NARROW;

function draw(id, traces, changes) {
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13 },
    hoverlabel: { bgcolor: "#1d2430", bordercolor: "#1d2430", font: { color: "#ffffff" }, align: "left" },
    showlegend: false,
    dragmode: false,
    ...changes,
  };
  Plotly.react(id, traces, layout, CONFIG);
}

/** An axis with a line per name, the first on top. */
function lineAxis(ticktext) {
  const tickvals = ticktext.map((_, rank) => rank);
  return { tickvals, ticktext, range: [tickvals.length - 0.4, -0.6], showgrid: false, zeroline: false, fixedrange: true };
}

/** Margin and axis of a chart with a line per player. */
function playerLines(report, players, id) {
  const narrow = isNarrow(id);
  const yaxis = lineAxis(players.map((p) => chartLines(report.data.players[p], narrow ? 13 : 22)));
  const line = 11 + 15 * countLines(yaxis.ticktext);
  return { margin: { ...MARGIN, l: narrow ? 105 : 170 }, yaxis, height: 80 + line * Math.max(players.length, 3) };
}

/** The title of an axis, in lines as long as there is room for. */
function axisTitle(id, text, width = 60) {
  const narrow = isNarrow(id);
  return { text: chartLines(text, narrow ? Math.min(width, 34) : width), font: { size: narrow ? 11 : 13 } };
}

function valueTitle(report, id, what, output = report.output) {
  return axisTitle(id, report.valueText(output, what));
}

/** Error bars of plotly from the ends of intervals. */
function errorBars(values, ends) {
  return {
    type: "data",
    symmetric: false,
    array: values.map((value, i) => (ends[i] ? ends[i][1] - value : 0)),
    arrayminus: values.map((value, i) => (ends[i] ? value - ends[i][0] : 0)),
    color: GREY,
    thickness: 1.5,
    width: 3,
  };
}
