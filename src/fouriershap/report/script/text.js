// Numbers and names as text; elements that hold text, never markup.

const MISSING = "missing";

function format(number) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? MISSING : String(number);
  if (number !== 0 && Math.abs(number) < 1e-4) return number.toExponential(2).replace("-", "−");
  return String(Number(number.toPrecision(5))).replace("-", "−");
}

function signed(number) {
  return (number >= 0 ? "+" : "") + format(number);
}

/** Numbers that stand below each other: as many decimals as three digits of their range need. */
function decimals(span) {
  return span > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(span)), 0), 9) : 2;
}

function fixed(number, digits, sign = false) {
  const text = Math.abs(number) < 1e7 ? number.toFixed(digits) : number.toExponential(2);
  return (sign && number >= 0 ? "+" : "") + text.replace("-", "−");
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
