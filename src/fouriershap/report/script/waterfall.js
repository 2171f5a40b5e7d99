// From the expected value to a prediction, a bar per player.

const MOST_BARS = 12;
const NORMAL = 1.96; // standard errors of a 95 % interval

/** Drawn once, then moved. */
class Waterfall {
  constructor(container) {
    this.heading = container.appendChild(element("h3"));
    this.list = container.appendChild(element("ol"));
    this.items = [];
  }

  #item(index) {
    if (!this.items[index]) {
      const item = this.list.appendChild(element("li"));
      const name = item.appendChild(element("span", "", { class: "name" }));
      const label = name.appendChild(element("span"));
      const value = name.appendChild(element("small"));
      const track = item.appendChild(element("span", "", { class: "track" }));
      const [bar, whisker] = ["bar", "whisker"].map((kind) => track.appendChild(element("span", "", { class: kind })));
      this.items[index] = { item, name, label, value, bar, whisker, number: item.appendChild(element("data")) };
    }
    return this.items[index];
  }

  /** Each step: {name, text, from, to, kind}; positions are shares of the range. */
  draw(title, steps, [low, high]) {
    this.heading.textContent = title;
    const place = (x) => (100 * (x - low)) / (high - low || 1);
    const digits = decimals(high - low);
    steps.forEach((step, index) => {
      const { item, name, label, value, bar, whisker, number } = this.#item(index);
      item.className = step.kind;
      writeName(label, shorten(step.name));
      value.textContent = step.text ? ` = ${shorten(step.text)}` : "";
      bar.style.left = `${place(Math.min(step.from, step.to))}%`;
      bar.style.width = step.kind === "total" ? "" : `${place(Math.max(step.from, step.to)) - place(Math.min(step.from, step.to))}%`;
      const reach = NORMAL * (step.error ?? 0);
      whisker.hidden = !reach;
      whisker.style.left = `${place(step.to - reach)}%`;
      whisker.style.width = `${place(step.to + reach) - place(step.to - reach)}%`;
      number.title = reach ? `standard error ${format(step.error)}` : "";
      number.value = String(step.number);
      number.textContent = fixed(step.number, digits, step.kind !== "total");
      if (step.player === undefined) item.removeAttribute("data-player");
      else item.dataset.player = step.player;
    });
    while (this.items.length > steps.length) this.items.pop().item.remove();
  }
}

/** Players, those with the largest values first. */
function playersBySize(report, ...many) {
  const size = (p) => Math.max(...many.map(([values, output]) => Math.abs(values.at(p, output))));
  return Array.from({ length: report.nPlayers }, (_, p) => p).sort((a, b) => size(b) - size(a));
}

/** Players to draw: those with the largest values, and all that were changed. */
function playersToDraw(order, changed = []) {
  const first = order.slice(0, order.length <= MOST_BARS + 1 ? MOST_BARS + 1 : MOST_BARS);
  return first.concat([...changed].filter((p) => !first.includes(p)));
}

function waterfallSteps(report, values, output, inputs, players, changed = new Set()) {
  const { data } = report;
  let at = data.expected[output];
  const steps = [{ name: "expected value", from: at, to: at, number: at, kind: "total" }];
  const add = (name, text, number, player, error = 0) => {
    const kind = (number >= 0 ? "plus" : "minus") + (changed.has(player) ? " changed" : "");
    steps.push({ name, text, from: at, to: at + number, number, kind, player, error });
    at += number;
  };
  for (const p of players) add(data.players[p], report.playerText(p, inputs), values.at(p, output), p, values.error(p, output));
  const prediction = values.prediction(output);
  const nOthers = report.nPlayers - players.length;
  if (nOthers > 0) add(count(nOthers, "other"), "", prediction - at);
  steps.push({ name: report.heading(output), from: prediction, to: prediction, number: prediction, kind: "total" });
  return steps;
}

function stepRange(...lists) {
  const ends = lists.flat().flatMap((step) => [step.from, step.to - NORMAL * (step.error ?? 0), step.to + NORMAL * (step.error ?? 0)]);
  return [Math.min(...ends), Math.max(...ends)];
}
