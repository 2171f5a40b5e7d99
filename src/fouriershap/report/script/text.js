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

/** Names are shown whole; only what nobody reads is cut. */
function shorten(text, length = 1000) {
  const characters = Array.from(text.slice(0, 4 * length));
  return characters.length > length ? characters.slice(0, length - 1).join("") + "…" : characters.join("");
}

/** Text for plotly, which reads some HTML: escaped, and short enough for a chart. */
function chartText(text, length = 24) {
  return shorten(text, length).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\s/g, " ");
}

/** The same in lines of about `width` characters; hovering shows what does not fit into the last. */
function chartLines(text, width = 22, most = 5) {
  const lines = [""];
  for (const word of shorten(text, width * most).split(/\s+|(?<=[_\-/.,;])/)) {
    for (const part of word.match(new RegExp(`.{1,${width}}`, "gu")) ?? []) {
      const last = lines.at(-1);
      const joint = last && !/[_\-/.,;]$/.test(last) ? " " : "";
      if (last && last.length + joint.length + part.length > width) lines.push(part);
      else lines[lines.length - 1] = last + joint + part;
    }
  }
  return lines.map((line) => chartText(line, width)).join("<br>");
}

const countLines = (texts) => Math.max(...texts.map((text) => text.split("<br>").length), 1);

/** An element with text; never markup. */
function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** Write a name that may be broken after underscores and the like. */
function writeName(node, text) {
  node.replaceChildren(...text.split(/(?<=[_\-/.])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part])));
  return node;
}

const byId = (id) => document.getElementById(id);

/** A table of texts and numbers; the first column names the lines. */
function fillTable(table, heads, lines) {
  table.replaceChildren();
  const head = table.createTHead().insertRow();
  for (const text of heads) head.append(writeName(element("th", "", { scope: "col" }), shorten(text)));
  const body = table.createTBody();
  for (const [first, ...cells] of lines) {
    const line = body.insertRow();
    line.append(writeName(element("th", "", { scope: "row" }), shorten(first)));
    for (const cell of cells) line.append(element("td", typeof cell === "number" ? format(cell) : shorten(cell)));
  }
}
