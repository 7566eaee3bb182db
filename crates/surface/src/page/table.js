// Sortable tables with a filter, CSV, and keys: arrows move between cells, Enter opens.

import { el, object, put } from "./dom.js";

/** Rows that are drawn at first; more follow on request. */
const DRAWN = 300;

const text = (value) => (value === null || value === undefined ? "" : Array.isArray(value) ? value.map(text).join(" ") : typeof value === "object" ? Object.entries(value).map(([key, of]) => `${key} ${text(of)}`).join(", ") : String(value));

export function csv(columns, rows) {
  const quoted = (value) => {
    let shown = text(value);
    // A spreadsheet would run such a text as a formula.
    if (/^[=+\-@\t]/.test(shown) && Number.isNaN(Number(shown))) shown = "'" + shown;
    return /[",\n\r]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
  };
  return [columns, ...rows.map((row) => columns.map((column) => row[column]))].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

export function download(name, kind, content) {
  const url = URL.createObjectURL(new Blob([content], { type: kind }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const slug = (title) => title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");

/** Reads the order and the filter of a table from the address of the page. */
function kept(title, state) {
  const params = new URLSearchParams(location.search);
  const sort = params.get(`sort.${slug(title)}`);
  if (sort && state.by === undefined) [state.by, state.down] = [sort.replace(/^-/, ""), sort.startsWith("-")];
  state.page ??= Math.max(Number.parseInt(params.get(`page.${slug(title)}`) ?? "1", 10) || 1, 1) - 1;
  state.filter ??= params.get(`filter.${slug(title)}`) ?? "";
  return state;
}

/** Keeps the order and the filter of a table in the address of the page. */
function keep(title, state) {
  const params = new URLSearchParams(location.search);
  const set = (name, value) => (value ? params.set(name, value) : params.delete(name));
  set(`sort.${slug(title)}`, state.by && `${state.down ? "-" : ""}${state.by}`);
  set(`filter.${slug(title)}`, state.filter);
  set(`page.${slug(title)}`, state.page ? String(state.page + 1) : "");
  history.replaceState(null, "", "?" + params);
}

/**
 * @param {string} title caption and name of the file
 * @param {string[]} columns
 * @param {object[]} rows
 * @param {{links?: string[], classes?: (row: object) => string, open?: (row: object) => void, state?: object, paged?: number}} options
 */
export function table(title, columns, rows, options = {}) {
  const links = new Set(options.links ?? []);
  const state = kept(title, options.state ?? {});
  // Pages of `options.paged` rows, or the first rows and those that the reader asks for.
  const size = options.paged;
  let drawn = size ?? DRAWN;
  const body = el("tbody");
  const count = el("span", { class: "soft" });
  const more = el("button", { type: "button", click: () => { drawn += 10 * DRAWN; draw(); } }, "Show more rows");
  const turn = (by) => { state.page += by; keep(title, state); draw(); };
  const back = el("button", { type: "button", click: () => turn(-1) }, "Previous page");
  const forward = el("button", { type: "button", click: () => turn(1) }, "Next page");
  const filter = el("input", { type: "search", value: state.filter ?? "", "aria-label": `Filter of ${title}`, input: () => { state.filter = filter.value; state.page = 0; keep(title, state); draw(); } });
  const heads = columns.map((column) => el("th", { scope: "col" }, el("button", { type: "button", click: () => {
    state.down = state.by === column ? !state.down : false;
    state.by = column;
    keep(title, state);
    draw();
  } }, column.replaceAll("_", " "))));
  const grid = el("table", { role: "grid", "aria-label": title, keydown: (event) => keys(event, grid) }, el("thead", {}, el("tr", {}, heads)), body);

  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : text(a).localeCompare(text(b), "en", { numeric: true }));
  const chosen = () => {
    const wanted = filter.value.toLowerCase();
    let found = wanted ? rows.filter((row) => columns.some((column) => text(row[column]).toLowerCase().includes(wanted))) : rows;
    if (state.by) found = [...found].sort((a, b) => compare(a[state.by], b[state.by]) * (state.down ? -1 : 1));
    return found;
  };
  function draw() {
    const found = chosen();
    heads.forEach((head, i) => {
      if (columns[i] === state.by) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const focused = body.contains(document.activeElement) ? cellPlace(document.activeElement) : null;
    const pages = size ? Math.max(Math.ceil(found.length / size), 1) : 1;
    state.page = size ? Math.min(Math.max(state.page, 0), pages - 1) : 0;
    const first = size ? state.page * size : 0;
    put(body, ...found.slice(first, first + drawn).map((row, r) => el("tr", {}, columns.map((column, c) => {
      const value = row[column];
      const shown = text(value);
      const content = links.has(column) && shown ? object(shown) : shown;
      return el("td", { tabindex: r === 0 && c === 0 ? 0 : -1, class: [typeof value === "number" ? "n" : "", options.classes?.(row, column) ?? ""].join(" ").trim() || null }, content);
    }))));
    count.textContent = found.length === rows.length ? `${rows.length} rows` : `${found.length} of ${rows.length} rows`;
    if (size) count.textContent += `, page ${state.page + 1} of ${pages}`;
    more.hidden = size !== undefined || found.length <= drawn;
    back.hidden = forward.hidden = size === undefined || pages === 1;
    back.disabled = state.page === 0;
    forward.disabled = state.page === pages - 1;
    if (focused) body.rows[focused.row]?.cells[focused.cell]?.focus();
  }
  draw();
  const bar = el("div", { class: "bar" }, el("label", {}, "Filter ", filter), count, el("button", { type: "button", click: () => download(`${title.replaceAll(/[^\w.-]+/g, "-")}.csv`, "text/csv", csv(columns, chosen())) }, "CSV"), back, forward, more);
  const node = el("div", {}, bar, el("div", { class: "scroll" }, grid));
  node.update = (next) => { rows = next; draw(); };
  return node;
}

function cellPlace(node) {
  const cell = node.closest("td");
  return cell ? { row: cell.parentNode.sectionRowIndex, cell: cell.cellIndex } : null;
}

/** Arrow keys of the grid pattern. */
function keys(event, grid) {
  const place = cellPlace(event.target);
  if (!place) return;
  const rows = grid.tBodies[0].rows;
  const { key } = event;
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageDown: [15, 0], PageUp: [-15, 0], Home: [0, -1000], End: [0, 1000] };
  if (key === "Enter" && event.target.tagName === "TD") {
    const link = event.target.querySelector("a") ?? event.target.parentNode.querySelector("a");
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (!moves[key]) return;
  event.preventDefault();
  const row = Math.min(Math.max(place.row + moves[key][0], 0), rows.length - 1);
  const cell = Math.min(Math.max(place.cell + moves[key][1], 0), rows[row].cells.length - 1);
  event.target.closest("td").tabIndex = -1;
  rows[row].cells[cell].tabIndex = 0;
  rows[row].cells[cell].focus();
}
