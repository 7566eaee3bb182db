// Elements of the page. Every text becomes a text node, never HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element. Attributes that are functions become listeners. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Creates an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  return put(node, children);
}

/** Replaces the children of a node. Lists are joined; null and false are no child. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false).map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return node;
}

/** A link to a view of the page, which keeps no other state. */
export function to(state, text, attributes = {}) {
  return el("a", { href: "?" + new URLSearchParams(state), ...attributes }, text);
}

export const object = (name, text = name, attributes = {}) => to({ view: "object", name }, text, attributes);

/** A section with a heading. */
export function section(title, ...children) {
  return el("section", { "aria-label": title }, el("h2", {}, title), ...children);
}

const units = ["", "k", "M", "G", "T"];

/** A number with at most four digits. */
export function short(number) {
  let at = 0;
  while (Math.abs(number) >= 9999.5 && at < units.length - 1) { number /= 1000; at += 1; }
  return (Number.isInteger(number) || Math.abs(number) >= 999.5 ? String(Math.round(number)) : number.toPrecision(3)) + units[at];
}

let spoken = 0;

/** Tells users of screen readers, at most once in 3 s. */
export function announce(text) {
  const now = Date.now();
  if (now - spoken < 3000) return;
  spoken = now;
  document.getElementById("live").textContent = text;
}
