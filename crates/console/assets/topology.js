// The map of the topology, drawn by the renderer of the page, and the series of the ports of a node
// or cable that is clicked.
"use strict";
(function () {
  const { data, add, shown } = loom;
  const drawing = document.querySelector(".drawing");
  if (!drawing || !data.map) return;
  const graph = data.map.graph;
  // Names come from the lab, so they may be those of properties.
  const busy = new Map(Object.entries(data.map.busy)), marks = new Map(Object.entries(data.map.marks));
  const buttons = document.createElement("div");
  buttons.className = "zoom";
  drawing.prepend(buttons);
  let picked = new Set();

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
  function choose(names, name, ports) {
    picked = new Set(names);
    map.draw();
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
  const map = new loom.map.Map2d({
    graph: graph, store: null, place: null, still: true,
    moved: function () {},
    heat: function (link) { return busy.get(link.name) ?? 0; },
    named: function (name) { return (marks.get(name) ?? []).concat(picked.has(name) ? ["chosen"] : []); },
    open: function (name, links) {
      if (links) {
        choose(links, links.length === 1 ? "link " + name : links.length + " links",
          every.ports.filter(function (port) { return links.includes(port[0]); }));
      } else {
        choose([name], name, every.ports.filter(function (port) { return isOf(port[1], name) || isOf(port[2], name); }));
      }
    },
  });
  map.canvas.style.aspectRatio = graph.width + " / " + graph.height;
  // A small lab is not enlarged further.
  map.canvas.style.maxHeight = "min(82vh, " + Math.ceil(graph.height * 1.6) + "px)";
  drawing.append(map.canvas);
  for (const [text, title, act] of [
    ["+", "Zoom in", function () { map.zoom(1.5); }],
    ["−", "Zoom out", function () { map.zoom(1 / 1.5); }],
    ["fit", "Show the whole drawing", function () { map.fit(); map.draw(); }],
  ]) {
    const button = add(buttons, "button", "", text);
    button.type = "button";
    button.title = title;
    button.addEventListener("click", act);
  }
})();
