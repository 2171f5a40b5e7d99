// A row that the reader changes, explained again at every change.

const KINDS = { tables: Tables, leaves: Leaves, products: Products, linear: Linear };

/** What explains rows: the sum of its parts. */
async function whatIfOf(parts) {
  const made = await Promise.all(parts.map(async (part) => new KINDS[part.kind](part, await unpackAll(part.arrays))));
  return { explain: (row) => made.map((part) => part.explain(row)).reduce((a, b) => a.map((value, i) => value + b[i])) };
}

/** The controls of one input. `show` sets their value; `onChange` gets the reader's. */
class Control {
  constructor(input, index, onChange) {
    this.input = input;
    this.box = element("div", "", { class: "control" });
    const head = this.box.appendChild(element("div", "", { class: "head" }));
    head.append(writeName(element("label", "", { for: `input-${index}` }), shorten(input.name)));
    this.was = head.appendChild(element("span", "", { class: "was" }));
    this.edit = this.box.appendChild(element("div", "", { class: "edit" }));
    const name = shorten(input.name);
    if (input.labels) this.#choice(index, onChange);
    else this.#number(index, name, onChange);
  }

  #choice(index, onChange) {
    this.select = this.edit.appendChild(element("select", "", { id: `input-${index}` }));
    this.input.labels.forEach((label, k) => this.select.append(element("option", shorten(label), { value: k })));
    if (this.input.missing) this.select.append(element("option", MISSING, { value: "" }));
    this.select.addEventListener("input", () => onChange(this.select.value === "" ? NaN : Number(this.select.value)));
  }

  #number(index, name, onChange) {
    const { low, high, whole } = this.input;
    const limits = { min: low, max: high, step: whole ? 1 : "any" };
    this.range = this.edit.appendChild(element("input", "", { type: "range", "aria-label": `${name}, slider`, ...limits }));
    this.field = this.edit.appendChild(element("input", "", { type: "number", id: `input-${index}`, step: "any" }));
    this.range.addEventListener("input", () => {
      const value = Number(Number(this.range.value).toPrecision(6)); // use the value that is shown
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
    this.was.textContent = `row: ${shorten(text)}`;
    const missing = Number.isNaN(value);
    if (this.select) {
      this.select.value = missing ? "" : String(value);
      return;
    }
    this.field.value = missing ? "" : plain(value);
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
    this.#scale();
    this.start();
  }

  /** Say that values here are those of the raw output, if the page explains another one. */
  #scale() {
    const { data } = this.report;
    if (!data.first_raw) return;
    const [shown, raw] = [data.outputs[0].label, data.outputs[data.first_raw].label].map((label) => shorten(label));
    byId("what-if-scale").hidden = false;
    byId("what-if-scale").textContent = `The values here are those of the ${raw}, not of the ${shown} that the rest of the page explains. The prediction of the changed row is given on both scales.`;
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
    const output = report.rawOutput();
    const shap = report.explain(report.edited);
    const changed = new Set();
    this.controls.forEach(({ box, input }, i) => {
      const differs = !Object.is(report.edited[i], rowValues[i]);
      box.classList.toggle("changed", differs);
      if (differs) changed.add(input.player);
    });
    const players = playersToDraw(playersBySize(report, [rowShap, output]), changed);
    const before = waterfallSteps(report, rowShap, output, rowValues, players);
    const after = waterfallSteps(report, shap, output, report.edited, players, changed);
    const range = stepRange(before, after);
    this.edited.draw(changed.size ? "Changed" : "Unchanged", after, range);
    this.original.draw(`Row ${shorten(report.rowName(report.row))} as it is`, before, range);
    this.#answer(shap, output);
    if (report.nRaw > 1) this.#outputs(shap);
  }

  #answer(shap, output) {
    const { report, rowShap } = this;
    const [now, was] = [shap.prediction(output), rowShap.prediction(output)];
    const strong = element("strong");
    strong.append(element("data", format(now), { value: now }));
    const label = shorten(report.label(output));
    const said = (values) => {
      const response = values.response(output - report.data.first_raw);
      return response === null ? "" : `, ${report.responseText(response)}`;
    };
    const change = now === was ? "" : `; as it is ${report.amount(was, output)}${said(rowShap)} (${report.amount(now - was, output, true)})`;
    byId("answer").replaceChildren(`${label[0].toUpperCase()}${label.slice(1)} `, strong, ` ${report.unit(output)}`.trimEnd(), said(shap), change);
  }

  /** All outputs of the changed row beside those of the row as it is. */
  #outputs(shap) {
    const { report } = this;
    const shares = report.data.link === "softmax";
    const first = report.data.first_raw;
    const table = element("table");
    const lines = Array.from({ length: report.nRaw }, (_, k) => [
      report.label(first + k),
      shap.prediction(first + k),
      this.rowShap.prediction(first + k),
      ...(shares ? [percent(shap.response(k))] : []),
    ]);
    fillTable(table, ["output", "prediction", "as it is", ...(shares ? ["softmax"] : [])], lines);
    table.tBodies[0].rows[report.rawOutput() - first].className = "chosen";
    byId("outputs").replaceChildren(table);
  }
}
