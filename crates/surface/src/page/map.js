// The map: Canvas 2D with semantic zoom. Positions come from the server. Reports contain this file,
// dom.js and status.js, too, without their lines of imports and exports.

import { el, short } from "./dom.js";
import { worse } from "./status.js";

/** Size of a node on the screen, in pixels, from which it is drawn on its own. */
const CELL = 11;
/** Marks that are drawn at most at any zoom. */
const MARKS = 2000;

/** Height of a line of text on the map, in pixels. */
const LINE = 14;
/** Places of a label along its line, as parts of its length, in the order of preference. */
const PLACES = [0.5, 0.38, 0.62, 0.27, 0.73];

/**
 * Labels with their boxes. A label that would cover another one is placed aside, along its line or on
 * the other side of it, or is left out: there is room after zooming.
 */
function placed(g, labels) {
  const found = [];
  // Boxes by the squares that they touch, so that each is compared with its neighbours only.
  const squares = new Map();
  const touched = ({ x, y, width, height }) => {
    const keys = [];
    for (let i = Math.floor(x / 64); i <= Math.floor((x + width) / 64); i += 1) for (let j = Math.floor(y / 64); j <= Math.floor((y + height) / 64); j += 1) keys.push(`${i} ${j}`);
    return keys;
  };
  const meet = (one, other) => one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
  for (const { text, colour, a, b } of labels) {
    const width = g.measureText(text).width;
    for (const [t, left] of PLACES.flatMap((t) => [[t, false], [t, true]])) {
      const [x, y] = [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t];
      const box = { text, colour, x: left ? x - 4 - width : x + 4, y: y - LINE / 2, width, height: LINE };
      const keys = touched(box);
      if (keys.some((key) => squares.get(key)?.some((other) => meet(box, other)))) continue;
      keys.forEach((key) => { if (!squares.has(key)) squares.set(key, []); squares.get(key).push(box); });
      found.push(box);
      break;
    }
  }
  return found;
}

export class Map2d {
  /**
   * `named` gives the classes of a link or node that faults and findings name: fault, culprit,
   * victim. `still`: the wheel scrolls the page, unless Ctrl is pressed.
   * @param {{graph: object, store: object, place: string|null, open: (name: string, links?: string[]) => void, moved: (place: string) => void, heat?: (link: object) => number|null, named?: (name: string) => string[], still?: boolean}} options
   */
  constructor(options) {
    Object.assign(this, options);
    this.names = new Map();
    this.graph.shapes.forEach((shape, i) => (shape.members ?? [shape.label]).forEach((name, at) => this.names.set(name, [i, at])));
    this.marked = new Set();
    this.canvas = el("canvas", { class: "map", tabindex: 0, role: "img", "aria-label": "Map of the fabric; tables of the page have the same content. Arrow keys move, plus and minus zoom, 0 shows all." });
    this.context = this.canvas.getContext("2d");
    this.dirty = false;
    this.painted = 0;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.size = [box.width, box.height];
    this.ratio = ratio;
    if (!this.scale) this.start();
    this.draw();
  }

  start() {
    const place = (this.place ?? "").split(",").map(Number);
    if (place.length === 3 && place.every(Number.isFinite) && place[2] > 0) {
      this.scale = place[2];
      this.left = place[0] - this.size[0] / 2 / this.scale;
      this.top = place[1] - this.size[1] / 2 / this.scale;
    } else this.fit();
  }

  fit() {
    const { width, height } = this.graph;
    this.scale = Math.min(this.size[0] / (width || 1), this.size[1] / (height || 1), 1.6);
    this.left = (width - this.size[0] / this.scale) / 2;
    this.top = (height - this.size[1] / this.scale) / 2;
  }

  /** Shows a node in the middle. */
  centre(name) {
    const found = this.names.get(name);
    if (!found || !this.scale) return;
    const shape = this.graph.shapes[found[0]];
    const [x, y] = shape.members ? this.cell(shape, found[1]) : [shape.x, shape.y];
    this.marked = new Set([name]);
    this.left = x - this.size[0] / 2 / this.scale;
    this.top = y - this.size[1] / 2 / this.scale;
    this.settle();
  }

  settle() {
    this.draw();
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      const [x, y] = [this.left + this.size[0] / 2 / this.scale, this.top + this.size[1] / 2 / this.scale];
      this.moved([x.toFixed(1), y.toFixed(1), this.scale.toFixed(3)].join(","));
    }, 300);
  }

  zoom(factor, at = [this.size[0] / 2, this.size[1] / 2]) {
    const scale = Math.min(Math.max(this.scale * factor, 0.005), 60);
    this.left += at[0] / this.scale - at[0] / scale;
    this.top += at[1] / this.scale - at[1] / scale;
    this.scale = scale;
    this.settle();
  }

  listen() {
    const { canvas } = this;
    const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => { drag = { from: at(event), moved: false }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      const now = at(event);
      if (!drag) { const hit = this.hit(now); canvas.title = hit?.title ?? ""; canvas.style.cursor = hit ? "pointer" : "grab"; return; }
      const [dx, dy] = [now[0] - drag.from[0], now[1] - drag.from[1]];
      if (Math.abs(dx) + Math.abs(dy) > 3) drag.moved = true;
      if (!drag.moved) return;
      this.left -= dx / this.scale; this.top -= dy / this.scale;
      drag.from = now;
      this.settle();
    });
    canvas.addEventListener("pointerup", (event) => {
      const was = drag;
      drag = null;
      if (!was || was.moved) return;
      const hit = this.hit(at(event));
      if (hit?.name) this.open(hit.name, hit.links);
      else if (hit) this.zoom(2.5, at(event));
    });
    canvas.addEventListener("wheel", (event) => { if (this.still && !event.ctrlKey && !event.metaKey) return; event.preventDefault(); this.zoom(Math.exp(-event.deltaY / 400), at(event)); }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = 60 / this.scale;
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
      if (moves[event.key]) { this.left += moves[event.key][0]; this.top += moves[event.key][1]; this.settle(); }
      else if (event.key === "+" || event.key === "=") this.zoom(1.4);
      else if (event.key === "-") this.zoom(1 / 1.4);
      else if (event.key === "0") { this.fit(); this.settle(); }
      else return;
      event.preventDefault();
    });
  }

  /** Columns of the cells of a shape with several nodes. */
  columns(shape) {
    if (!shape.columns) {
      const n = shape.members.length;
      shape.columns = Math.max(1, Math.min(n, Math.round(Math.sqrt((n * shape.width) / Math.max(shape.height, 1) / 2))));
      shape.rows = Math.ceil(n / shape.columns);
    }
    return shape.columns;
  }

  /** Centre of the cell of a node. */
  cell(shape, at) {
    const columns = this.columns(shape);
    const [w, h] = [shape.width / columns, shape.height / shape.rows];
    return [shape.x - shape.width / 2 + w * ((at % columns) + 0.5), shape.y - shape.height / 2 + h * (Math.floor(at / columns) + 0.5), w, h];
  }

  hit([x, y]) {
    const [wx, wy] = [this.left + x / this.scale, this.top + y / this.scale];
    for (const shape of this.graph.shapes) {
      if (Math.abs(wx - shape.x) > shape.width / 2 || Math.abs(wy - shape.y) > shape.height / 2) continue;
      if (!shape.members) return { name: shape.label, title: shape.tooltip };
      const columns = this.columns(shape);
      const [w, h] = [shape.width / columns, shape.height / shape.rows];
      const at = Math.floor((wy - shape.y + shape.height / 2) / h) * columns + Math.floor((wx - shape.x + shape.width / 2) / w);
      const member = h * this.scale >= CELL && shape.members[at];
      return member ? { name: member, title: member } : { title: shape.tooltip };
    }
    const near = 5 / this.scale;
    for (const cable of this.graph.cables) {
      const [a, b] = this.line(cable);
      const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
      const t = Math.min(Math.max(((wx - a[0]) * dx + (wy - a[1]) * dy) / (dx * dx + dy * dy || 1), 0), 1);
      if (Math.hypot(wx - a[0] - t * dx, wy - a[1] - t * dy) < near) {
        const links = cable.links.map((link) => this.graph.links[link]);
        return { name: links[0].name, links: links.map((link) => link.name), title: links.length === 1 ? `${links[0].name}, ${links[0].rate}` : `${links.length} links, the first is ${links[0].name}` };
      }
    }
    return null;
  }

  /** Both ends of the line of a cable, at the edges of its shapes. */
  line(cable) {
    const [a, b] = cable.shapes.map((i) => this.graph.shapes[i]);
    const foot = (from, other) => {
      const half = from.members ? Math.max(from.width / 2 - 14, 0) : 0;
      return from.x + Math.min(Math.max(other.x - from.x, -half), half);
    };
    if (Math.abs(a.y - b.y) < 1) return a.x < b.x ? [[a.x + a.width / 2, a.y], [b.x - b.width / 2, b.y]] : [[a.x - a.width / 2, a.y], [b.x + b.width / 2, b.y]];
    const sign = a.y < b.y ? 1 : -1;
    return [[foot(a, b), a.y + (sign * a.height) / 2], [foot(b, a), b.y - (sign * b.height) / 2]];
  }

  draw() {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => { this.dirty = false; this.paint(); });
  }

  paint() {
    if (!this.scale) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue("--" + name).trim();
    const c = { ink: colour("ink"), soft: colour("soft"), line: colour("line"), bg: colour("bg"), panel: colour("panel"), accent: colour("accent"), up: colour("good"), down: colour("bad"), isolated: colour("bad"), blocked: colour("bad"), disabled: colour("warn"), absent: colour("soft"), victim: colour("warn-bg"), culprit: colour("bad-bg") };
    const g = this.context;
    const k = this.scale;
    const [X, Y] = [(x) => (x - this.left) * k, (y) => (y - this.top) * k];
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    g.fillStyle = c.panel;
    g.fillRect(0, 0, ...this.size);
    const [W, H] = this.size;
    const seen = (x, y, w, h) => x + w > 0 && y + h > 0 && x < W && y < H;
    let marks = 0;
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    for (const fabric of this.graph.fabrics) {
      g.fillStyle = c.bg; g.strokeStyle = c.line; g.setLineDash([6, 4]);
      g.fillRect(X(fabric.left), Y(fabric.top), fabric.width * k, fabric.height * k);
      g.strokeRect(X(fabric.left), Y(fabric.top), fabric.width * k, fabric.height * k);
      g.setLineDash([]);
      g.fillStyle = c.soft; g.textAlign = "left";
      g.fillText(fabric.label, Math.max(X(fabric.left) + 8, 4), Math.max(Y(fabric.top) + 12, 10));
    }
    const labels = [];
    for (const cable of this.graph.cables) {
      const [a, b] = this.line(cable).map(([x, y]) => [X(x), Y(y)]);
      if (!seen(Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.abs(a[0] - b[0]) + 1, Math.abs(a[1] - b[1]) + 1) || (marks += 1) > MARKS) continue;
      const { ends, rate, heat } = this.cableState(cable);
      const worst = worse(ends[0], ends[1]);
      g.strokeStyle = worst === "up" ? (heat === null ? c.soft : this.warm(heat, c)) : c[worst];
      g.setLineDash(worst === "down" || worst === "isolated" || worst === "blocked" ? [7, 5] : worst === "up" ? [] : [2, 4]);
      g.lineWidth = Math.min(1.2 + Math.log2(cable.links.length) * 0.7 + (heat ?? 0) * 2.5 + (worst === "down" ? 1 : 0), 7) * Math.min(1, 0.25 + k);
      if (this.named) this.markCable(g, cable, c);
      g.beginPath(); g.moveTo(...a); g.lineTo(...b); g.stroke();
      g.setLineDash([]);
      if (k > 0.25 && this.store) { this.end(g, a, b, ends[0], c); this.end(g, b, a, ends[1], c); }
      if (k > 0.7 && (rate || cable.links.length > 1)) labels.push({ text: rate ? `${short(rate)}/s` : `${cable.links.length}`, colour: rate ? c.ink : c.soft, a, b });
    }
    this.canvas.labels = placed(g, labels);
    g.textAlign = "left";
    for (const label of this.canvas.labels) { g.fillStyle = label.colour; g.fillText(label.text, label.x, label.y + label.height / 2); }
    this.graph.shapes.forEach((shape) => {
      const [w, h] = [shape.width * k, shape.height * k];
      const [x, y] = [X(shape.x) - w / 2, Y(shape.y) - h / 2];
      if (!seen(x, y, w, h) || (marks += 1) > MARKS) return;
      const here = this.marked.has(shape.label);
      const classes = this.named && !shape.members ? this.named(shape.label) : [];
      g.fillStyle = shape.kind === "switch" ? c.bg : c.panel;
      g.strokeStyle = here ? c.accent : shape.kind === "host" ? c.accent : shape.kind === "storage" ? c.up : c.ink;
      g.lineWidth = here ? 4 : 1.4;
      if (classes.length) this.markNode(g, classes, c);
      g.beginPath();
      // The kinds differ by shape, not only by colour.
      if (shape.kind === "switch") g.roundRect(x, y, w, h, Math.min(10, h / 3));
      else if (shape.kind === "storage") { g.rect(x, y, w, h); g.moveTo(x, y + Math.min(4, h / 4)); g.lineTo(x + w, y + Math.min(4, h / 4)); }
      else g.rect(x, y, w, h);
      g.fill(); g.stroke();
      g.setLineDash([]);
      g.fillStyle = c.ink; g.textAlign = "center";
      const columns = shape.members && this.columns(shape);
      const cell = shape.members && (shape.height / shape.rows) * k;
      if (shape.members && cell >= CELL) {
        const cw = (shape.width / columns) * k;
        const rows = [Math.max(0, Math.floor(-y / cell)), Math.min(shape.rows, Math.ceil((H - y) / cell))];
        for (let r = rows[0]; r < rows[1]; r += 1) {
          for (let col = Math.max(0, Math.floor(-x / cw)); col < Math.min(columns, Math.ceil((W - x) / cw)); col += 1) {
            const name = shape.members[r * columns + col];
            if (name === undefined || (marks += 1) > MARKS) continue;
            g.strokeStyle = this.marked.has(name) ? c.accent : c.line; g.lineWidth = this.marked.has(name) ? 3 : 1;
            const box = [x + col * cw + 1, y + r * cell + 1, cw - 2, cell - 2];
            const named = this.named?.(name) ?? [];
            if (named.length) { this.markNode(g, named, c); g.fillRect(...box); }
            g.strokeRect(...box);
            g.setLineDash([]); g.fillStyle = c.ink;
            if (cw > 26) g.fillText(name, x + (col + 0.5) * cw, y + (r + 0.5) * cell, cw - 4);
          }
        }
      } else if (h > 9 || k < 0.25) {
        const label = shape.members ? `${shape.members.length}${w > 60 ? (shape.kind === "host" ? " hosts" : " storage") : ""}` : shape.label;
        if (h > 7 && w > 12) g.fillText(label, x + w / 2, y + h / 2, Math.max(w - 4, 10));
      }
    });
    this.marks = marks;
    if (!this.painted) { this.painted = performance.now(); performance.mark("map-painted"); }
    this.canvas.dataset.painted = String(Math.round(this.painted));
  }

  /** Colours and dashes of a node that a fault or finding names, and of a node that is chosen. */
  markNode(g, classes, c) {
    const has = (name) => classes.includes(name);
    if (has("victim")) { g.fillStyle = c.victim; g.strokeStyle = c.disabled; }
    if (has("culprit")) { g.fillStyle = c.culprit; g.strokeStyle = c.down; g.lineWidth = 3; }
    if (has("fault")) { g.strokeStyle = c.down; g.lineWidth = 2.4; g.setLineDash([7, 5]); }
    if (has("chosen")) { g.strokeStyle = c.accent; g.lineWidth = 4; }
  }

  markCable(g, cable, c) {
    const classes = new Set(cable.links.flatMap((at) => this.named(this.graph.links[at].name)));
    if (classes.has("culprit")) { g.strokeStyle = c.down; g.lineWidth = 4; }
    if (classes.has("fault")) g.setLineDash([7, 5]);
    if (classes.has("chosen")) { g.strokeStyle = c.accent; g.lineWidth = 5; }
  }

  /** Mark at an end: a filled square if up, a cross if down, a ring otherwise. */
  end(g, at, other, status, c) {
    const length = Math.hypot(other[0] - at[0], other[1] - at[1]) || 1;
    const [x, y] = [at[0] + ((other[0] - at[0]) / length) * 8, at[1] + ((other[1] - at[1]) / length) * 8];
    g.fillStyle = g.strokeStyle = c[status];
    g.lineWidth = 2;
    if (status === "up") g.fillRect(x - 3, y - 3, 6, 6);
    else if (status === "disabled" || status === "absent") { g.beginPath(); g.arc(x, y, 3, 0, 7); g.stroke(); }
    else { g.beginPath(); g.moveTo(x - 4, y - 4); g.lineTo(x + 4, y + 4); g.moveTo(x + 4, y - 4); g.lineTo(x - 4, y + 4); g.stroke(); }
  }

  cableState(cable) {
    let ends = ["up", "up"], rate = 0, heat = null;
    for (const at of cable.links) {
      const link = this.graph.links[at];
      if (this.store?.state) {
        // The ends of a link have the order of the lab, those of a cable the order of its shapes.
        let both = this.store.ends(link);
        const first = link.ends[0].slice(0, link.ends[0].lastIndexOf(":"));
        if (this.names.get(first)?.[0] !== cable.shapes[0]) both = [both[1], both[0]];
        ends = [worse(ends[0], both[0]), worse(ends[1], both[1])];
        rate += this.store.frames(link.ends[0]) ?? this.store.frames(link.ends[1]) ?? 0;
      }
      const warm = this.heat?.(link);
      if (warm !== null && warm !== undefined) heat = Math.max(heat ?? 0, warm);
    }
    return { ends, rate, heat };
  }

  warm(heat, c) { return heat < 0.02 ? c.soft : `color-mix(in srgb, ${c.down} ${Math.round(heat * 100)}%, ${c.soft})`; }
}
