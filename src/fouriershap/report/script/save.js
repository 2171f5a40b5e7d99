// What the page holds, as files: rows as CSV, everything as JSON.

// What a spreadsheet takes for the start of a formula, also in full width; plain numbers are none.
const FORMULA = /^(?:[=+\-@\t\r\n]|＝|＋|－|＠)/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function csvCell(value) {
  if (typeof value === "number") return Number.isNaN(value) ? "" : plain(value);
  const text = FORMULA.test(value) && !NUMBER.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const csv = (lines) => lines.map((line) => line.map(csvCell).join(",") + "\r\n").join("");

function download(name, type, text) {
  const link = element("a", "", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const fileName = (report, what) => `${report.data.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "report"}-${what}`;

/** A value of an input as it came: a number, a label, or nothing. */
function cell(report, input, value) {
  const { labels } = report.data.inputs[input];
  return labels && !Number.isNaN(value) ? labels[value] : value;
}

/** Rows, with predictions, what was observed, inputs and SHAP values of all outputs. */
function rowsAsCsv(report, rows) {
  const { data } = report;
  const outputs = data.outputs.map((output) => output.label);
  const many = outputs.length > 1;
  const heads = [data.has_ids ? "id" : "row", ...outputs, ...(data.actual ? ["observed"] : []), ...data.inputs.map((input) => input.name)];
  for (const player of data.players) for (const output of outputs) heads.push(many ? `SHAP of ${player} (${output})` : `SHAP of ${player}`);
  const lines = rows.map((row) => {
    const values = report.stored(row);
    const actual = data.actual ? [report.actualText(row)] : [];
    const predictions = outputs.map((_, k) => values.prediction(k));
    const inputs = data.inputs.map((_, i) => cell(report, i, report.value(row, i)));
    return [report.rowName(row), ...predictions, ...actual, ...inputs, ...values.shap];
  });
  return csv([heads, ...lines]);
}

function asJson(report, comparisons, sets) {
  const { data, nRows } = report;
  const nothing = (number) => (Number.isFinite(number) ? number : null);
  const outputs = data.outputs.map((output) => output.label);
  const byOutput = (of) => Object.fromEntries(outputs.map((label, k) => [label, of(k)]));
  const records = ([heads, lines]) => lines.map((line) => Object.fromEntries(heads.map((head, i) => [`${head}`, typeof line[i] === "number" ? nothing(line[i]) : line[i]])));
  const importance = data.players.flatMap((feature, p) => outputs.map((output, k) => {
    const [low, high] = report.importanceEnds(p, k) ?? [NaN, NaN];
    return { feature, output, importance: report.importance(p, k), low: nothing(low), high: nothing(high) };
  }));
  const rows = Array.from({ length: nRows }, (_, row) => {
    const values = report.stored(row);
    return {
      id: report.rowName(row),
      ...(data.actual ? { observed: report.actualText(row) } : {}),
      predictions: byOutput((k) => values.prediction(k)),
      inputs: Object.fromEntries(data.inputs.map((input, i) => [input.name, ((value) => (typeof value === "number" ? nothing(value) : value))(cell(report, i, report.value(row, i)))])),
      shap: Object.fromEntries(data.players.map((player, p) => [player, byOutput((k) => values.at(p, k))])),
    };
  });
  const whole = {
    title: data.title,
    ...data.versions,
    record: Object.fromEntries(data.record),
    facts: Object.fromEntries(data.facts),
    meaning: data.meaning,
    notes: data.notes,
    expected: byOutput((k) => data.expected[k]),
    metrics: data.actual ? data.actual.metrics.map(([name, value, meaning]) => ({ name, value: nothing(value), meaning })) : null,
    importance,
    n_rows: data.n_rows,
    rows,
  };
  for (const part of comparisons) whole[part.name] = { words: part.part.words, groups: part.part.groups, n_rows: part.part.n_rows, ...part.json() };
  if (sets) whole.sets = sets.json();
  return JSON.stringify(whole);
}
