// A row that the reader changes, explained anew at every move.

/** Explainers whose values add up. */
class Sum {
  constructor(parts) {
    this.parts = parts;
  }

  explain(row) {
    return this.parts.map((part) => part.explain(row)).reduce((a, b) => a.map((value, i) => value + b[i]));
  }
}

async function whatIfOf(parts) {
  const make = async (part) => new (part.kind === "products" ? Products : Tables)(part, await unpackAll(part.arrays));
  return new Sum(await Promise.all(parts.map(make)));
}

/** The controls of one input. `show` puts a value into them; `onChange` hears of the reader's. */
class Control {
  constructor(input, index, onChange) {
    this.input = input;
    this.box = element("div", "", { class: "control" });
    const head = this.box.appendChild(element("div", "", { class: "head" }));
    head.append(element("label", shorten(input.name, 200), { for: `input-${index}`, title: shorten(input.name, 400) }));
    this.was = head.appendChild(element("span", "", { class: "was" }));
    this.edit = this.box.appendChild(element("div", "", { class: "edit" }));
    const name = shorten(input.name, 100);
    if (input.labels) this.#choice(index, onChange);
    else this.#number(index, name, onChange);
  }

  #choice(index, onChange) {
    this.select = this.edit.appendChild(element("select", "", { id: `input-${index}` }));
    this.input.labels.forEach((label, k) => this.select.append(element("option", shorten(label, 120), { value: k })));
    if (this.input.missing) this.select.append(element("option", MISSING, { value: "" }));
    this.select.addEventListener("input", () => onChange(this.select.value === "" ? NaN : Number(this.select.value)));
  }

  #number(index, name, onChange) {
    const { low, high, whole } = this.input;
    const limits = { min: low, max: high, step: whole ? 1 : "any" };
    this.range = this.edit.appendChild(element("input", "", { type: "range", "aria-label": `${name}, slider`, ...limits }));
    this.field = this.edit.appendChild(element("input", "", { type: "number", id: `input-${index}`, step: "any" }));
    this.range.addEventListener("input", () => {
      const value = Number(Number(this.range.value).toPrecision(6)); // what is shown is what is used
      this.field.value = String(value);
      this.#present();
      onChange(value);
    });
    this.field.addEventListener("input", () => {
      if (this.field.value === "") return; // while the reader types
      this.range.value = this.field.value;
      this.#present();
      onChange(Number(this.field.value));
    });
    if (!this.input.missing) return;
    const label = this.edit.appendChild(element("label"));
    this.absent = label.appendChild(element("input", "", { type: "checkbox", "aria-label": `${name} is missing` }));
    label.append(` ${MISSING}`);
    this.absent.addEventListener("input", () => {
      this.range.disabled = this.field.disabled = this.absent.checked;
      if (this.field.value === "") this.field.value = this.range.value;
      onChange(this.absent.checked ? NaN : Number(this.field.value));
    });
  }

  #present() {
    if (this.absent) this.absent.checked = false;
  }

  show(value, text) {
    this.was.textContent = `row: ${shorten(text, 60)}`;
    const missing = Number.isNaN(value);
    if (this.select) {
      this.select.value = missing ? "" : String(value);
      return;
    }
    this.field.value = missing ? "" : String(value);
    if (!missing) this.range.value = String(value);
    if (this.absent) {
      this.absent.checked = missing;
      this.range.disabled = this.field.disabled = missing;
    }
  }
}

class WhatIf {
  constructor(report) {
    this.report = report;
    byId("what-if").hidden = byId("what-if-link").hidden = false;
    this.edited = new Waterfall(byId("edited-waterfall"));
    this.original = new Waterfall(byId("original-waterfall"));
    this.controls = [];
    for (const i of report.inputRanking()) {
      const control = new Control(report.data.inputs[i], i, (value) => {
        report.edited[i] = value;
        this.draw();
      });
      this.controls[i] = control;
      byId("controls").append(control.box);
    }
    byId("filter-label").hidden = report.data.inputs.length <= MOST_COLUMNS;
    byId("filter").addEventListener("input", () => this.#filter(byId("filter").value.toLowerCase()));
    byId("reset").addEventListener("click", () => {
      report.choose(report.row);
      this.start();
    });
    this.start();
  }

  #filter(text) {
    this.controls.forEach(({ box, input }) => (box.hidden = !input.name.toLowerCase().includes(text)));
  }

  /** Begin with the chosen row as it is. */
  start() {
    const { report } = this;
    this.controls.forEach((control, i) => control.show(report.edited[i], report.text(i, report.edited[i])));
    this.rowValues = report.original();
    this.rowShap = report.explain(this.rowValues);
    this.draw();
  }

  draw() {
    const { report, rowShap, rowValues } = this;
    const shap = report.explain(report.edited);
    const changed = new Set();
    this.controls.forEach(({ box, input }, i) => {
      const differs = !Object.is(report.edited[i], rowValues[i]);
      box.classList.toggle("changed", differs);
      if (differs) changed.add(input.player);
    });
    const players = playersToDraw(report, rowShap, changed);
    const before = waterfallSteps(report, rowShap, rowValues, players, new Set());
    const after = waterfallSteps(report, shap, report.edited, players, changed);
    const range = stepRange(before, after);
    this.edited.draw(changed.size ? "Changed" : "Unchanged", after, range);
    this.original.draw(`Row ${shorten(report.rowName(report.row), 40)} as it is`, before, range);
    this.#answer(shap);
    if (report.nOutputs > 1) this.#outputs(shap);
  }

  #answer(shap) {
    const now = this.report.prediction(shap);
    const was = this.report.prediction(this.rowShap);
    const number = element("data", format(now), { value: now });
    const strong = element("strong");
    strong.append(number);
    byId("answer").replaceChildren("Prediction ", strong, now === was ? "" : ` (${signed(now - was)} from ${format(was)})`);
  }

  /** All outputs of the changed row beside those of the row as it is. */
  #outputs(shap) {
    const { report } = this;
    const shares = report.probabilities(shap);
    const table = element("table");
    const head = table.createTHead().insertRow();
    for (const text of ["output", "prediction", "as it is", ...(shares ? ["softmax"] : [])]) head.append(element("th", text, { scope: "col" }));
    const body = table.createTBody();
    report.data.outputs.forEach((name, k) => {
      const line = body.insertRow();
      if (k === report.output) line.className = "chosen";
      line.append(element("td", shorten(name, 40)), element("td", format(report.prediction(shap, k))), element("td", format(report.prediction(this.rowShap, k))));
      if (shares) line.append(element("td", `${(100 * shares[k]).toFixed(1)} %`));
    });
    byId("outputs").replaceChildren(table);
  }
}
