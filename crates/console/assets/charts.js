// What the pages' charts have in common: colours of the theme, tooltips, marks of faults, resizing.
"use strict";
const loom = (function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const light = ["#2563eb", "#e07b0c", "#0f9d8a", "#9333ea", "#5c9a12", "#db2777", "#0891b2", "#8a5a0b"];
  const night = ["#7aa8ff", "#f6b04d", "#3fd0bb", "#c894fc", "#a3d65c", "#f47fbb", "#4cc9e8", "#d6a75c"];

  function css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }
  function color(i) {
    const colors = dark.matches ? night : light;
    return colors[i % colors.length];
  }
  // The ninth line has the first colour again, but dashes.
  function dash(i) {
    return [undefined, [6, 3], [2, 3], [9, 3, 2, 3]][Math.floor(i / 8) % 4];
  }
  function shown(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4;
    return value.toLocaleString("en", { maximumFractionDigits: digits });
  }
  function us(value) {
    if (value >= 1e6) return shown(value / 1e6) + " s";
    if (value >= 1e3) return shown(value / 1e3) + " ms";
    return shown(value) + " µs";
  }
  function add(parent, tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }
  function place(tip, box, x, y) {
    const width = box.clientWidth;
    tip.style.left = (x + tip.offsetWidth + 24 > width ? Math.max(0, x - tip.offsetWidth - 12) : x + 14) + "px";
    tip.style.top = Math.max(0, y - 10) + "px";
  }

  // Values under the cursor, greatest first.
  function tooltip(head, value, note) {
    let tip;
    return {
      hooks: {
        init: function (u) {
          tip = add(u.root.parentNode, "div", "tip");
          tip.hidden = true;
          u.over.addEventListener("mouseleave", function () { tip.hidden = true; });
          u.over.addEventListener("mouseenter", function () { u.hovered = true; });
          u.over.addEventListener("mouseleave", function () { u.hovered = false; });
        },
        destroy: function () { tip.remove(); },
        setCursor: function (u) {
          const at = u.cursor.idx;
          if (!u.hovered || at === null || at === undefined || u.cursor.left < 0) {
            tip.hidden = true;
            return;
          }
          const rows = [];
          u.series.forEach(function (series, i) {
            if (i > 0 && series.show && u.data[i][at] !== null && u.data[i][at] !== undefined) {
              rows.push([u.data[i][at], series]);
            }
          });
          rows.sort(function (a, b) { return b[0] - a[0]; });
          tip.replaceChildren();
          add(tip, "b", "", head(u.data[0][at], at));
          const hidden = rows.length - 12;
          for (const row of rows.slice(0, 12)) {
            const line = add(tip, "div");
            add(line, "i").style.background = typeof row[1]._stroke === "string" ? row[1]._stroke : row[1].paint;
            line.append(row[1].label + ": " + value(row[0]));
          }
          if (hidden > 0) add(tip, "div", "", "and " + hidden + " more");
          for (const text of note ? note(u.data[0][at]) : []) add(tip, "em", "", text);
          tip.hidden = false;
          const over = u.over.getBoundingClientRect(), box = u.root.parentNode.getBoundingClientRect();
          place(tip, u.root.parentNode, over.left - box.left + u.cursor.left, over.top - box.top + u.cursor.top);
        },
      },
    };
  }

  function faultsAt(time) {
    return (data.faults || []).filter(function (fault) {
      const step = data.step / 2;
      return time + step >= fault.at && time - step <= (fault.until === null ? fault.at : fault.until);
    }).map(function (fault) { return fault.what; });
  }

  // Warm-up in grey; faults as bands or lines with their names.
  function marks(bands) {
    return {
      hooks: {
        drawClear: function (u) {
          const ctx = u.ctx, box = u.bbox, ratio = devicePixelRatio;
          const x = function (time) {
            return Math.max(box.left, Math.min(box.left + box.width, u.valToPos(time, "x", true)));
          };
          ctx.save();
          ctx.textAlign = "left";
          ctx.textBaseline = "alphabetic";
          if (data.warmup > 0) {
            ctx.fillStyle = css("line");
            ctx.globalAlpha = 0.45;
            const end = x(data.warmup);
            ctx.fillRect(box.left, box.top, end - box.left, box.height);
            if (end - box.left > 60 * ratio) {
              ctx.globalAlpha = 1;
              ctx.fillStyle = css("soft");
              ctx.font = 11 * ratio + "px sans-serif";
              ctx.fillText("warm-up", box.left + 5 * ratio, box.top + box.height - 6 * ratio);
            }
          }
          let last = -1e9, row = 0;
          for (const band of bands) {
            const from = x(band.at), until = x(band.until === null ? band.at : band.until);
            ctx.globalAlpha = 0.1;
            ctx.fillStyle = css("fault");
            ctx.fillRect(from, box.top, Math.max(until - from, 0), box.height);
            ctx.globalAlpha = 0.85;
            ctx.strokeStyle = css("fault");
            ctx.lineWidth = ratio;
            ctx.setLineDash([4 * ratio, 3 * ratio]);
            ctx.beginPath();
            ctx.moveTo(from, box.top);
            ctx.lineTo(from, box.top + box.height);
            ctx.stroke();
            ctx.setLineDash([]);
            ctx.globalAlpha = 1;
            ctx.fillStyle = css("fault");
            ctx.font = 11 * ratio + "px sans-serif";
            const text = band.what.length > 44 ? band.what.slice(0, 43) + "…" : band.what;
            const width = ctx.measureText(text).width;
            row = from < last ? (row + 1) % 4 : 0;
            last = from + width + 10 * ratio;
            const left = Math.min(from + 5 * ratio, box.left + box.width - width - 4 * ratio);
            if (text && band.at >= u.scales.x.min && band.at <= u.scales.x.max) {
              ctx.fillText(text, left, box.top + (13 + 14 * row) * ratio);
            }
          }
          ctx.restore();
        },
      },
    };
  }

  // `build` returns options and data; it is called again when the theme changes.
  function chart(box, height, build) {
    let plot;
    function draw() {
      if (plot) plot.destroy();
      box.replaceChildren();
      const built = build();
      if (!built) return;
      if (built.caption) add(box, "p", "caption", built.caption);
      const axis = function (more) {
        return Object.assign({
          stroke: css("soft"), font: "11px system-ui, sans-serif",
          grid: { stroke: css("line"), width: 1 }, ticks: { stroke: css("line"), width: 1, size: 5 },
        }, more);
      };
      const options = Object.assign({ width: Math.max(box.clientWidth, 200), height: height }, built.options);
      options.axes = built.options.axes.map(axis);
      options.cursor = Object.assign({ focus: { prox: 18 } }, options.cursor);
      options.focus = { alpha: 0.25 };
      options.legend = Object.assign({ live: false, show: options.series.length > 2 }, options.legend);
      plot = new uPlot(options, built.data, box);
    }
    draw();
    new ResizeObserver(function () {
      const width = Math.max(box.clientWidth, 200);
      if (plot && Math.abs(plot.width - width) > 1) plot.setSize({ width: width, height: height });
    }).observe(box);
    dark.addEventListener("change", draw);
    return draw;
  }

  // 1, 2 and 5 of each power of ten, for a logarithmic axis.
  function decades(u, axis, min, max) {
    const out = [];
    for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
      for (const digit of [1, 2, 5]) {
        const value = digit * Math.pow(10, power);
        if (value >= min * 0.999 && value <= max * 1.001) out.push(value);
      }
    }
    return out.length > 1 ? out : [min, max];
  }

  function tabs(name, choices, onChange) {
    const bar = document.querySelector("[data-tabs=\"" + name + "\"]");
    if (!bar) return;
    choices.forEach(function (choice, i) {
      const button = add(bar, "button", "", choice[1]);
      button.type = "button";
      button.setAttribute("aria-pressed", String(i === 0));
      button.addEventListener("click", function () {
        for (const other of bar.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
        onChange(choice[0]);
      });
    });
  }

  function boxes(name) {
    return Array.from(document.querySelectorAll("[data-chart=\"" + name + "\"]"));
  }

  return { data, dark, css, color, dash, shown, us, add, place, tooltip, faultsAt, marks, chart, decades, tabs, boxes };
})();
