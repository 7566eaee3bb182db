// Requests to the server, and the events that it sends.

export class Failed extends Error {
  constructor(status, reason) { super(reason); this.status = status; }
}

async function answer(response) {
  const body = await response.json().catch(() => ({ reason: response.statusText }));
  if (!response.ok) throw new Failed(response.status, body.reason ?? `status ${response.status}`);
  return body;
}

export async function get(path) { return answer(await fetch("/api/v1/" + path)); }

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return answer(await fetch("/api/v1/" + path, { method: "POST", headers, body: JSON.stringify(body) }));
}

export const request = (body) => post("request", body);
export const show = (table, on) => get("show/" + table + (on ? "?switch=" + encodeURIComponent(on) : ""));

/** Number of rates that are kept for each port. */
const KEPT = 120;

/** Number of events that are kept: all that the log of the fabric holds. */
const LOGGED = 2048;

/** State of the fabric as the events tell it. Dispatches `state`, `rates`, `changed`, `log`, `connection`. */
export class Store extends EventTarget {
  constructor() {
    super();
    this.state = null;
    this.rates = null;
    this.history = [];
    this.log = [];
    /** Time zero of the event log: another value is another instance of the fabric. */
    this.logOrigin = null;
    this.connected = null;
    this.portIndex = new Map();
    this.linkPorts = new Map();
    /** Whether links of Ethernet and InfiniBand are up, by name. */
    this.planes = new Map();
    // Browsers keep the stream of a page that was left for a while, and have six for a server.
    addEventListener("pagehide", () => this.source?.close());
    addEventListener("pageshow", (event) => { if (event.persisted) this.open(); });
  }

  open() {
    this.source = new EventSource("/api/v1/events");
    this.source.onopen = () => this.connection(true);
    this.source.onerror = () => this.connection(false);
    this.on("state", (state) => this.take(state));
    this.on("rates", (rates) => {
      this.connection(true);
      this.rates = rates;
      this.history.push(rates);
      if (this.history.length > KEPT) this.history.shift();
    });
    this.on("log", ({ origin_unix_s: origin, events }) => {
      if (origin !== this.logOrigin) this.log = [];
      this.logOrigin = origin;
      // The first row may be the last one again, with a higher count.
      this.log = [...this.log.filter((event) => !events.length || event.sequence < events[0].sequence), ...events].slice(-LOGGED);
    });
    this.on("changed", () => {});
    this.on("down", () => this.connection(false));
    this.on("finished", () => {});
  }

  on(kind, take) {
    this.source.addEventListener(kind, (message) => {
      const data = JSON.parse(message.data);
      take(data);
      this.dispatchEvent(new CustomEvent(kind, { detail: data }));
    });
  }

  connection(connected) {
    if (this.connected === connected) return;
    const before = this.connected;
    this.connected = connected;
    this.dispatchEvent(new CustomEvent("connection", { detail: { connected, again: before === false } }));
  }

  take(state) {
    const same = this.state && this.state.port.length === state.port.length && this.state.port.every((port, i) => port === state.port[i]);
    this.state = state;
    if (same) return;
    this.history = [];
    this.portIndex = new Map(state.port.map((port, i) => [port, i]));
    this.linkPorts = new Map();
    state.link.forEach((link, i) => {
      if (!this.linkPorts.has(link)) this.linkPorts.set(link, []);
      this.linkPorts.get(link).push(i);
    });
  }

  /** Reads the links of Ethernet and InfiniBand, which events do not tell. */
  async readPlanes() {
    const { links } = await show("links");
    const planes = new Map(links.map((link) => [link.link, link.up]));
    const same = planes.size === this.planes.size && [...planes].every(([name, up]) => this.planes.get(name) === up);
    this.planes = planes;
    if (this.state && !same) this.dispatchEvent(new CustomEvent("state", { detail: this.state }));
  }

  /** Status of a port of a switch: a word, which is also its class. */
  status(i) {
    const s = this.state;
    if (s.blocked[i]) return "blocked";
    if (s.isolated[i]) return "isolated";
    if (s.light[i]) return "up";
    if (s.dark[i] === "disabled" || s.dark[i] === "switch_disabled") return "disabled";
    return s.dark[i] === "unplugged" ? "absent" : "down";
  }

  portStatus(port) {
    const i = this.portIndex.get(port);
    return i === undefined ? null : this.status(i);
  }

  /** Status at both ends of a link. An end that is no switch has that of the other end. */
  ends(link) {
    if (link.plane) {
      const up = this.planes.get(link.name);
      const word = up === undefined ? "absent" : up ? "up" : "down";
      return [word, word];
    }
    const both = link.ends.map((end) => this.portStatus(end));
    return [both[0] ?? both[1] ?? "absent", both[1] ?? both[0] ?? "absent"];
  }

  /** Frames per second of a port, both directions. */
  frames(port) {
    const i = this.portIndex.get(port);
    return i === undefined || !this.rates ? null : this.rates.sent[i] + this.rates.received[i];
  }
}
