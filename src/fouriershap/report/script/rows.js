// The table of rows: searched, sorted, turned page by page.

const PAGE = 10;
const MOST_COLUMNS = 12;

/** The searchable table; a row is shown, or compared with the one that is shown. */
class RowTable {
  constructor(report, { onChoose, onCompare }) {
    Object.assign(this, { report, onChoose, onCompare });
    this.columns = report.inputRanking().slice(0, MOST_COLUMNS);
    this.sortBy = null;
    this.page = 0;
    byId("search").addEventListener("input", () => this.find());
    byId("previous").addEventListener("click", () => this.turn(-1));
    byId("next").addEventListener("click", () => this.turn(1));
    byId("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#findId(byId("find-id").value.trim());
    });
    this.find();
  }

  /** The searchable text of a row, made at the first search. */
  #searchText(row) {
    this.texts ??= [];
    const { report } = this;
    this.texts[row] ??= [report.rowName(row), ...report.data.inputs.map((_, i) => report.text(i, report.value(row, i)))].join(" ").toLowerCase();
    return this.texts[row];
  }

  /** Show the row of that name, or else the first whose name begins with it. */
  #findId(wanted) {
    if (!wanted) return;
    const { report } = this;
    const names = Array.from({ length: report.nRows }, (_, r) => report.rowName(r));
    const exact = names.indexOf(wanted);
    const lower = wanted.toLowerCase();
    const row = exact >= 0 ? exact : names.findIndex((name) => name.toLowerCase().startsWith(lower));
    const sampled = report.nRows < report.data.n_rows ? ` among the ${count(report.nRows, "row")} of this page` : "";
    byId("find-answer").textContent = row < 0 ? `There is no row “${shorten(wanted)}”${sampled}.` : "";
    if (row < 0) return;
    byId("search").value = "";
    this.find(row);
    this.onChoose(row);
  }

  /** Show more rows; search and page stay. */
  grow() {
    const { page } = this;
    this.find();
    this.turn(page - this.page);
  }

  /** Search, and turn to the first page, or to that of a row. */
  find(row = null) {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = Array.from({ length: this.report.nRows }, (_, r) => r);
    this.found = words.length ? rows.filter((r) => words.every((word) => this.#searchText(r).includes(word))) : rows;
    this.sort();
    this.turn((row === null ? 0 : Math.floor(this.found.indexOf(row) / PAGE)) - this.page);
  }

  sort() {
    const { report } = this;
    if (this.sortBy) {
      const { column, sign } = this.sortBy;
      const key = column < 0 ? (r) => report.stored(r).prediction(report.output) : (r) => report.value(r, column);
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
    line.append(element("th", this.report.data.has_ids ? "id" : "row", { scope: "col" }));
    if (this.report.nRows > 1) line.append(element("td"));
    for (const column of [-1, ...this.columns]) {
      const name = column < 0 ? this.report.heading() : this.report.data.inputs[column].name;
      const sorted = this.sortBy?.column === column ? this.sortBy.sign : 0;
      const head = element("th", "", { scope: "col", "aria-sort": sorted ? (sorted > 0 ? "ascending" : "descending") : "none" });
      const mark = sorted ? (sorted > 0 ? " ↑" : " ↓") : "";
      const button = head.appendChild(element("button", "", { type: "button", "data-key": `sort ${column}` }));
      writeName(button, shorten(name) + mark);
      button.addEventListener("click", () => {
        this.sortBy = { column, sign: sorted > 0 ? -1 : 1 };
        this.sort();
      });
      line.append(head);
      if (column < 0 && this.report.data.actual) line.append(element("th", "observed", { scope: "col" }));
    }
    return line;
  }

  /** Keep the keyboard focus, though the buttons are new ones. */
  #focus(table, key) {
    const find = (wanted) => table.querySelector(`button[data-key="${wanted}"]`);
    (find(key) ?? find(key.replace("compare", "show")))?.focus({ preventScroll: true });
  }

  #compareCell(row) {
    const { report } = this;
    const cell = element("td");
    if (row === report.row) return cell;
    const name = shorten(report.rowName(row));
    const button = cell.appendChild(element("button", "compare", { type: "button", "aria-label": `Compare with row ${name}`, "aria-pressed": String(row === report.other), "data-key": `compare ${row}` }));
    button.addEventListener("click", () => this.onCompare(row === report.other ? null : row));
    return cell;
  }

  draw() {
    const { report } = this;
    const nPages = Math.max(1, Math.ceil(this.found.length / PAGE));
    this.page = Math.min(Math.max(this.page, 0), nPages - 1);
    const table = byId("row-table");
    const focused = table.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    table.tHead.replaceChildren(this.#header());
    const lines = this.found.slice(this.page * PAGE, (this.page + 1) * PAGE).map((row) => {
      const line = element("tr", "", row === report.row ? { class: "chosen", "aria-current": "true" } : {});
      const button = element("button", shorten(report.rowName(row)), { type: "button", "aria-label": `Show row ${shorten(report.rowName(row))}`, "data-key": `show ${row}` });
      button.addEventListener("click", () => this.onChoose(row));
      line.append(element("td"));
      line.firstChild.append(button);
      if (report.nRows > 1) line.append(this.#compareCell(row));
      line.append(element("td", format(report.stored(row).prediction(report.output))));
      if (report.data.actual) line.append(element("td", shorten(report.actualText(row))));
      for (const column of this.columns) {
        const value = report.value(row, column);
        const text = report.text(column, value);
        line.append(element("td", shorten(text), Number.isNaN(value) ? { class: "missing" } : {}));
      }
      return line;
    });
    table.tBodies[0].replaceChildren(...lines);
    if (focused) this.#focus(table, focused);
    const hidden = report.data.inputs.length - this.columns.length;
    const more = report.isWhole ? "" : `, ${(report.data.n_held - report.nRows).toLocaleString("en")} more are loading`;
    byId("found").textContent = `${count(this.found.length, "row")}${more}${hidden > 0 ? `; ${hidden} more columns, which are searched as well` : ""}`;
    byId("page-text").textContent = `page ${this.page + 1} of ${nPages.toLocaleString("en")}`;
    byId("previous").disabled = this.page === 0;
    byId("next").disabled = this.page === nPages - 1;
  }
}
