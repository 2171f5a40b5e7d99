// One row: from the expected value to its prediction, its reasons in words, and how it differs from another row.

const MOST_REASONS = 5;

/** The sentence of a reason: the caller's, or "feature = value". */
function sentence(report, player, text, contribution) {
  const name = report.data.players[player];
  const parts = report.data.sentences?.[player][contribution < 0 ? 1 : 0];
  if (!parts) return `${name} = ${text}`;
  const fields = { feature: () => name, value: () => text, contribution: (form) => numberAs(contribution, form) };
  return parts.map(([before, field, form]) => before + (field ? fields[field](form) : "")).join("");
}

/** A number in a format of Python, as far as it is about sign and digits. */
function numberAs(number, form) {
  const [, sign, digits, kind] = /^([+]?)(?:\.(\d+))?([fge%]?)$/.exec(form) ?? [];
  if (digits === undefined) return sign ? signed(number) : format(number);
  if (kind === "%") return `${fixed(100 * number, Number(digits), Boolean(sign))}%`;
  return kind === "f" ? fixed(number, Number(digits), Boolean(sign)) : (sign && number >= 0 ? "+" : "") + String(Number(number.toPrecision(Math.max(Number(digits), 1)))).replaceAll("-", "−");
}

class OneRow {
  constructor(report) {
    this.report = report;
    const box = byId("row-waterfalls");
    this.waterfalls = [0, 1].map(() => {
      const container = box.appendChild(element("div", "", { class: "waterfall" }));
      return { container, waterfall: new Waterfall(container) };
    });
    this.waterfalls[0].container.id = "row-waterfall";
    this.waterfalls[1].container.id = "second-waterfall";
  }

  draw() {
    const { report } = this;
    const values = report.stored(report.row);
    byId("row-answer").textContent = this.#words(report.row, values);
    if (report.other !== null) this.#compared(values);
    else this.#alone(values);
    this.#reasons(values);
    byId("comparison").hidden = report.other === null;
  }

  #title(row, output) {
    const { report } = this;
    const which = `Row ${shorten(report.rowName(row))}`;
    return report.data.first_raw ? `${which}, ${shorten(report.label(output))}` : which;
  }

  #words(row, values) {
    const { report } = this;
    const outputs = report.data.first_raw ? [report.output, this.#beside()] : [report.output];
    const told = outputs.map((output) => `${shorten(report.label(output))} ${outputs.length > 1 ? report.amount(values.prediction(output), output) : report.predictionText(values, output)}`);
    const actual = report.actualText(row);
    return `Row ${shorten(report.rowName(row))}: ${told.join(", ")}${actual === null ? "" : `; observed: ${shorten(actual)}${report.data.actual.labels ? "" : ` ${report.predictedUnit}`}`.trimEnd()}`;
  }

  /** The same output on the other scale: probability beside margin. */
  #beside() {
    const { output, data } = this.report;
    return output >= data.first_raw ? output - data.first_raw : output + data.first_raw;
  }

  #alone(values) {
    const { report } = this;
    const outputs = report.data.first_raw ? [report.output, this.#beside()] : [report.output];
    const players = playersToDraw(playersBySize(report, [values, report.output]));
    this.waterfalls.forEach(({ container, waterfall }, k) => {
      container.hidden = k >= outputs.length;
      if (container.hidden) return;
      const steps = waterfallSteps(report, values, outputs[k], report.original(), players);
      waterfall.draw(this.#title(report.row, outputs[k]), steps, stepRange(steps));
    });
  }

  #compared(values) {
    const { report } = this;
    const { output, other } = report;
    const theirs = report.stored(other);
    const players = playersToDraw(playersBySize(report, [values, output], [theirs, output]));
    const steps = [
      waterfallSteps(report, values, output, report.original(), players),
      waterfallSteps(report, theirs, output, report.original(other), players),
    ];
    [report.row, other].forEach((row, k) => {
      this.waterfalls[k].container.hidden = false;
      this.waterfalls[k].waterfall.draw(this.#title(row, output), steps[k], stepRange(...steps));
    });
    this.#differences(values, theirs);
  }

  #differences(values, theirs) {
    const { report } = this;
    const { output, other } = report;
    const difference = (p) => values.at(p, output) - theirs.at(p, output);
    const players = playersBySize(report, [{ at: difference }, output]);
    const shown = players.slice(0, MOST_SHOWN);
    const names = [report.row, other].map((row) => shorten(report.rowName(row)));
    const inputs = [report.original(), report.original(other)];
    const digits = decimals(Math.abs(difference(players[0])) || 1);
    const heads = ["feature", ...names, ...names.map((name) => `SHAP of ${name}`), "difference"];
    const lines = shown.map((p) => [
      report.data.players[p],
      ...inputs.map((mine) => report.playerText(p, mine)),
      ...[values.at(p, output), theirs.at(p, output), difference(p)].map((number) => fixed(number, digits, true)),
    ]);
    const rest = (of) => fixed(players.slice(MOST_SHOWN).reduce((sum, p) => sum + of(p), 0), digits, true);
    const others = [(p) => values.at(p, output), (p) => theirs.at(p, output), difference];
    if (players.length > MOST_SHOWN) lines.push([count(players.length - MOST_SHOWN, "other"), "", "", ...others.map(rest)]);
    fillTable(byId("comparison-table"), heads, lines);
    const [now, then] = [values.prediction(output), theirs.prediction(output)];
    byId("comparison-text").textContent = `${this.#words(other, theirs)}. Difference in the ${shorten(report.label(output))}: ${report.amount(now - then, output, true)}, split over the features below.`;
  }

  /** What raised and what lowered the output, the strongest first. */
  #reasons(values) {
    const { report } = this;
    const { output } = report;
    const order = playersBySize(report, [values, output]);
    const inputs = report.original();
    const digits = decimals(Math.abs(values.at(order[0], output)) || 1);
    for (const [id, sign] of [["raised", 1], ["lowered", -1]]) {
      const mine = order.filter((p) => sign * values.at(p, output) > 0);
      const items = mine.slice(0, MOST_REASONS).map((p) => {
        const item = element("li", `${sentence(report, p, report.playerText(p, inputs), values.at(p, output))} `);
        const error = values.error(p, output);
        const spread = error ? ` ± ${fixed(error, digits)}` : "";
        item.append(element("small", `(${fixed(values.at(p, output), digits, true)}${spread})`));
        return item;
      });
      byId(id).replaceChildren(...(items.length ? items : [element("li", "nothing", { class: "none" })]));
      byId(`${id}-title`).textContent = `What ${id} the ${shorten(report.label())}`;
      const rest = mine.length - items.length;
      byId(`${id}-rest`).textContent = rest > 0 ? `and ${count(rest, "smaller one")}` : "";
    }
  }
}
