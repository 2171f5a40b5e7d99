// Numbers and names as text; elements that hold text, never markup.

const MISSING = "missing";

function format(number) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? MISSING : String(number);
  if (number !== 0 && Math.abs(number) < 1e-4) return number.toExponential(2).replaceAll("-", "−");
  return String(Number(number.toPrecision(5))).replaceAll("-", "−");
}

function signed(number) {
  return (number >= 0 ? "+" : "") + format(number);
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

/** All digits of a number and no more: one that came from single precision has few. */
function plain(number) {
  if (Math.fround(number) !== number) return String(number);
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(number.toPrecision(digits));
    if (Math.fround(short) === number) return String(short);
  }
  return String(Number(number.toPrecision(9)));
}

/** Numbers that stand below each other: as many decimals as three digits of their range need. */
function decimals(span) {
  return span > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(span)), 0), 9) : 2;
}

function fixed(number, digits, sign = false) {
  const text = Math.abs(number) < 1e7 ? number.toFixed(digits) : number.toExponential(2);
  return (sign && number >= 0 ? "+" : "") + text.replaceAll("-", "−");
}

function shorten(text, length) {
  const characters = Array.from(text.slice(0, 4 * length));
  return characters.length > length ? characters.slice(0, length - 1).join("") + "…" : characters.join("");
}

/** Text for plotly, which reads some HTML: escaped, and short enough for a chart. */
function chartText(text, length = 24) {
  return shorten(text, length).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\s/g, " ");
}

/** An element with text; never markup. */
function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const byId = (id) => document.getElementById(id);

/** A table of texts and numbers; the first column names the lines. */
function fillTable(table, heads, lines) {
  table.replaceChildren();
  const head = table.createTHead().insertRow();
  for (const text of heads) head.append(element("th", shorten(text, 60), { scope: "col" }));
  const body = table.createTBody();
  for (const [first, ...cells] of lines) {
    const line = body.insertRow();
    line.append(element("th", shorten(first, 80), { scope: "row", title: shorten(first, 300) }));
    for (const cell of cells) line.append(element("td", typeof cell === "number" ? format(cell) : shorten(cell, 60)));
  }
}
