// The drawing of the topology: zoom, pan, and the series of the ports of what is clicked.
"use strict";
(function () {
  const { data, add, shown } = loom;
  const drawing = document.querySelector(".drawing");
  const svg = drawing && drawing.querySelector("svg");
  if (!svg) return;

  // The part of the drawing that is visible.
  const whole = svg.viewBox.baseVal, full = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
  let view = Object.assign({}, full);
  function show() {
    svg.setAttribute("viewBox", [view.x, view.y, view.width, view.height].join(" "));
  }
  // Units of the drawing per pixel of the screen; the drawing keeps its proportions.
  function scale() {
    return Math.max(view.width / svg.clientWidth, view.height / svg.clientHeight);
  }
  function at(event) {
    const box = svg.getBoundingClientRect(), unit = scale();
    return {
      x: view.x + view.width / 2 + (event.clientX - box.left - box.width / 2) * unit,
      y: view.y + view.height / 2 + (event.clientY - box.top - box.height / 2) * unit,
    };
  }
  function zoom(factor, point) {
    const width = Math.min(full.width * 1.2, Math.max(full.width / 40, view.width * factor));
    const part = width / view.width;
    view = {
      x: point.x - (point.x - view.x) * part, y: point.y - (point.y - view.y) * part,
      width: width, height: view.height * part,
    };
    show();
  }
  const centre = function () { return { x: view.x + view.width / 2, y: view.y + view.height / 2 }; };
  const buttons = document.createElement("div");
  buttons.className = "zoom";
  drawing.prepend(buttons);
  for (const [text, title, act] of [
    ["+", "Zoom in", function () { zoom(1 / 1.5, centre()); }],
    ["−", "Zoom out", function () { zoom(1.5, centre()); }],
    ["fit", "Show the whole drawing", function () { view = Object.assign({}, full); show(); }],
  ]) {
    const button = add(buttons, "button", "", text);
    button.type = "button";
    button.title = title;
    button.addEventListener("click", act);
  }
  svg.addEventListener("wheel", function (event) {
    // Without the key the page scrolls.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 400), at(event));
  }, { passive: false });
  svg.addEventListener("dblclick", function (event) { zoom(1 / 2, at(event)); });

  let held = null, moved = false;
  svg.addEventListener("pointerdown", function (event) {
    held = { x: event.clientX, y: event.clientY, view: view };
    moved = false;
  });
  svg.addEventListener("pointermove", function (event) {
    if (!held) return;
    const x = event.clientX - held.x, y = event.clientY - held.y;
    if (!moved && Math.abs(x) + Math.abs(y) < 5) return;
    moved = true;
    const unit = scale();
    view = Object.assign({}, view, { x: held.view.x - x * unit, y: held.view.y - y * unit });
    show();
  });
  for (const end of ["pointerup", "pointerleave"]) svg.addEventListener(end, function () { held = null; });

  // The series of ports.
  const panel = document.querySelector("[data-chart=ports]");
  const every = data.every;
  const times = Array.from({ length: every.steps }, function (_, i) { return (i + 0.5) * every.step; });
  const isOf = function (port, node) { return port === node || port.startsWith(node + ":"); };
  let chosen = null, kind = 0;
  const box = add(panel, "div", "chart"), text = add(panel, "p", "note");
  const draw = loom.chart(box, 240, function () {
    if (!chosen || chosen.ports.length === 0) return null;
    const caption = (kind === 0 ? "Utilisation" : "Time that frames waited for credit") + ", ports of " + chosen.name;
    const series = chosen.ports.map(function (port) {
      return { name: port[1] + " > " + port[2], values: port[3 + kind] };
    });
    return loom.overTime(caption, series, "%", shown, loom.faults, times, every.step);
  });
  loom.tabs("ports", [["0", "utilisation"], ["1", "credit starvation"]], function (choice) {
    kind = Number(choice);
    draw();
  });
  function choose(element, name, ports) {
    for (const other of svg.querySelectorAll(".chosen")) other.classList.remove("chosen");
    element.classList.add("chosen");
    // A chart of many lines says nothing; the busiest ones do.
    const mean = function (port) { return port[3 + kind].reduce(function (a, b) { return a + b; }, 0); };
    const most = ports.slice().sort(function (a, b) { return mean(b) - mean(a); }).slice(0, 16);
    chosen = { name: name, ports: most };
    const rest = ports.length - most.length;
    text.textContent = ports.length === 0 ? "The page has no series of " + name + "; the series files have all."
      : "Sender > receiver." + (rest > 0 ? " The " + most.length + " busiest of " + ports.length + " directions." : "");
    panel.hidden = false;
    document.querySelector("[data-bar=ports]").hidden = false;
    draw();
    box.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }
  svg.addEventListener("click", function (event) {
    if (moved) return;
    const node = event.target.closest("[data-node]"), cable = event.target.closest("[data-links]");
    if (node) {
      const name = node.dataset.node;
      choose(node, name, every.ports.filter(function (port) { return isOf(port[1], name) || isOf(port[2], name); }));
    } else if (cable) {
      const links = cable.dataset.links.split(" ");
      const name = links.length === 1 ? "link " + links[0] : links.length + " links";
      choose(cable, name, every.ports.filter(function (port) { return links.includes(port[0]); }));
    }
  });
})();
