// A run's bounds as they close: the server's drawing is replaced by one that follows the rounds.
"use strict";
(() => {
  const holder = document.getElementById("live");
  if (!holder || typeof uPlot === "undefined") return;
  const data = JSON.parse(holder.dataset.series);
  const wanted = Number(holder.dataset.wanted);
  const style = () => {
    const found = getComputedStyle(document.documentElement);
    return (name) => found.getPropertyValue(name).trim();
  };
  const positive = (values) => values.map((value) => (value === null ? null : Math.max(value, 1e-12)));
  let charts = [];

  const told = (digits) => (chart, value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(digits))));

  function size(element) { return { width: Math.max(element.clientWidth, 200), height: 260 }; }

  function axes(color) {
    const line = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
    const whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
    return [{ ...line, label: "round", incrs: whole }, { ...line, size: 64 }];
  }

  // Digits enough to tell neighbours apart, and room for them: by itself the drawing ends at three decimals.
  function figures(color) {
    const named = (chart, values, axis, space, step) => {
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      const exact = [digits, digits + 1].find((each) => Math.abs(Number(step.toFixed(each)) - step) < 1e-6 * step);
      return values.map((value) => value.toFixed(Math.min(exact ?? digits, 15)));
    };
    const room = (chart, values) => Math.max(64, 24 + 7 * Math.max(0, ...(values || []).map((value) => value.length)));
    const [across, up] = axes(color);
    return [across, { ...up, values: named, size: room }];
  }

  // Powers of ten alone, eight at most: by itself the drawing rounds .001 and all below it to 0.
  function decades(color) {
    const between = (chart, axis, low, high) => {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      const apart = Math.max(1, Math.ceil((last - first + 1) / 8));
      return Array.from({ length: Math.floor((last - first) / apart) + 1 }, (_, at) => 10 ** (last - at * apart)).reverse();
    };
    const named = (chart, powers) => powers.map((power) => `1e${Math.round(Math.log10(power))}`);
    const [across, up] = axes(color);
    return [across, { ...up, splits: between, values: named, filter: (chart, powers) => powers }];
  }

  function draw() {
    if (!data.round.length) return; // the page says that there is no round yet
    for (const chart of charts) chart.destroy();
    const color = style();
    const x = { time: false };
    const bounds = document.getElementById("bounds");
    const gap = document.getElementById("gap");
    if (!bounds || !gap) return; // a run that tunes alone has no bounds
    bounds.replaceChildren();
    gap.replaceChildren();
    const followed = { legend: { live: true }, cursor: { drag: { x: true, y: false } } };
    charts = [
      new uPlot({ ...size(bounds), ...followed, scales: { x }, axes: figures(color), series: [
        { label: "round" },
        { label: "upper", value: told(6), stroke: color("--series-a"), width: 2 },
        { label: "lower", value: told(6), stroke: color("--series-b"), width: 2, dash: [7, 4] },
      ] }, [data.round, data.upper, data.lower], bounds),
      new uPlot({ ...size(gap), ...followed, scales: { x, y: { distr: 3 } }, axes: decades(color), series: [
        { label: "round" },
        { label: "proven gap", value: told(2), stroke: color("--series-a"), width: 2 },
        { label: "wanted", value: told(2), stroke: color("--series-c"), width: 2, dash: [2, 4] },
      ] }, [data.round, positive(data.gap), data.round.map(() => wanted)], gap),
    ];
  }

  function show() {
    if (!charts.length) return;
    charts[0].setData([data.round, data.upper, data.lower]);
    charts[1].setData([data.round, positive(data.gap), data.round.map(() => wanted)]);
  }

  const tile = (name) => document.getElementById(`told-${name}`);
  const tiles = { rounds: tile("rounds"), gap: tile("gap"), doing: tile("doing") };

  function follow() {
    const source = new EventSource(`${holder.dataset.events}?after=${data.round.at(-1) || 0}`);
    source.addEventListener("rounds", (event) => {
      const news = JSON.parse(event.data);
      for (const name of ["round", "upper", "lower", "gap"]) data[name].push(...news[name]);
      if (tiles.doing) tiles.doing.textContent = news.doing;
      if (tiles.rounds) tiles.rounds.textContent = String(news.rounds);
      const last = data.gap.at(-1);
      if (last !== null && last !== undefined) tiles.gap.textContent = last.toExponential(2);
      if (news.round.length && charts.length) show();
      else if (news.round.length) draw();
    });
    source.addEventListener("end", () => { source.close(); location.reload(); });
    // A browser tries again after a lost connection by itself, but never after an answer such as 503.
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) setTimeout(follow, 5000); });
  }

  draw();
  let width = holder.clientWidth;
  new ResizeObserver(() => {
    if (holder.clientWidth === width) return;
    width = holder.clientWidth;
    charts.forEach((chart) => chart.setSize(size(chart.root.parentElement)));
  }).observe(holder);
  document.addEventListener("ballast:theme", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  if (holder.dataset.live === "yes") follow();
})();
