// Views of a running fabric: overview, tables, events, and one object with its two hops.

import { request, show } from "./api.js";
import { el, object, put, section, short, svg } from "./dom.js";
import { Map2d } from "./map.js";
import { BAD, worse } from "./status.js";
import { table } from "./table.js";

const time = (event) => new Date((event.unix_s ?? 0) * 1000).toISOString().replace("T", " ").slice(0, 19);
const EVENT_COLUMNS = ["time", "severity", "switch", "port", "message", "user", "event", "times"];
/** Severities, the most severe first. */
const SEVERITIES = ["critical", "error", "warning", "info"];

/** Row of an event in a table. */
const eventRow = (event) => ({ time: time(event), severity: event.severity, switch: event.switch, port: event.port, message: event.id, user: event.user, event: event.text, times: event.count });

/** Table of the events that `keep` chooses, newest first. `most`: number of them. */
function eventTable(app, most, keep = () => true, options = {}) {
  const rows = () => app.store.log.filter(keep).slice(-most).reverse().map(eventRow);
  const grid = table("Events", EVENT_COLUMNS, rows(), { links: ["switch", "port"], classes: (row, column) => (column === "severity" && row.severity !== "info" ? (row.severity === "warning" ? "warned" : "down") : ""), ...options });
  app.on("log", () => grid.update(rows()));
  return grid;
}

/** The event log, in pages. The address of the page holds the switch, the least severity and the page. */
export function events(app) {
  const chosen = (name) => app.params().get(name) ?? "";
  const change = (name) => (event) => { app.set({ [name]: event.target.value, "page.events": null }); app.again(); };
  const select = (label, name, options) => el("label", {}, `${label} `, el("select", { name, "aria-label": label, change: change(name) }, options.map(([value, text]) => el("option", { value, selected: value === chosen(name) }, text))));
  const switches = [...new Set([...app.graph.shapes.filter((shape) => shape.kind === "switch").flatMap((shape) => shape.members ?? [shape.label]), chosen("switch")])].filter(Boolean);
  const least = SEVERITIES.indexOf(chosen("severity"));
  const keep = (event) => (!chosen("switch") || event.switch === chosen("switch")) && (least < 0 || SEVERITIES.indexOf(event.severity) <= least);
  const bar = el("div", { class: "bar" }, select("Switch", "switch", [["", "all"], ...switches.map((name) => [name, name])]), select("Severity", "severity", [["", "all"], ...SEVERITIES.slice(0, -1).map((word) => [word, word === "critical" ? word : `${word} or worse`])]));
  return section("Events", el("p", { class: "note" }, "The event log of the fabric, newest first. Times are UTC."), bar, eventTable(app, Infinity, keep, { paged: 100 }));
}

/** Node of a port name such as sw1:3. */
const nodeOf = (port) => port.slice(0, port.lastIndexOf(":"));

/** Links of a shape or node, by its name. */
export function linksOf(graph, name) {
  if (!graph.byNode) {
    graph.byNode = new Map();
    for (const link of graph.links) for (const end of link.ends) {
      const node = nodeOf(end);
      if (!graph.byNode.has(node)) graph.byNode.set(node, []);
      graph.byNode.get(node).push(link);
    }
  }
  return graph.byNode.get(name) ?? [];
}

/** The table that stands beside the map and has the same content. */
function mapTable(app) {
  const rows = () => app.graph.shapes.map((shape) => {
    let worst = "up", up = 0, all = 0;
    for (const name of shape.members ?? [shape.label]) for (const link of linksOf(app.graph, name)) {
      const ends = app.store?.state ? app.store.ends(link) : ["up", "up"];
      const status = worse(ends[0], ends[1]);
      worst = worse(worst, status);
      all += 1;
      if (status === "up") up += 1;
    }
    return { node: shape.label, kind: shape.kind, fabric: app.graph.fabrics[shape.fabric]?.label ?? "", links_up: up, links: all, worst };
  });
  const grid = table("Nodes of the map", ["node", "kind", "fabric", "links_up", "links", "worst"], rows(), { links: ["node"], classes: (row, column) => (column === "worst" ? row.worst : "") });
  app.on("state", () => grid.update(rows()));
  return grid;
}

export function overview(app) {
  const map = new Map2d({ graph: app.graph, store: app.store, place: app.params().get("map"), open: app.open, moved: (place) => app.set({ map: place }) });
  app.on("state", () => map.draw());
  app.on("rates", () => map.draw());
  const bar = el("div", { class: "bar" }, el("button", { type: "button", click: () => map.zoom(1.5) }, "Zoom in"), el("button", { type: "button", click: () => map.zoom(1 / 1.5) }, "Zoom out"), el("button", { type: "button", click: () => { map.fit(); map.settle(); } }, "Show all"), el("span", { class: "note" }, "Marks at the ends of a link: square up, cross down, ring disabled or absent."));
  const worst = () => {
    const { state } = app.store;
    if (!state) return [];
    // Only the first are made into rows: a large fabric has tens of thousands of ports.
    const { rates } = app.store;
    const rank = state.port.map((_, i) => BAD.indexOf(app.store.status(i)) * 1e12 + (rates ? rates.discarded[i] * 1e6 + rates.sent[i] + rates.received[i] : 0));
    const best = [];
    let least = -1;
    for (let i = 0; i < rank.length; i += 1) {
      if (best.length >= 30 && rank[i] <= least) continue;
      const at = best.findIndex((other) => rank[other] < rank[i]);
      best.splice(at < 0 ? best.length : at, 0, i);
      if (best.length > 30) best.pop();
      least = rank[best[best.length - 1]];
    }
    return best.map((i) => ({ port: state.port[i], status: app.store.status(i), link: state.link[i], attached: state.attached[i], frames_per_s: rates ? rates.sent[i] + rates.received[i] : 0, discarded_per_s: rates?.discarded[i] ?? 0 }));
  };
  const links = table("Worst and busiest ports", ["port", "status", "link", "attached", "frames_per_s", "discarded_per_s"], worst(), { links: ["port", "link", "attached"], classes: (row, column) => (column === "status" ? row.status : "") });
  const update = () => links.update(worst());
  app.on("state", update);
  app.on("rates", update);
  return el("div", {}, el("div", { class: "beside" }, section("Map", bar, map.canvas), section("Nodes", mapTable(app))), section("Ports", links), section("Last events", eventTable(app, 50)));
}

const NAMES = { ports: "Ports", luns: "LUNs", groups: "Target port groups", nodes: "Ports of hosts and storage", volumes: "Volumes", paths: "Paths to back ends", sessions: "iSCSI sessions", stats: "Counters of volumes", switch: "Switches", fabric: "ISLs", routes: "Routes", flogi: "Logins", ns: "Name server", fdmi: "Registered adapters", injections: "Injected faults", captures: "Captures", counters: "Counters", links: "Links", ethernet: "Ethernet", connections: "TCP connections", infiniband: "InfiniBand", channels: "SRP channels", zone: "Effective zones" };
const LINKED = ["port", "link", "attached", "neighbour", "switch", "node", "owner", "storage", "host", "of", "to"];

/** Rows of a view: its list, with nested lists opened where a row has one list of objects. */
export function rowsOf(view) {
  const list = Object.values(view).find((value) => Array.isArray(value)) ?? [];
  if (list.length && list.every((row) => Array.isArray(row.isls))) return list.flatMap((row) => row.isls);
  if (list.length && list.every((row) => row.adapter && Array.isArray(row.ports))) {
    return list.flatMap(({ ports, ...row }) => ports.map((port) => ({ ...row, ...port, supported_speeds: (port.supported_speeds ?? []).join(" ") })));
  }
  // Errors of a port are columns of their own.
  const open = ({ errors, ...row }) => ({ ...row, ...errors });
  return list.map(open).map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, key === "credits" ? value.join(" of ") : value])));
}

/** A table of the fabric that reads itself again. `list`: the name of the list, if the view has several. */
export function tableOf(app, which, keep = () => true, on = undefined, list = undefined) {
  const place = el("div", {}, el("p", { class: "note" }, "Loading"));
  const state = {};
  let grid = null;
  const read = async () => {
    try {
      const view = await show(which, on);
      const rows = (list ? view[list] ?? [] : rowsOf(view)).filter(keep);
      const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
      if (!rows.length) { put(place, el("p", { class: "note" }, "This table is empty.")); grid = null; return; }
      if (grid && grid.columns === columns.join()) { grid.update(rows); return; }
      grid = table(`${NAMES[which] ?? which}${list ? ` ${list}` : ""}`, columns, rows, { links: columns.filter((column) => LINKED.includes(column)), state });
      grid.columns = columns.join();
      put(place, grid);
    } catch (error) {
      put(place, el("p", { class: "error" }, error.message));
    }
  };
  read();
  const timer = setInterval(() => { if (!document.hidden && !place.contains(document.activeElement)) read(); }, 5000);
  app.leave.push(() => clearInterval(timer));
  app.on("state", read);
  app.on("changed", read);
  place.read = read;
  return place;
}

export const tables = (...which) => (app) => el("div", {}, which.map((name) => section(NAMES[name], tableOf(app, name))));

/** Links and ports of all networks of a simulation. */
export const planes = (app) => el("div", {}, section("Links", tableOf(app, "links")), section("Ethernet ports", tableOf(app, "ethernet", () => true, undefined, "ports")), section("Ethernet switches", tableOf(app, "ethernet", () => true, undefined, "switches")), ["connections", "infiniband", "channels"].map((name) => section(NAMES[name], tableOf(app, name))));

/** The neighbourhood of an object: its two hops. */
export function hops(app, centre) {
  const MOST = 12;
  const near = (name) => [...new Map(linksOf(app.graph, name).map((link) => [nodeOf(link.ends[0]) === name ? nodeOf(link.ends[1]) : nodeOf(link.ends[0]), link]))];
  const first = near(centre);
  const shownFirst = first.slice(0, MOST);
  const known = new Set([centre, ...first.map(([name]) => name)]);
  const second = [];
  for (const [from] of shownFirst) for (const [name, link] of near(from)) if (!known.has(name)) { known.add(name); second.push([name, link, from]); }
  const shownSecond = second.slice(0, MOST * 2);
  const height = Math.max(shownFirst.length, shownSecond.length, 1) * 30 + 40;
  const place = (at, of) => ((at + 0.5) * (height - 20)) / Math.max(of, 1) + 10;
  const spots = new Map([[centre, [90, height / 2]]]);
  shownFirst.forEach(([name], i) => spots.set(name, [380, place(i, shownFirst.length)]));
  shownSecond.forEach(([name], i) => spots.set(name, [680, place(i, shownSecond.length)]));
  const lines = [];
  const line = (a, b, link) => {
    const [from, into] = [spots.get(a), spots.get(b)];
    const path = svg("path", { d: `M${from[0] + 80} ${from[1]} L${into[0] - 80} ${into[1]}` }, svg("title", {}, link.name));
    lines.push([path, link]);
    return path;
  };
  const drawn = [...shownFirst.map(([name, link]) => line(centre, name, link)), ...shownSecond.map(([name, link, from]) => line(from, name, link))];
  const box = ([name, [x, y]]) => svg("g", { class: name === centre ? "centre" : null }, svg("a", { href: "?" + new URLSearchParams({ view: "object", name }) }, svg("rect", { x: x - 80, y: y - 12, width: 160, height: 24, rx: 5 }), svg("text", { x, y: y + 4, "text-anchor": "middle" }, name.length > 22 ? name.slice(0, 21) + "…" : name)));
  const colours = () => lines.forEach(([path, link]) => {
    const ends = app.store?.state ? app.store.ends(link) : ["up", "up"];
    path.setAttribute("class", ["down", "isolated", "blocked"].includes(worse(...ends)) ? "down" : "");
  });
  colours();
  app.on("state", colours);
  const left = first.length - shownFirst.length + second.length - shownSecond.length;
  return el("div", {}, svg("svg", { class: "hops", viewBox: `0 0 770 ${height}`, role: "group", "aria-label": `Two hops around ${centre}` }, drawn, [...spots].map(box)), left > 0 ? el("p", { class: "note" }, `${left} more nodes are not drawn; the table of links has them.`) : null);
}

function linkTable(app, links) {
  const rows = () => links.map((link) => {
    const ends = app.store.state ? app.store.ends(link) : ["", ""];
    return { link: link.name, first: link.ends[0], status_first: ends[0], second: link.ends[1], status_second: ends[1], rate: link.rate, frames_per_s: app.store.frames(link.ends[0]) ?? app.store.frames(link.ends[1]) ?? 0 };
  });
  const grid = table("Links", ["link", "first", "status_first", "second", "status_second", "rate", "frames_per_s"], rows(), { links: ["link", "first", "second"], classes: (row, column) => (column.startsWith("status") ? row[column] : "") });
  const update = () => grid.update(rows());
  app.on("state", update);
  app.on("rates", update);
  return grid;
}

/** Rates of a port over the last two minutes. */
function spark(app, port) {
  const place = el("div");
  const drawing = () => {
    const i = app.store.portIndex.get(port);
    const history = app.store.history;
    if (i === undefined || history.length < 2) { put(place, el("p", { class: "note" }, "Rates follow in a moment.")); return; }
    const most = Math.max(1, ...history.map((rates) => Math.max(rates.sent[i], rates.received[i])));
    const path = (kind) => history.map((rates, at) => `${at ? "L" : "M"}${(at * 600) / (history.length - 1)} ${80 - (rates[kind][i] * 70) / most}`).join(" ");
    const last = history[history.length - 1];
    put(place, svg("svg", { class: "spark", viewBox: "0 0 600 90", preserveAspectRatio: "none", role: "img", "aria-label": `${last.sent[i]} frames per second sent, ${last.received[i]} received` }, svg("path", { class: "a", d: path("sent") }), svg("path", { class: "b", d: path("received") })), el("p", { class: "note" }, `Sent ${short(last.sent[i])}/s (solid), received ${short(last.received[i])}/s (dashed), discarded ${short(last.discarded[i])}/s; highest ${short(most)}/s in the last ${history.length} s.`));
  };
  drawing();
  app.on("rates", drawing);
  return place;
}

/** A form that sends requests and shows the outcome. */
export function outcome() {
  const node = el("p", { role: "status" });
  node.run = async (work, done) => {
    node.className = "note";
    node.textContent = "Working";
    try { node.textContent = done(await work()); } catch (error) { node.className = "error"; node.textContent = error.message; }
  };
  return node;
}

function portActions(app, port) {
  const result = outcome();
  const may = app.may("operate");
  const enable = (enabled) => result.run(() => request({ request: "port", port, enabled }), () => `${port} is ${enabled ? "enabled" : "disabled"}.`);
  const match = el("input", { value: "type == 0x08", size: 24 });
  const act = el("input", { value: "drop", size: 14 });
  const count = el("input", { type: "number", min: 1, value: 1 });
  const inject = (event) => { event.preventDefault(); result.run(() => request({ request: "inject", port, match: match.value, do: act.value, count: count.value ? Number(count.value) : undefined }), () => "The rule is set; the table of injected faults counts its frames."); };
  return section("Actions", may ? null : el("p", { class: "note" }, "Your role permits no changes."),
    el("div", { class: "bar" }, el("button", { type: "button", disabled: !may, click: () => enable(false) }, "Disable"), el("button", { type: "button", disabled: !may, click: () => enable(true) }, "Enable")),
    el("form", { class: "bar", submit: inject }, el("label", {}, "Inject into frames that match ", match), el("label", {}, "action ", act), el("label", {}, "count ", count), el("button", { disabled: !may }, "Inject"), el("button", { type: "button", disabled: !may, click: () => result.run(() => request({ request: "clear_injections", port }), () => "The rules of the port are removed.") }, "Remove rules")),
    result);
}

/** Ways to the frames of a port or link. */
function capturing(app, of) {
  const may = app.may("operate");
  const capture = `/api/v1/capture/${encodeURIComponent(of)}.pcapng`;
  return section("Capture", el("div", { class: "bar" }, el("button", { type: "button", disabled: !may, click: () => app.go({ view: "packets", port: of }) }, "Packets"), may ? el("a", { href: capture, download: `${of}.pcapng` }, "Capture to a file") : null), el("p", { class: "note" }, "Wireshark shows the frames as they pass:"), el("pre", { tabindex: 0 }, `curl -s ${app.me.open ? "" : `-u ${app.me.user} `}${location.origin}${capture} | wireshark -k -i -`));
}

/** Rows of the table of a network of Ethernet or InfiniBand, which only a simulation has. */
const ofPlane = (app, plane, keep, list = "ports") => section(list === "ports" ? `${NAMES[plane]} ports` : NAMES[plane], tableOf(app, plane, keep, undefined, list));

/** Networks of Ethernet and InfiniBand among some links. */
const planesOf = (links) => ["ethernet", "infiniband"].filter((plane) => links.some((link) => link.plane === plane));

export function objectView(app) {
  const name = app.params().get("name") ?? "";
  if (!app.store.state) {
    app.on("state", () => app.again());
    return section(name, el("p", { class: "note" }, "Loading"));
  }
  const port = (app.store.portIndex.has(name) || app.graph.links.some((link) => link.ends.includes(name))) && name.includes(":");
  const link = app.graph.links.find((of) => of.name === name);
  const node = port ? nodeOf(name) : name;
  const shape = app.graph.shapes.find((of) => of.label === node || of.members?.includes(node));
  if (!port && !link && !shape) return section(name || "Object", el("p", { class: "error" }, "The fabric has no node, port or link of this name."));
  const parts = [];
  if (port) {
    const of = app.graph.links.find((one) => one.ends.includes(name));
    const status = el("p", {});
    const tell = () => {
      const word = app.store.portStatus(name) ?? (of?.plane ? app.store.ends(of)[of.ends[0] === name ? 0 : 1] : undefined);
      status.className = word ?? "note";
      const i = app.store.portIndex.get(name);
      const other = of && of.ends[of.ends[0] === name ? 1 : 0];
      const why = i === undefined ? "" : app.store.state.isolated[i] ?? app.store.state.dark[i] ?? "";
      put(status, word ? `${word}${why ? `: ${why}` : ""}` : "port of a node", " – ", object(node), of ? [" – link ", object(of.name), ", other end ", object(other), ` ${app.store.portStatus(other) ?? ""}`] : null);
    };
    tell();
    app.on("state", tell);
    parts.push(section(`Port ${name}`, status, app.store.portIndex.has(name) ? spark(app, name) : null));
    if (app.store.portIndex.has(name)) parts.push(portActions(app, name), capturing(app, name));
    const own = planesOf(of ? [of] : []);
    if (own.length) {
      parts.push(section("Two hops", hops(app, node)), ...own.map((plane) => ofPlane(app, plane, (row) => row.port === name)));
    } else {
      parts.push(section("Logins at the port", tableOf(app, "flogi", (row) => row.port === name)));
      parts.push(section("Counters of the port", tableOf(app, "ports", (row) => row.port === name)));
    }
  } else if (link) {
    parts.push(section(`Link ${name}`, linkTable(app, [link]), ...link.ends.filter((end) => app.store.portIndex.has(end)).map((end) => el("div", {}, el("h3", {}, object(end)), spark(app, end)))));
    if (planesOf([link]).length) parts.push(section("Two hops", hops(app, nodeOf(link.ends[0]))), ofPlane(app, link.plane, (row) => row.link === name));
    else parts.push(capturing(app, name));
  } else {
    const members = shape.members && shape.label === node ? shape.members : null;
    parts.push(section(members ? shape.label : `${shape.kind} ${node}`, el("p", { class: "note" }, members ? shape.tooltip : `${shape.tooltip}`), members ? el("p", {}, members.slice(0, 500).map((member) => [object(member), " "])) : hops(app, node)));
    const links = (members ?? [node]).flatMap((of) => linksOf(app.graph, of));
    const own = planesOf(links);
    // A forwarder of FCoE is a switch of Fibre Channel with links of Ethernet.
    const fibre = shape.kind === "switch" && !members && !shape.plane;
    if (fibre) {
      const strip = el("ul", { class: "strip", "aria-label": "Ports" });
      const fill = () => put(strip, ...(app.store.state?.port ?? []).map((of, i) => [of, i]).filter(([of]) => nodeOf(of) === node).map(([of, i]) => el("li", {}, object(of, of.slice(node.length + 1), { class: app.store.status(i), title: `${of} ${app.store.status(i)}, to ${app.store.state.attached[i]}`, "aria-label": `${of} ${app.store.status(i)}` }))));
      fill();
      app.on("state", fill);
      parts.push(section("Ports", strip));
    }
    parts.push(section("Links", linkTable(app, links)));
    if (shape.plane === "ethernet") parts.push(ofPlane(app, "ethernet", (row) => (members ?? [node]).includes(row.switch), "switches"));
    own.forEach((plane) => parts.push(ofPlane(app, plane, (row) => (members ?? [node]).includes(nodeOf(row.port)))));
    if (fibre) parts.push(section("Logins", tableOf(app, "flogi", (row) => nodeOf(row.port) === node)), section("Counters", tableOf(app, "counters", (row) => row.of === node || nodeOf(row.of) === node)));
    if (shape.kind === "storage") parts.push(section("LUNs", tableOf(app, "luns", (row) => (members ?? [node]).includes(row.storage))));
    if (shape.kind !== "switch" && links.some((link) => !planesOf([link]).length)) parts.push(section("Ports", tableOf(app, "nodes", (row) => (members ?? [node]).includes(row.node))));
  }
  const related = (event) => event.port === name || event.switch === name;
  const log = eventTable(app, Infinity, related);
  parts.push(section("Events", log));
  return el("div", {}, parts);
}
