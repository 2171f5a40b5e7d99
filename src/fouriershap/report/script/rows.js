// The table of rows: searched, sorted, turned page by page.

const PAGE = 10;
const MOST_COLUMNS = 12;

/** The searchable table. */
class RowTable {
  constructor(report, onChoose) {
    Object.assign(this, { report, onChoose });
    this.columns = report.inputRanking().slice(0, MOST_COLUMNS);
    this.sortBy = null;
    this.page = 0;
    byId("search").addEventListener("input", () => this.find());
    byId("previous").addEventListener("click", () => this.turn(-1));
    byId("next").addEventListener("click", () => this.turn(1));
    this.find();
  }

  /** All that can be found of a row, in lower case; made when it is first searched. */
  #searchText(row) {
    this.texts ??= [];
    const { report } = this;
    this.texts[row] ??= [report.rowName(row), ...report.data.inputs.map((_, i) => report.text(i, report.value(row, i)))].join(" ").toLowerCase();
    return this.texts[row];
  }

  find() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = Array.from({ length: this.report.nRows }, (_, r) => r);
    this.found = words.length ? rows.filter((r) => words.every((word) => this.#searchText(r).includes(word))) : rows;
    this.page = 0;
    this.sort();
  }

  sort() {
    const { report } = this;
    if (this.sortBy) {
      const { column, sign } = this.sortBy;
      const key = column < 0 ? (r) => report.prediction(report.stored(r)) : (r) => report.value(r, column);
      const keys = new Map(this.found.map((r) => [r, Number.isNaN(key(r)) ? Infinity : sign * key(r)]));
      this.found.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
    }
    this.draw();
  }

  turn(step) {
    this.page += step;
    this.draw();
  }

  #header() {
    const line = element("tr");
    line.append(element("th", "row", { scope: "col" }));
    for (const column of [-1, ...this.columns]) {
      const name = column < 0 ? "prediction" : this.report.data.inputs[column].name;
      const sorted = this.sortBy?.column === column ? this.sortBy.sign : 0;
      const head = element("th", "", { scope: "col", "aria-sort": sorted ? (sorted > 0 ? "ascending" : "descending") : "none" });
      const mark = sorted ? (sorted > 0 ? " ↑" : " ↓") : "";
      const button = head.appendChild(element("button", shorten(name, 40) + mark, { type: "button", title: shorten(name, 300) }));
      button.addEventListener("click", () => {
        this.sortBy = { column, sign: sorted > 0 ? -1 : 1 };
        this.sort();
      });
      line.append(head);
    }
    return line;
  }

  draw() {
    const { report } = this;
    const nPages = Math.max(1, Math.ceil(this.found.length / PAGE));
    this.page = Math.min(Math.max(this.page, 0), nPages - 1);
    const table = byId("row-table");
    table.tHead.replaceChildren(this.#header());
    const lines = this.found.slice(this.page * PAGE, (this.page + 1) * PAGE).map((row) => {
      const line = element("tr", "", row === report.row ? { class: "chosen", "aria-current": "true" } : {});
      const button = element("button", shorten(report.rowName(row), 30), { type: "button", "aria-label": `Show row ${shorten(report.rowName(row), 60)}` });
      button.addEventListener("click", () => this.onChoose(row));
      line.append(element("td"), element("td", format(report.prediction(report.stored(row)))));
      line.firstChild.append(button);
      for (const column of this.columns) {
        const value = report.value(row, column);
        const text = report.text(column, value);
        line.append(element("td", shorten(text, 60), Number.isNaN(value) ? { class: "missing" } : { title: shorten(text, 300) }));
      }
      return line;
    });
    table.tBodies[0].replaceChildren(...lines);
    const hidden = report.data.inputs.length - this.columns.length;
    byId("found").textContent = `${this.found.length.toLocaleString("en")} rows${hidden > 0 ? `; ${hidden} more columns, all of them searched` : ""}`;
    byId("page-text").textContent = `page ${this.page + 1} of ${nPages.toLocaleString("en")}`;
    byId("previous").disabled = this.page === 0;
    byId("next").disabled = this.page === nPages - 1;
  }
}
