// The charts of a simulation's report.
"use strict";
(function () {
  const { data, css, color, dash, shown, us, add, place, boxes } = loom;
  const times = Array.from({ length: data.steps }, function (_, i) { return (i + 0.5) * data.step; });
  const together = { key: "time", scales: ["x", null] };
  const seconds = function (time) { return shown(time) + " s"; };
  const during = function (step) {
    return function (time) { return shown(time - step / 2) + " s to " + shown(time + step / 2) + " s"; };
  };
  const begin = during(data.step);
  const faults = data.faults.map(function (fault) { return { at: fault.at, until: fault.until, what: fault.what }; });
  const fill = function (paint) { return paint + "22"; };

  // Without times of their own, the series have those of the page.
  function overTime(caption, series, unit, value, bands, ownTimes, ownStep) {
    const at = ownTimes || times;
    return {
      caption: caption,
      data: [at].concat(series.map(function (one) { return one.values; })),
      options: {
        scales: { x: { time: false, range: function (u, min, max) {
          const all = min <= at[0] && max >= at[at.length - 1];
          return all ? [0, Math.max(data.end, at[at.length - 1])] : [min, max];
        } }, y: { range: function (u, min, max) { return [0, (max || 1) * (bands.length > 0 ? 1.3 : 1.08)]; } } },
        axes: [
          { values: function (u, ticks) { return ticks.map(seconds); } },
          { size: 64, values: function (u, ticks) { return ticks.map(value); }, label: unit, labelSize: 18, labelFont: "11px system-ui, sans-serif" },
        ],
        series: [{}].concat(series.map(function (one, i) {
          const paint = color(i);
          return {
            label: one.name, stroke: paint, paint: paint, width: series.length > 12 ? 1 : 1.6, dash: dash(i),
            fill: series.length === 1 ? fill(paint) : undefined, points: { show: at.length < 3 },
          };
        })),
        cursor: { sync: together, drag: { x: true, y: false } },
        plugins: [loom.marks(bands), loom.tooltip(ownStep ? during(ownStep) : begin, function (v) { return value(v) + (value === us ? "" : " " + unit); }, loom.faultsAt)],
      },
    };
  }

  loom.overTime = overTime;
  loom.faults = faults;

  for (const box of boxes("total")) {
    loom.chart(box, 260, function () {
      return overTime("Throughput of all hosts", [{ name: "all hosts", values: data.total.mb }], "MB/s", shown, faults);
    });
  }
  for (const box of boxes("response")) {
    loom.chart(box, 170, function () {
      const values = data.total.us.map(function (v) { return v > 0 ? v : null; });
      return overTime("Mean response time", [{ name: "all hosts", values: values }], "", us, faults);
    });
  }

  const quantities = { mb: ["Throughput", "MB/s", shown], iops: ["Requests per second", "IOPS", shown], us: ["Mean response time", "", us] };
  let quantity = "mb";
  for (const box of boxes("hosts")) {
    const draw = loom.chart(box, 300, function () {
      if (data.hosts.length === 0) return null;
      const q = quantities[quantity];
      const series = data.hosts.map(function (host) { return { name: host.name, values: host[quantity] }; });
      return overTime(q[0], series, q[1], q[2], faults);
    });
    loom.tabs("host", [["mb", "MB/s"], ["iops", "IOPS"], ["us", "response time"]], function (choice) {
      quantity = choice;
      draw();
    });
  }

  for (const box of boxes("finding")) {
    const finding = data.findings[Number(box.dataset.finding)];
    const victims = data.hosts.filter(function (host) { return finding.victims.includes(host.name); });
    if (victims.length === 0) {
      box.remove();
      continue;
    }
    const bands = finding.from === null ? [] : [{ at: finding.from, until: finding.until === null ? data.end : finding.until, what: finding.culprit || "" }];
    loom.chart(box, 210, function () {
      return overTime("Throughput of the victims", victims.map(function (host) { return { name: host.name, values: host.mb }; }), "MB/s", shown, bands);
    });
  }

  function latencyMarks() {
    return { hooks: { draw: function (u) {
      const ctx = u.ctx, ratio = devicePixelRatio, box = u.bbox;
      ctx.save();
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      ctx.font = 11 * ratio + "px sans-serif";
      ctx.strokeStyle = css("soft");
      ctx.fillStyle = css("soft");
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      data.marks.forEach(function (mark, i) {
        const x = u.valToPos(mark[1], "x", true);
        if (x < box.left || x > box.left + box.width) return;
        ctx.beginPath();
        ctx.moveTo(x, box.top);
        ctx.lineTo(x, box.top + box.height);
        ctx.stroke();
        const width = ctx.measureText(mark[0]).width;
        ctx.fillText(mark[0], Math.min(x + 4 * ratio, box.left + box.width - width), box.top + (12 + 14 * i) * ratio);
      });
      ctx.restore();
    } } };
  }
  function overLatency(caption, x, y, label, scale, paths, head, range) {
    const paint = color(0);
    return {
      caption: caption,
      data: [x, y],
      options: {
        scales: { x: { time: false, distr: 3 }, y: { range: range } },
        axes: [
          { splits: loom.decades, filter: function (u, ticks) { return ticks; }, values: function (u, ticks) { return ticks.map(us); } },
          { size: 58, values: function (u, ticks) { return ticks.map(function (t) { return shown(t) + " %"; }); } },
        ],
        series: [{}, { label: label, stroke: paint, paint: paint, width: 1.5, fill: fill(paint), paths: paths, points: { show: false } }],
        cursor: { drag: { x: true, y: false } },
        plugins: [latencyMarks(), loom.tooltip(head, function (v) { return shown(v) + " %"; })],
      },
    };
  }
  for (const box of boxes("histogram")) {
    loom.chart(box, 250, function () {
      const x = data.bins.map(function (bin) { return bin[0]; }), y = data.bins.map(function (bin) { return bin[2]; });
      x.push(data.bins[data.bins.length - 1][1]);
      y.push(0);
      return overLatency("Share of requests by response time", x, y, "requests", "x", uPlot.paths.stepped({ align: 1 }), function (t, i) {
        const bin = data.bins[Math.min(i, data.bins.length - 1)];
        return us(bin[0]) + " to " + us(bin[1]);
      }, function (u, min, max) { return [0, max * 1.1]; });
    });
  }
  for (const box of boxes("cdf")) {
    loom.chart(box, 250, function () {
      const x = data.cdf.map(function (p) { return p[0]; }), y = data.cdf.map(function (p) { return p[1]; });
      return overLatency("Share of requests that took at most this long", x, y, "requests", "x", undefined,
        function (t) { return "at most " + us(t); }, function () { return [0, 102]; });
    });
  }

  // Links over time: a row for each direction, a cell for each step.
  for (const box of boxes("heat")) {
    if (data.links.length === 0 || data.steps === 0) {
      add(box, "p", "none", "No time series.");
      continue;
    }
    const canvas = add(box, "canvas"), tip = add(box, "div", "tip"), ramp = add(box, "p", "ramp note");
    const row = 17, foot = 22;
    let links = data.links;
    const mean = function (values) { return values.reduce(function (a, b) { return a + b; }, 0) / values.length; };
    let kind = "load", left = 0;
    tip.hidden = true;
    const label = function (link) { return link.name + "   " + link.label; };
    function mix(share) {
      const parse = function (hex) { return [1, 3, 5].map(function (i) { return parseInt(hex.slice(i, i + 2), 16); }); };
      const from = parse(css("zebra")), to = parse(css(kind));
      const s = Math.pow(Math.max(0, Math.min(1, share)), 0.8);
      return "rgb(" + from.map(function (v, i) { return Math.round(v + (to[i] - v) * s); }).join(",") + ")";
    }
    function draw() {
      const ratio = devicePixelRatio, width = Math.max(box.clientWidth, 300), height = links.length * row + foot;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.height = height + "px";
      const ctx = canvas.getContext("2d");
      ctx.scale(ratio, ratio);
      ctx.font = "11px system-ui, sans-serif";
      ctx.textBaseline = "middle";
      const widest = Math.max(...links.map(function (link) { return ctx.measureText(label(link)).width; }));
      left = Math.min(widest + 14, width * 0.36);
      const cell = (width - left) / data.steps;
      links.forEach(function (link, y) {
        ctx.fillStyle = css("ink");
        let text = label(link);
        while (text.length > 4 && ctx.measureText(text).width > left - 8) text = text.slice(0, -2) + "…";
        ctx.fillText(text, 0, y * row + row / 2);
        link[kind].forEach(function (value, x) {
          ctx.fillStyle = mix(value / 100);
          ctx.fillRect(left + x * cell, y * row, Math.ceil(cell * ratio) / ratio + 0.3, row - 1);
        });
      });
      const bottom = links.length * row, end = data.steps * data.step;
      const at = function (time) { return left + (width - left) * time / end; };
      ctx.strokeStyle = css("fault");
      ctx.setLineDash([4, 3]);
      for (const fault of data.faults) {
        for (const time of [fault.at, fault.until]) {
          if (time === null || time > end) continue;
          ctx.beginPath();
          ctx.moveTo(at(time), 0);
          ctx.lineTo(at(time), bottom + 4);
          ctx.stroke();
        }
      }
      ctx.fillStyle = css("soft");
      for (let i = 0; i <= 5; i++) {
        const text = shown(end * i / 5) + " s";
        ctx.textAlign = i === 0 ? "left" : i === 5 ? "right" : "center";
        ctx.fillText(text, at(end * i / 5), bottom + 13);
      }
      ctx.textAlign = "left";
      ramp.replaceChildren("0 %");
      add(ramp, "i").style.background = "linear-gradient(to right," + [0, .25, .5, .75, 1].map(mix).join(",") + ")";
      ramp.append("100 % " + (kind === "load" ? "of the time the line carried frames" : "of the time a frame waited for credit"));
    }
    canvas.addEventListener("mousemove", function (event) {
      const x = Math.floor((event.offsetX - left) / ((canvas.clientWidth - left) / data.steps));
      const link = links[Math.floor(event.offsetY / row)];
      tip.hidden = !link || x < 0 || x >= data.steps;
      if (tip.hidden) return;
      tip.replaceChildren();
      add(tip, "b", "", label(link));
      add(tip, "div", "", begin(times[x]));
      add(tip, "div", "", "utilisation " + shown(link.load[x]) + " %");
      add(tip, "div", "", "waited for credit " + shown(link.wait[x]) + " %");
      for (const text of loom.faultsAt(times[x])) add(tip, "em", "", text);
      place(tip, box, event.offsetX, event.offsetY);
    });
    canvas.addEventListener("mouseleave", function () { tip.hidden = true; });
    loom.tabs("heat", [["load", "utilisation"], ["wait", "credit starvation"]], function (choice) {
      kind = choice;
      links = data.links.slice();
      if (kind === "wait") links.sort(function (a, b) { return mean(b.wait) - mean(a.wait); });
      draw();
    });
    draw();
    new ResizeObserver(draw).observe(box);
    loom.dark.addEventListener("change", draw);
  }
})();
