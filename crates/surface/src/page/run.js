// A finished run: the map over time, faults on the slider, charts, and two runs side by side.

import { get } from "./api.js";
import { el, put, section, short, svg } from "./dom.js";
import { Map2d } from "./map.js";
import { table } from "./table.js";

const seconds = (value) => `${Number(value.toPrecision(6))} s`;

/** A chart of one or two series with a cursor. */
function chart(title, series, at) {
  const most = Math.max(1e-9, ...series.flatMap((values) => values));
  const steps = Math.max(2, ...series.map((values) => values.length));
  const path = (values) => values.map((value, i) => `${i ? "L" : "M"}${(i * 600) / (steps - 1)} ${80 - (value * 70) / most}`).join(" ");
  const cursor = svg("path", { d: `M${(at * 600) / (steps - 1)} 5 V85`, stroke: "currentColor" });
  const now = series.map((values) => short(values[at] ?? 0)).join(" and ");
  const node = el("figure", {}, el("figcaption", {}, `${title}: ${now}; highest ${short(most)}`), svg("svg", { class: "spark", viewBox: "0 0 600 90", preserveAspectRatio: "none", role: "img", "aria-label": `${title} over time` }, series.map((values, i) => svg("path", { class: "ab"[i], d: path(values) })), cursor));
  return node;
}

export function finished(app) {
  const place = el("div", {}, section("Run", el("p", { class: "note" }, "Loading")));
  load(app).then((shown) => put(place, ...shown)).catch((error) => put(place, section("Run", el("p", { class: "error", role: "alert" }, error.message))));
  return place;
}

async function load(app) {
  app.runs ??= [await get("results/0"), await get("results/1").catch(() => null)].filter(Boolean);
  const [run, other] = app.runs;
  const series = run.series;
  const steps = Math.max(1, series.steps);
  let step = Math.min(Math.max(Math.round(Number(app.params().get("t") ?? 0) / (series.interval_s || 1)), 0), steps - 1);
  const links = new Map();
  for (const one of series.links) {
    const name = one.name.replace(/\.(forward|backward)$/, "");
    links.set(name, [...(links.get(name) ?? []), one]);
  }
  const heat = (link) => { const both = links.get(link.name); return both ? Math.max(...both.map((one) => one.utilisation[step] ?? 0)) : null; };
  const map = new Map2d({ graph: app.graph, store: null, place: app.params().get("map"), open: (name) => app.set({ name }) ?? draw(), moved: (of) => app.set({ map: of }), heat });
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
  const rows = () => series.links.map((one) => ({ link: one.name, from: one.from, to: one.to, utilisation: one.utilisation[step] ?? 0, waiting_for_credit: one.credit_wait_fraction[step] ?? 0 })).sort((a, b) => b.utilisation - a.utilisation);
  const grid = table("Links at this time", columns, rows(), { state: {} });
  busy.append(grid);
  function draw() {
    slider.value = String(step);
    const active = run.faults.filter((fault) => fault.at_s <= (step + 1) * series.interval_s && (fault.until_s ?? fault.at_s + series.interval_s) >= step * series.interval_s);
    label.textContent = `${seconds(step * series.interval_s)} of ${seconds(end)}${active.length ? ` – ${active.map((fault) => fault.what).join(", ")}` : ""}`;
    const pair = (of) => [of(run), ...(other ? [of(other)] : [])];
    put(charts, chart("Throughput in bytes per second", pair((of) => of.series.total.throughput_bytes_per_s), step), chart("Requests per second", pair((of) => of.series.total.iops), step), chart("Mean response time in µs", pair((of) => of.series.total.latency_mean_us), step), chart("Frames dropped", pair((of) => of.series.total.frames_dropped), step));
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
    section("Events", table("Events of the run", ["at_s", "what", "kind"], run.events.map((event) => ({ at_s: event.at_s, what: event.what, kind: event.kind })))),
  ];
}
