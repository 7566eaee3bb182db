// A finished run: the map over time, faults on the slider, charts, two runs side by side, the results
// of all objects, and one object with its two hops.

import { get } from "./api.js";
import { el, put, section, short, svg } from "./dom.js";
import { Map2d } from "./map.js";
import { csv, download, table } from "./table.js";
import { hops, linksOf } from "./views.js";

const seconds = (value) => `${Number(value.toPrecision(6))} s`;

/** Series of all links of a run. Files of older runs have none of Ethernet and InfiniBand. */
const linesOf = (run) => [...run.series.links, ...(run.series.plane_links ?? [])];

/** A chart of one or two series. A line marks the time of the slider, and another one the pointer. */
function chart(title, series, at, interval) {
  const most = Math.max(1e-9, ...series.flatMap((values) => values));
  const steps = Math.max(2, ...series.map((values) => values.length));
  const x = (step) => (step * 600) / (steps - 1);
  const path = (values) => values.map((value, i) => `${i ? "L" : "M"}${x(i)} ${80 - (value * 70) / most}`).join(" ");
  const values = (step) => series.map((of) => short(of[step] ?? 0)).join(" and ");
  const upright = (step, attributes) => svg("path", { d: `M${x(step)} 5 V85`, stroke: "currentColor", ...attributes });
  const pointer = upright(0, { class: "pointer", "stroke-dasharray": "3 3", visibility: "hidden" });
  const reading = el("span", { class: "soft" });
  const move = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const step = Math.min(Math.max(Math.round(((event.clientX - box.left) / (box.width || 1)) * (steps - 1)), 0), steps - 1);
    pointer.setAttribute("d", `M${x(step)} 5 V85`);
    pointer.setAttribute("visibility", "visible");
    reading.textContent = ` – ${values(step)} at ${seconds(step * interval)}`;
  };
  const leave = () => { pointer.setAttribute("visibility", "hidden"); reading.textContent = ""; };
  const names = series.length > 1 ? ["first", "second"] : ["value"];
  const rows = () => Array.from({ length: Math.max(...series.map((of) => of.length)) }, (_, step) => ({ at_s: step * interval, ...Object.fromEntries(series.map((of, i) => [names[i], of[step] ?? ""])) }));
  const save = el("button", { type: "button", "aria-label": `CSV of ${title}`, click: () => download(`${title.replaceAll(/[^\w.-]+/g, "-")}.csv`, "text/csv", csv(["at_s", ...names], rows())) }, "CSV");
  const drawing = svg("svg", { class: "spark", viewBox: "0 0 600 90", preserveAspectRatio: "none", role: "img", "aria-label": `${title} over time`, pointermove: move, pointerleave: leave }, series.map((of, i) => svg("path", { class: "ab"[i], d: path(of) })), upright(at), pointer);
  const axis = el("div", { class: "axis soft" }, el("span", {}, seconds(0)), el("span", {}, seconds((steps - 1) * interval)));
  return el("figure", {}, el("figcaption", {}, `${title}: ${values(at)}; highest ${short(most)}`, reading, " ", save), drawing, axis);
}

/** Lists of the results, by their titles. */
const LISTS = { Hosts: "hosts", Workloads: "streams", "Storage systems": "storage", Switches: "switches", Links: "links", Ports: "ports", Loops: "loops", "Ethernet switches": "ethernet_switches", "Ethernet links": "ethernet_links", "iSCSI sessions": "iscsi_sessions", "FCIP links": "fcip_links", "InfiniBand links": "infiniband_links", "SRP channels": "srp_channels" };

/** A row with the numbers and texts of an object of the results, two levels deep. */
function flat(object, before = "", depth = 2) {
  return Object.entries(object).flatMap(([key, value]) => {
    if (Array.isArray(value)) return value.length <= 8 && value.every((one) => typeof one !== "object") ? [[before + key, value.join(" ")]] : [];
    if (value === null || typeof value !== "object") return [[before + key, value]];
    return depth > 0 ? flat(value, `${before}${key}.`, depth - 1) : [];
  });
}

/** Tables of the lists of a run, with the rows that `keep` chooses. */
function lists(run, keep = () => true, before = "") {
  return Object.entries(LISTS).flatMap(([title, list]) => {
    const rows = (run[list] ?? []).filter(keep).map((row) => Object.fromEntries(flat(row)));
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    return rows.length ? [section(before + title, table(before + title, columns, rows, { links: ["name", "node", "host", "storage", "switch", "link", "from", "to"] }))] : [];
  });
}

const numbered = (runs, at) => (runs.length > 1 ? ["First run: ", "Second run: "][at] : "");

/** Loads the runs, and draws what depends on them. */
function loaded(app, title, draw) {
  const place = el("div", {}, section(title, el("p", { class: "note" }, "Loading")));
  const load = async () => {
    app.runs ??= [await get("results/0"), await get("results/1").catch(() => null)].filter(Boolean);
    return draw(app.runs);
  };
  load().then((shown) => put(place, ...shown)).catch((error) => put(place, section(title, el("p", { class: "error", role: "alert" }, error.message))));
  return place;
}

/** All numbers of a run. */
export const results = (app) => loaded(app, "Results", (runs) => runs.flatMap((run, at) => lists(run, undefined, numbered(runs, at))));

/** Whether a text names an object, one of its ports, or one direction of it. */
const names = (text, name) => typeof text === "string" && (text === name || text.startsWith(`${name}:`) || text.startsWith(`${name}.`));
const related = (name) => (row) => Object.values(row).some((value) => (Array.isArray(value) ? value.some((one) => names(one, name)) : names(value, name)));
const mentions = (text, name) => new RegExp(`(^|[^\\w.-])${name.replaceAll(/[^\w]/g, "\\$&")}($|[^\\w-])`).test(text);

/** One node, port or link of a run with its two hops. */
export function objectOfRun(app) {
  // A direction of a link belongs to its link.
  const name = (app.params().get("name") ?? "").replace(/\.(forward|backward)$/, "");
  return loaded(app, name || "Object", (runs) => {
    const [run] = runs;
    const node = name.includes(":") ? name.slice(0, name.lastIndexOf(":")) : name;
    const shape = app.graph.shapes.find((of) => of.label === node || of.members?.includes(node));
    const links = app.graph.links.filter((link) => link.name === name || link.ends.includes(name));
    const near = links.length ? links : linksOf(app.graph, node);
    const found = runs.map((of, at) => lists(of, related(name), numbered(runs, at)));
    if (!shape && !links.length && !found.flat().length) return [section(name || "Object", el("p", { class: "error" }, "The run has no node, port or link of this name."))];
    const { interval_s: interval, steps } = run.series;
    const at = Math.min(Math.max(Math.round(Number(app.params().get("t") ?? 0) / (interval || 1)), 0), Math.max(0, steps - 1));
    const drawn = near.slice(0, 8).flatMap((link) => {
      const both = linesOf(run).filter((one) => one.name.replace(/\.(forward|backward)$/, "") === link.name);
      return both.length ? [chart(`Utilisation of ${link.name}${both.length > 1 ? `, ${both[0].from} to ${both[0].to} (solid) and back (dashed)` : ""}`, both.slice(0, 2).map((one) => one.utilisation), at, interval)] : [];
    });
    const events = run.events.filter((event) => mentions(event.what, name));
    return [
      section(shape && node === name ? `${shape.kind} ${name}` : name, el("p", { class: "note" }, shape ? shape.tooltip : near.map((link) => `${link.ends.join(" – ")}, ${link.rate}`).join("; ")), shape?.members && shape.label === node ? null : shape ? hops(app, node) : null),
      drawn.length ? section("Links over time", el("div", { class: "charts" }, drawn), near.length > 8 ? el("p", { class: "note" }, `${near.length - 8} more links are in the table of links.`) : null) : null,
      ...found.flat(),
      section("Events of the object", events.length ? table("Events of the object", ["at_s", "what", "kind"], events.map((event) => ({ at_s: event.at_s, what: event.what, kind: event.kind }))) : el("p", { class: "note" }, "No event names it.")),
    ];
  });
}

/** A run over time, beside another one. */
export const finished = (app) => loaded(app, "Run", (runs) => overview(app, runs));

function overview(app, [run, other]) {
  const series = run.series;
  const steps = Math.max(1, series.steps);
  let step = Math.min(Math.max(Math.round(Number(app.params().get("t") ?? 0) / (series.interval_s || 1)), 0), steps - 1);
  const links = new Map();
  for (const one of linesOf(run)) {
    const name = one.name.replace(/\.(forward|backward)$/, "");
    links.set(name, [...(links.get(name) ?? []), one]);
  }
  // Links without a series show the whole run.
  const whole = new Map([...(run.ethernet_links ?? []), ...(run.infiniband_links ?? [])].map((link) => [link.name, Math.max(link.forward.utilisation, link.backward.utilisation)]));
  const heat = (link) => { const both = links.get(link.name); return both ? Math.max(...both.map((one) => one.utilisation[step] ?? 0)) : whole.get(link.name) ?? null; };
  const map = new Map2d({ graph: app.graph, store: null, place: app.params().get("map"), open: app.open, moved: (of) => app.set({ map: of }), heat });
  const label = el("output", { id: "time" });
  const slider = el("input", { id: "slider", type: "range", min: 0, max: steps - 1, step: 1, "aria-label": "Time of the run", input: () => move(Number(slider.value)) });
  const charts = el("div", { class: "charts" });
  const busy = el("div");
  const end = steps * series.interval_s || 1;
  const faults = el("div", { class: "faults", role: "group", "aria-label": "Faults" }, run.faults.map((fault) => {
    const mark = el("button", { type: "button", title: `${fault.what} at ${seconds(fault.at_s)}`, "aria-label": `${fault.what} at ${seconds(fault.at_s)}`, click: () => move(Math.min(Math.floor(fault.at_s / series.interval_s), steps - 1)) }, "⚡");
    mark.style.left = `${Math.min(Math.max((100 * fault.at_s) / end, 0), 100)}%`;
    return mark;
  }));
  const columns = ["link", "from", "to", "utilisation", "waiting_for_credit"];
  const rows = () => linesOf(run).map((one) => ({ link: one.name, from: one.from, to: one.to, utilisation: one.utilisation[step] ?? 0, waiting_for_credit: one.credit_wait_fraction?.[step] ?? "" })).sort((a, b) => b.utilisation - a.utilisation);
  const grid = table("Links at this time", columns, rows(), { links: ["link", "from", "to"] });
  busy.append(grid);
  function draw() {
    slider.value = String(step);
    const active = run.faults.filter((fault) => fault.at_s <= (step + 1) * series.interval_s && (fault.until_s ?? fault.at_s + series.interval_s) >= step * series.interval_s);
    label.textContent = `${seconds(step * series.interval_s)} of ${seconds(end)}${active.length ? ` – ${active.map((fault) => fault.what).join(", ")}` : ""}`;
    const pair = (of) => [of(run), ...(other ? [of(other)] : [])];
    put(charts, chart("Throughput in bytes per second", pair((of) => of.series.total.throughput_bytes_per_s), step, series.interval_s), chart("Requests per second", pair((of) => of.series.total.iops), step, series.interval_s), chart("Mean response time in µs", pair((of) => of.series.total.latency_mean_us), step, series.interval_s), chart("Frames dropped", pair((of) => of.series.total.frames_dropped), step, series.interval_s));
    map.marked = new Set(active.flatMap((fault) => [fault.node]).filter(Boolean));
    map.draw();
    grid.update(rows());
  }
  function move(to) {
    step = to;
    app.set({ t: String(step * series.interval_s) });
    draw();
  }
  draw();
  const facts = [["Throughput in bytes per second", (of) => of.totals.throughput_bytes_per_s], ["Requests per second", (of) => of.totals.iops], ["Mean response time in µs", (of) => of.totals.latency?.mean_us], ["99th percentile in µs", (of) => of.totals.latency?.p99_us], ["Failed requests", (of) => of.totals.ios_failed], ["Expectations that failed", (of) => of.expectations.filter((one) => !one.ok).length], ["Findings", (of) => of.findings.length]];
  const compared = facts.map(([number, of]) => {
    const [first, second] = [of(run) ?? 0, other ? of(other) ?? 0 : undefined];
    return { number, first, ...(other ? { second, change: first ? `${(((second - first) / Math.abs(first)) * 100).toFixed(1)} %` : "" } : {}) };
  });
  const names = [run, other].filter(Boolean).map((of) => `${of.lab.name}, seed ${of.lab.seed}`);
  return [
    section(other ? `Two runs: ${names.join(" (solid) and ")} (dashed)` : `Run of ${names[0]}`, el("div", { class: "slider" }, slider, faults), el("p", {}, "Time ", label), charts),
    el("div", { class: "beside" }, section("Map", el("p", { class: "note" }, "Redder and thicker links are busier."), map.canvas), section(other ? "Comparison" : "Totals", table("Totals", Object.keys(compared[0]), compared))),
    section("Links at this time", busy),
    section("Findings", run.findings.length ? el("ul", {}, run.findings.map((finding) => el("li", {}, el("strong", {}, finding.title), ` ${finding.detail} ${finding.remedy}`))) : el("p", { class: "note" }, "The run has no findings.")),
    section("Events", table("Events of the run", ["at_s", "what", "kind"], run.events.map((event) => ({ at_s: event.at_s, what: event.what, kind: event.kind })), { paged: 100 })),
  ];
}
