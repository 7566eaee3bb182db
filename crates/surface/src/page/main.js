// Start, login, and the way from the address of the page to a view. All state is in the address.

import { Store, get, post } from "./api.js";
import { announce, el, put, section, to } from "./dom.js";
import { packets } from "./packets.js";
import { finished, objectOfRun, results } from "./run.js";
import { events, objectView, overview, planes, tables } from "./views.js";
import { zones } from "./zones.js";

const LIVE = [["overview", "Overview", overview], ["ports", "Ports", tables("ports")], ["zones", "Zones", zones], ["storage", "Storage", tables("luns", "groups", "nodes")], ["volumes", "Volumes", tables("volumes", "paths", "sessions", "stats")], ["events", "Events", events], ["packets", "Packets", packets], ["fabric", "Fabric", tables("switch", "fabric", "routes", "flogi", "ns", "fdmi", "injections", "captures", "counters")]];
/** Tables of the planes that only a simulation has. */
const SIMULATED = [...LIVE, ["planes", "Planes", planes]];
const RUN = [["overview", "Run", finished], ["results", "Results", results]];

const app = { store: null, graph: null, me: null, page: null, views: LIVE, leave: [] };

/** Parameters of the view in the address. */
app.params = () => new URLSearchParams(location.search);

/** Changes parameters. Without `push` the history keeps its length. */
app.set = (changes, push = false) => {
  const params = app.params();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  history[push ? "pushState" : "replaceState"](null, "", "?" + params);
};

app.go = (state) => {
  history.pushState(null, "", "?" + new URLSearchParams(state));
  draw(true);
};
app.again = () => draw();
app.open = (name) => app.go({ view: "object", name });

/** Calls a function on an event of the store while the view is shown. */
app.on = (kind, call) => {
  if (!app.store) return;
  const listener = (event) => call(event.detail);
  app.store.addEventListener(kind, listener);
  app.leave.push(() => app.store.removeEventListener(kind, listener));
};

app.may = (role) => ["view", "operate", "administer"].indexOf(app.me.role) >= ["view", "operate", "administer"].indexOf(role);

function draw(focus = false) {
  app.leave.splice(0).forEach((leave) => leave());
  const view = app.params().get("view") ?? "overview";
  const entry = app.views.find(([name]) => name === view);
  const show = entry?.[2] ?? (view === "object" ? (app.store ? objectView : objectOfRun) : app.views[0][2]);
  put(document.getElementById("views"), ...app.views.map(([name, title]) => to({ view: name }, title, { "aria-current": name === (entry?.[0] ?? (view === "object" ? "" : "overview")) ? "page" : null })));
  const main = document.getElementById("main");
  const failed = (error) => put(main, section("Error", el("p", { class: "error", role: "alert" }, error.message)));
  try {
    const shown = show(app);
    put(main, shown);
  } catch (error) {
    failed(error);
    console.error(error);
  }
  if (focus) main.focus();
  document.title = `${app.params().get("name") ?? entry?.[1] ?? "Overview"} – ${app.graph?.of ?? "sanloom"}`;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='?']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  draw(true);
});
addEventListener("popstate", () => draw());
document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = document.getElementById("find-name").value.trim();
  if (name) app.open(name);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  event.preventDefault();
  document.getElementById("find-name").focus();
});

function login(reason) {
  const user = el("input", { name: "user", autocomplete: "username", required: true });
  const password = el("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const error = el("p", { class: "error", role: "alert" }, reason ?? "");
  const submit = async (event) => {
    event.preventDefault();
    try {
      await post("login", { user: user.value, password: password.value });
      location.reload();
    } catch (wrong) {
      error.textContent = wrong.message;
    }
  };
  document.getElementById("find").hidden = true;
  put(document.getElementById("main"), section("Log in", el("form", { submit, class: "bar" }, el("label", {}, "User ", user), el("label", {}, "Password ", password), el("button", { class: "main" }, "Log in")), error));
  user.focus();
}

function connection({ connected, again }) {
  const status = document.getElementById("status");
  status.textContent = connected ? (app.me.open ? "connected, without login" : `connected as ${app.me.user}`) : "disconnected; the page connects again by itself";
  status.className = connected ? "" : "bad";
  if (!again || !connected) return;
  announce("connected again");
  // A restarted instance may run another lab, or want a login.
  load().then(() => draw()).catch((error) => { if (error.status === 401) login(); });
}

function named() {
  const names = app.graph.shapes.flatMap((shape) => shape.members ?? [shape.label]);
  put(document.getElementById("names"), ...[...names.slice(0, 3000), ...app.graph.links.slice(0, 1000).map((link) => link.name)].map((name) => el("option", { value: name })));
}

async function load() {
  app.me = await get("me");
  app.graph = await get("graph");
  document.getElementById("lab").textContent = app.graph.of || "sanloom";
  named();
}

async function start() {
  try {
    await load();
  } catch (error) {
    if (error.status === 401) login();
    else put(document.getElementById("main"), section("Error", el("p", { class: "error", role: "alert" }, error.message)));
    return;
  }
  const logout = document.getElementById("logout");
  logout.hidden = app.me.open;
  logout.addEventListener("click", async () => { await post("logout", {}); location.reload(); });
  if (app.me.kind === "finished") {
    app.views = RUN;
    document.getElementById("status").textContent = "finished run";
    draw();
    return;
  }
  if (app.me.kind === "simulated") app.views = SIMULATED;
  app.store = new Store();
  app.store.addEventListener("connection", (event) => connection(event.detail));
  // A paced run has ended: the page of its results is another one.
  app.store.addEventListener("finished", () => location.reload());
  app.store.open();
  if (app.me.kind === "simulated" && app.graph.links.some((link) => link.plane)) {
    const read = () => { if (!document.hidden) app.store.readPlanes().catch(() => {}); };
    read();
    setInterval(read, 2000);
  }
  app.store.addEventListener("log", (event) => { const faults = event.detail.events.filter((entry) => entry.severity !== "info"); if (faults.length) announce(`${faults[faults.length - 1].port || faults[faults.length - 1].switch}: ${faults[faults.length - 1].text}`); });
  draw();
}

start();
