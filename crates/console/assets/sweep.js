// The plot of a sweep: the reader chooses the key along the axis and the number above it.
"use strict";
(function () {
  const { data, color, dash, shown, add, boxes } = loom;
  const box = boxes("sweep")[0];
  const controls = document.querySelector("[data-controls=\"sweep\"]");
  if (!box || data.points.length === 0 || data.metrics.length === 0) {
    if (box) add(box, "p", "none", "No point has numbers yet.");
    return;
  }
  const values = function (key) {
    return Array.from(new Set(data.points.map(function (point) { return point.at[key] || ""; })));
  };
  function choice(title, names, shownName) {
    const label = add(controls, "label", "", title + " ");
    const select = add(label, "select");
    for (const name of names) {
      const option = add(select, "option", "", shownName(name));
      option.value = name;
    }
    select.addEventListener("change", function () { draw(); });
    return select;
  }
  // The key with the most values makes the longest axis.
  const keys = data.keys.slice().sort(function (a, b) { return values(b).length - values(a).length; });
  const xChoice = choice("Along the axis:", keys, function (key) { return key; });
  const yChoice = choice("Number:", data.metrics.map(function (m) { return m.name; }), function (name) { return name; });

  const prefixes = { k: 1e3, M: 1e6, G: 1e9, Ki: 1024, Mi: 1048576, Gi: 1073741824, m: 1e-3, u: 1e-6, "µ": 1e-6, n: 1e-9 };
  // "32KiB", "2GFC", "50m" and "22.5k/s" are numbers; the unit after the prefix must be the same for all.
  function parse(text) {
    const parts = /^\s*(-?[\d.]+(?:e-?\d+)?)\s*(.*?)\s*$/.exec(text);
    if (!parts) return null;
    const unit = parts[2];
    for (const prefix of ["Ki", "Mi", "Gi", "k", "M", "G", "u", "µ", "n", "m"]) {
      if (unit.startsWith(prefix) && /^(B|s|m|FC|\/s|bytes)?$/.test(unit.slice(prefix.length)) && unit !== "m") {
        return [Number(parts[1]) * prefixes[prefix], unit.slice(prefix.length)];
      }
    }
    return [Number(parts[1]), unit];
  }

  const draw = loom.chart(box, 420, function () {
    const key = xChoice.value, name = yChoice.value;
    const metric = data.metrics.find(function (m) { return m.name === name; });
    const texts = values(key);
    const parsed = texts.map(parse);
    const numeric = parsed.every(function (p) { return p !== null && Number.isFinite(p[0]) && p[1] === parsed[0][1]; });
    const position = new Map(texts.map(function (text, i) { return [text, numeric ? parsed[i][0] : i]; }));
    const axis = Array.from(new Set(position.values())).sort(function (a, b) { return a - b; });
    const textAt = new Map(texts.map(function (text) { return [position.get(text), text]; }));
    const lines = new Map();
    for (const point of data.points) {
      const others = data.keys.filter(function (k) { return k !== key; }).map(function (k) { return k + " = " + point.at[k]; });
      const label = others.join(", ") || name;
      if (!lines.has(label)) lines.set(label, axis.map(function () { return null; }));
      const value = point.values[name];
      if (value !== undefined) lines.get(label)[axis.indexOf(position.get(point.at[key] || ""))] = value;
    }
    const wide = numeric && axis.length > 2 && axis[0] > 0 && axis[axis.length - 1] / axis[0] >= 50;
    const series = Array.from(lines.entries());
    return {
      caption: name + (metric.unit ? " in " + metric.unit : "") + " against " + key,
      data: [axis].concat(series.map(function (line) { return line[1]; })),
      options: {
        scales: { x: { time: false, distr: wide ? 3 : 1, range: function (u, min, max) {
          if (wide) return [min / 1.2, max * 1.2];
          const margin = (max - min || 1) * 0.04;
          return [min - margin, max + margin];
        } }, y: { range: function (u, min, max) { return [Math.min(0, min), (max || 1) * 1.08]; } } },
        axes: [
          { splits: axis.length <= 24 ? function () { return axis; } : undefined, filter: function (u, ticks) { return ticks; },
            values: function (u, ticks) { return ticks.map(function (t) { return textAt.get(t) || (numeric ? shown(t) : ""); }); } },
          { size: 64, values: function (u, ticks) { return ticks.map(shown); }, label: metric.unit, labelSize: 18 },
        ],
        series: [{}].concat(series.map(function (line, i) {
          return { label: line[0], stroke: color(i), paint: color(i), width: 1.8, dash: dash(i), spanGaps: true, points: { show: true, size: 6 } };
        })),
        plugins: [loom.tooltip(function (x) { return key + " = " + (textAt.get(x) || shown(x)); },
          function (v) { return shown(v) + (metric.unit ? " " + metric.unit : ""); })],
      },
    };
  });
})();
