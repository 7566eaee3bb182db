// Packets of a port as they pass. The server decodes them.

import { post } from "./api.js";
import { el, put, section } from "./dom.js";
import { download } from "./table.js";

/** Packets that are kept. */
const RING = 20000;

/** Splits a growing pcapng file into packets. */
export class Blocks {
  constructor() { this.rest = new Uint8Array(0); this.link = 0; }

  /** @param {Uint8Array} bytes */
  take(bytes) {
    const all = new Uint8Array(this.rest.length + bytes.length);
    all.set(this.rest);
    all.set(bytes, this.rest.length);
    const view = new DataView(all.buffer);
    const packets = [];
    let at = 0;
    while (all.length - at >= 12) {
      const length = view.getUint32(at + 4, true);
      if (length < 12 || all.length - at < length) break;
      const kind = view.getUint32(at, true);
      if (kind === 1) this.link = view.getUint16(at + 8, true);
      if (kind === 6) {
        const time = (BigInt(view.getUint32(at + 12, true)) << 32n) | BigInt(view.getUint32(at + 16, true));
        const size = view.getUint32(at + 20, true);
        packets.push({ time, link: this.link, bytes: all.slice(at + 28, at + 28 + size) });
      }
      at += length;
    }
    this.rest = all.slice(at);
    return packets;
  }
}

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const clock = (time) => new Date(Number(time / 1000000n)).toISOString().slice(11, 19) + "." + String(time % 1000000000n).padStart(9, "0").slice(0, 6);

export function packets(app) {
  const port = el("input", { id: "packet-port", value: app.params().get("port") ?? "", list: "names" });
  const filter = el("input", { type: "search", value: app.params().get("filter") ?? "", input: () => { app.set({ filter: filter.value }); clearTimeout(later); later = setTimeout(compare, 300); } });
  // A filter with an operator is an expression of injected faults; other texts are searched, also
  // those with the arrow of a summary.
  const expression = () => (/[=<]|(^|[^-])>/.test(filter.value) ? filter.value.trim() : "");
  const fault = el("p", { class: "error", role: "alert" });
  let later = 0;
  const status = el("p", { role: "status", class: "note" });
  const prompt = () => { if (!stop) status.textContent = port.value ? `Start captures ${port.value}.` : "Choose a port or link."; };
  port.addEventListener("input", prompt);
  const behind = el("p", { class: "note" });
  const body = el("tbody");
  const tree = el("div");
  const bytes = el("pre", { class: "bytes", tabindex: 0 });
  let ring = [], parts = [], stop = null, dirty = false, waiting = [];
  prompt();
  const start = el("button", { class: "main" }, "Start");
  const halt = el("button", { type: "button", click: () => stop?.abort() }, "Stop");
  const save = el("button", { type: "button", click: () => download(`${port.value}.pcapng`, "application/x-pcapng", new Blob(parts)) }, "Save as pcapng");

  function draw() {
    if (dirty) return;
    dirty = true;
    requestAnimationFrame(() => {
      dirty = false;
      const wanted = filter.value.toLowerCase();
      const asked = expression();
      const found = asked ? ring.filter((packet) => packet.asked === asked && packet.matches) : wanted ? ring.filter((packet) => packet.summary?.toLowerCase().includes(wanted)) : ring;
      const rest = asked ? ring.filter((packet) => packet.asked !== asked).length : 0;
      behind.textContent = rest ? `${rest} of ${ring.length} frames are not compared with the filter.` : "";
      put(body, ...found.slice(-200).map((packet) => el("tr", {}, el("td", {}, clock(packet.time)), el("td", { class: "n" }, packet.bytes.length), el("td", {}, el("button", { type: "button", click: () => open(packet) }, packet.summary ?? "not decoded")))));
    });
  }
  async function decode(some) {
    const asked = expression();
    const captured = { link_type: some[0].link, frames: some.map((packet) => hex(packet.bytes)) };
    let answers;
    try {
      answers = await post("decode", asked ? { ...captured, filter: asked } : captured);
    } catch (error) {
      if (!asked || error.status !== 400) throw error;
      // Packets are decoded without an expression that is not valid.
      fault.textContent = error.message;
      answers = await post("decode", captured);
    }
    // An answer about an older expression says nothing about the one of now.
    const now = expression();
    answers.frames.forEach((answer, i) => {
      const { matches, ...rest } = answer;
      Object.assign(some[i], rest, asked === now || some[i].asked !== now ? { matches, asked } : {});
    });
    draw();
  }
  /** Compares all packets with a new expression, the newest first. */
  async function compare() {
    const asked = expression();
    draw();
    if (!asked) { fault.textContent = ""; return; }
    try {
      await post("decode", { link_type: 1, frames: [], filter: asked });
      for (let end = ring.length; end > 0 && expression() === asked; end -= 500) {
        const some = ring.slice(Math.max(0, end - 500), end).filter((packet) => packet.asked !== asked);
        if (some.length) await decode(some);
      }
      if (expression() === asked) fault.textContent = "";
    } catch (error) {
      if (expression() === asked) fault.textContent = error.message;
    }
  }
  /** Decodes at most 200 packets per second; the others are decoded when they are opened. */
  const timer = setInterval(() => { const some = waiting.splice(0).slice(-200); if (some.length) decode(some).catch(() => {}); }, 1000);
  async function open(packet) {
    if (!packet.fields) await decode([packet]).catch((error) => { status.textContent = error.message; });
    const paint = (from, until) => {
      const shown = [...packet.bytes].map((byte, i) => [byte.toString(16).padStart(2, "0"), i]);
      put(bytes, ...shown.map(([text, i]) => [i >= from && i < until ? el("mark", {}, text) : text, i % 16 === 15 ? "\n" : " "]).flat());
    };
    put(tree, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "Field"), el("th", {}, "Value"), el("th", {}, "Bytes"))), el("tbody", {}, (packet.fields ?? []).map((field) => el("tr", {}, el("td", {}, el("button", { type: "button", click: () => paint(field.from, field.until) }, field.name)), el("td", {}, field.value), el("td", {}, `${field.from}–${field.until - 1}`))))));
    paint(0, 0);
  }
  async function read(event) {
    event.preventDefault();
    stop?.abort();
    stop = new AbortController();
    const own = stop;
    app.set({ port: port.value });
    ring = []; parts = []; waiting = [];
    status.className = "note";
    status.textContent = "Starting";
    try {
      const response = await fetch(`/api/v1/capture/${encodeURIComponent(port.value.trim())}.pcapng`, { signal: own.signal });
      if (!response.ok) throw new Error((await response.json()).reason);
      status.textContent = `Capturing ${port.value}`;
      const blocks = new Blocks();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        parts.push(value);
        const found = blocks.take(value);
        ring.push(...found);
        waiting.push(...found);
        if (ring.length > RING) ring = ring.slice(-RING);
        status.textContent = `Capturing ${port.value}: ${ring.length} packets`;
        draw();
      }
      status.textContent = "The capture has ended.";
    } catch (error) {
      if (error.name === "AbortError") { status.textContent = `Stopped: ${ring.length} packets`; return; }
      status.className = "error";
      status.textContent = error.message;
    }
  }
  // Browsers keep the streams of a page that was left for a while.
  const leave = () => stop?.abort();
  addEventListener("pagehide", leave);
  app.leave.push(() => { leave(); clearInterval(timer); removeEventListener("pagehide", leave); });
  return el("div", {}, section("Packets", el("form", { class: "bar", submit: read }, el("label", {}, "Port or link, such as sw1:0 ", port), start, halt, save, el("label", {}, "Filter: a text, or an expression such as fcp == CMND ", filter)), fault, status, behind, el("div", { class: "scroll" }, el("table", { "aria-label": "Packets" }, el("thead", {}, el("tr", {}, el("th", {}, "Time"), el("th", {}, "Length"), el("th", {}, "Frame"))), body))), section("Frame", el("div", { class: "beside" }, tree, bytes)));
}
