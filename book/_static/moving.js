/* Figures that answer. A page carries their data as JSON beside the still picture, which this
   replaces on a screen; where there is no script, and on paper, the still picture stays. */
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";

  function add(parent, name, attributes = {}, text = null) {
    const svg = parent.namespaceURI === SVG || name === "svg";
    const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    return parent.appendChild(node);
  }

  const mean = values => values.reduce((a, b) => a + b, 0) / values.length;

  /* Quantile bins: equal predictions share the bin of their middle rank. */
  function bins(y, q, count) {
    const order = q.map((_, i) => i).sort((a, b) => q[a] - q[b]), found = new Map();
    for (let i = 0, j = 0; i < order.length; i = j) {
      while (j < order.length && q[order[j]] === q[order[i]]) j++;
      const b = Math.floor(count * (i + j) / 2 / order.length);
      if (!found.has(b)) found.set(b, { rows: 0, y: 0, q: 0 });
      for (const k of order.slice(i, j)) { found.get(b).rows++; found.get(b).y += y[k]; found.get(b).q += q[k]; }
    }
    return [...found.values()].map(b => ({ rows: b.rows, y: b.y / b.rows, q: b.q / b.rows }));
  }

  function scores(y, q, p, count) {
    const gaps = bins(y, q, count).map(b => b.rows * Math.abs(b.y - b.q));
    const square = other => mean(q.map((v, i) => (v - other[i]) ** 2));
    return { ece: gaps.reduce((a, b) => a + b, 0) / y.length, brier: square(y), mse_p: square(p) };
  }

  const turned = (s, temperature, intercept) =>
    s.map(v => 1 / (1 + Math.exp(-(v / temperature + intercept))));

  /* Student's interval; `t` holds the quantiles by number of values. */
  function interval(values, t) {
    const middle = mean(values), n = values.length;
    if (n < 2) return { value: middle };
    const variance = values.reduce((a, v) => a + (v - middle) ** 2, 0) / (n - 1);
    const half = t[n] * Math.sqrt(variance / n);
    return { value: middle, low: middle - half, high: middle + half };
  }

  const points = (xs, ys) => xs.map((x, i) => `M${x.toFixed(1)} ${ys[i].toFixed(1)}h0`).join("");

  function ticksOf(axis) {
    if (axis.ticks) return axis.ticks;
    const round = [-3, -2, -1, 0, 1, 2].flatMap(e => [1, 2, 5].map(m => m * 10 ** e)), found = [];
    if (axis.log) return round.filter(v => v >= axis.from && v <= axis.to);
    const step = round.find(s => (axis.to - axis.from) / s <= 6) || 1000;
    for (let k = Math.ceil(axis.from / step); k * step <= axis.to; k++) found.push(k * step);
    return found;
  }

  /* Axes in a box of the drawing; returns their two scales. */
  function axes(svg, [left, top, width, height], x, y, title) {
    const scale = (axis, from, length) => {
      const f = axis.log ? Math.log : v => v;
      return v => from + length * (f(v) - f(axis.from)) / (f(axis.to) - f(axis.from));
    };
    const px = scale(x, left, width), py = scale(y, top + height, -height);
    const write = v => typeof v === "number" ? String(+v.toPrecision(3)) : v;
    for (const v of ticksOf(x)) {
      add(svg, "path", { class: "grid", d: `M${px(v)} ${top}v${height}` });
      add(svg, "text", { x: px(v), y: top + height + 15, "text-anchor": "middle" }, write(v));
    }
    ticksOf(y).forEach((v, k) => {
      if (!y.names) add(svg, "path", { class: "grid", d: `M${left} ${py(v)}h${width}` });
      add(svg, "text", { x: left - 6, y: py(v) + 4, "text-anchor": "end" }, y.names ? y.names[k] : write(v));
    });
    add(svg, "path", { class: "axis", d: `M${left} ${top}v${height}h${width}` });
    add(svg, "text", { x: left + width / 2, y: top + height + 32, "text-anchor": "middle" }, x.label);
    if (y.label) add(svg, "text", { "text-anchor": "middle",
      transform: `translate(${left - 38} ${top + height / 2}) rotate(-90)` }, y.label);
    if (title) add(svg, "text", { x: left, y: top - 8, class: "title" }, title);
    return [px, py];
  }

  function legend(svg, left, top, entries, apart = 190) {
    entries.forEach(([name, text], k) => {
      add(svg, "path", { class: `${name} key`, d: `M${left + apart * k} ${top}h14` });
      add(svg, "text", { x: left + apart * k + 20, y: top + 4 }, text);
    });
  }

  const unit = (label, ticks = [0, 0.25, 0.5, 0.75, 1]) => ({ from: 0, to: 1, ticks, label });
  const digits = values => [...values].map(Number);

  // ---- controls: the browser's own, so that a keyboard and a screen reader work them

  function controls(bar, draw) {
    const labelled = text => add(bar, "label", {}, text + " ");
    return {
      choice(text, options) {
        const field = add(labelled(text), "select");
        for (const [value, name = value] of options) add(field, "option", { value }, name);
        field.addEventListener("change", draw);
        return field;
      },
      slider(text, min, max, step, value, show = String) {
        const label = labelled(text), field = add(label, "input", { type: "range", min, max, step, value });
        const told = add(label, "output");
        field.told = () => { told.textContent = show(+field.value); };
        field.addEventListener("input", draw);
        return field;
      },
      button(text, act) {
        add(bar, "button", { type: "button" }, text).addEventListener("click", () => { act(); draw(); });
      },
    };
  }

  // ---- the figures: each sets up its controls and returns what draws it

  const figures = {
    reliability(data, make) {
      const scenario = make.choice("Scenario", Object.keys(data.scenarios).map(s => [s]));
      const row = make.choice("Row", Object.entries(data.labels));
      const count = make.slider("Bins", 2, 50, 1, data.bins);
      const heat = make.slider("Temperature", -2, 2, 0.05, 0, v => (2 ** v).toFixed(2));
      const shift = make.slider("Intercept", -2, 2, 0.05, 0, v => v.toFixed(2));
      make.button("As stored", () => { heat.value = shift.value = 0; });
      return (svg, tell) => {
        const part = data.scenarios[scenario.value], y = digits(part.y), p = part.p.map(v => v / 1e4);
        for (const option of row.options) option.disabled = !(option.value in part.logits);
        if (row.selectedOptions[0].disabled) row.value = Object.keys(part.logits)[0];
        const stored = part.logits[row.value].map(v => v / 1e3);
        const q = turned(stored, 2 ** +heat.value, +shift.value);
        const [px, py] = axes(svg, [60, 40, 330, 330], unit("Predicted probability"), unit("Observed frequency"));
        legend(svg, 60, 16, [["blue dots", "true probability"], ["line", "observed, by bin"]], 150);
        add(svg, "path", { class: "blue dots", d: points(q.map(px), p.map(py)) });
        add(svg, "path", { class: "diagonal", d: `M${px(0)} ${py(0)}L${px(1)} ${py(1)}` });
        const found = bins(y, q, +count.value);
        add(svg, "path", { class: "line", d: "M" + found.map(b => `${px(b.q)} ${py(b.y)}`).join("L") });
        for (const b of found) add(svg, "circle", { class: "mark", cx: px(b.q), cy: py(b.y), r: 3.5 });
        const now = scores(y, q, p, +count.value), before = scores(y, turned(stored, 1, 0), p, +count.value);
        const [bx, by] = axes(svg, [500, 40, 200, 330],
          { from: 0, to: 100 * Math.max(now.brier, before.brier, 0.1), label: "× 100; outline: as stored" },
          { from: 3, to: 0, ticks: [0.5, 1.5, 2.5], names: ["ECE", "Brier", "MSE_p"] });
        Object.keys(now).forEach((name, k) => {
          const bar = (value, how) => add(svg, "path", { class: how,
            d: `M${bx(0)} ${by(k + 0.25)}H${bx(100 * value)}V${by(k + 0.75)}H${bx(0)}Z` });
          bar(now[name], "bar"); bar(before[name], "outline");
        });
        const write = v => (100 * v).toFixed(2);
        tell(`ECE ${write(now.ece)}, Brier ${write(now.brier)}, MSE_p ${write(now.mse_p)} (× 100)`);
      };
    },

    epochs(data, make) {
      const start = make.choice("From the", Object.keys(data.moves).map(s => [s]));
      const names = Object.keys(data.moves[start.value]);
      const last = data.moves[start.value][names[0]].length - 1;
      const epoch = make.slider("Epoch", 0, last, 1, 0);
      make.button("Next epoch", () => { epoch.value = (+epoch.value + 1) % (last + 1); });
      const y = digits(data.y), p = data.p.map(v => v / 1e3);
      return (svg, tell) => {
        legend(svg, 60, 12, [["blue dots", "outcome 0"], ["vermilion dots", "outcome 1"]], 110);
        const errors = names.map((name, k) => {
          const q = data.moves[start.value][name][+epoch.value].map(v => v / 1e3);
          const error = data.errors[start.value][name][+epoch.value];
          const [px, py] = axes(svg, [60 + 225 * k, 52, 195, 195], unit("prediction", [0, 0.5, 1]),
            unit(k ? "" : "true probability", [0, 0.5, 1]), name);
          add(svg, "path", { class: "diagonal", d: `M${px(0)} ${py(0)}L${px(1)} ${py(1)}` });
          ["blue dots", "vermilion dots"].forEach((how, outcome) => {
            const rows = y.map((_, i) => i).filter(i => y[i] === outcome);
            add(svg, "path", { class: how, d: points(rows.map(i => px(q[i])), rows.map(i => py(p[i]))) });
          });
          return `${name} ${error.toFixed(2)}`;
        });
        tell(`Epoch ${epoch.value}: MSE_p × 100 on test faces: ${errors.join(", ")}`);
      };
    },

    scenarios(data, make) {
      const scenario = make.choice("Scenario", Object.keys(data.scenarios).map(s => [s]));
      return (svg, tell) => {
        const { curves, rows } = data.scenarios[scenario.value];
        const low = Math.min(...curves.flatMap(c => c.error)), high = Math.max(...curves.flatMap(c => c.error));
        const long = Math.max(...curves.flatMap(c => c.epoch));
        legend(svg, 60, 12, [["vermilion line", "trained on outcomes"], ["blue line", "fresh outcomes in every epoch"]]);
        const [cx, cy] = axes(svg, [60, 40, 280, 250], { from: 0, to: long, label: "Epoch" },
          { from: low / 1.1, to: high * 1.1, log: true, label: "MSE_p × 100" });
        for (const c of curves) add(svg, "path", { class: c.fresh ? "blue line" : "vermilion line",
          d: "M" + c.epoch.map((e, i) => `${cx(e)} ${cy(c.error[i])}`).join("L") });
        const names = Object.keys(rows), all = Object.values(rows).flat(), x = "MSE_p × 100, a mark a seed";
        const [px, py] = axes(svg, [512, 40, 200, 250],
          { from: Math.min(...all) / 1.2, to: Math.max(...all) * 1.2, log: true, label: x },
          { from: names.length, to: 0, ticks: names.map((_, k) => k + 0.5), names });
        names.forEach((name, k) => rows[name].forEach(
          v => add(svg, "circle", { class: "mark", cx: px(v), cy: py(k + 0.5), r: 4 })));
        tell(names.map(name => `${name} ${mean(rows[name]).toFixed(2)}`).join(", "));
      };
    },

    seeds(data, make) {
      const pair = make.choice("Difference", Object.keys(data.pairs).map(s => [s]));
      const all = Math.max(...Object.values(data.pairs[pair.value]).map(v => v.length));
      const count = make.slider("Seeds that count", 1, all, 1, all);
      const first = make.slider("from seed", 0, all - 1, 1, 0);
      return (svg, tell) => {
        first.disabled = +count.value === all;
        const found = Object.entries(data.pairs[pair.value]), names = found.map(([name]) => name);
        const chosen = values => Array.from({ length: Math.min(+count.value, values.length) },
          (_, k) => values[(+first.value + k) % values.length]);
        const seen = found.map(([, values]) => interval(chosen(values), data.t));
        const ends = [0, ...found.flatMap(([, values]) => values), ...seen.flatMap(s => "low" in s ? [s.low, s.high] : [])];
        const room = 0.05 * (Math.max(...ends) - Math.min(...ends)) || 0.01;
        const [px, py] = axes(svg, [90, 30, 600, 44 * names.length],
          { from: Math.min(...ends) - room, to: Math.max(...ends) + room, label: "MSE_p × 100, difference (left of 0: the first is better)" },
          { from: names.length, to: 0, ticks: names.map((_, k) => k + 0.5), names });
        add(svg, "path", { class: "axis", d: `M${px(0)} ${py(0)}V${py(names.length)}` });
        legend(svg, 90, 12, [["grey dots", "a seed's own difference"], ["blue line", "mean of those that count, 95 %"]]);
        const words = { lower: 0, higher: 0, "not told apart": 0 };
        found.forEach(([, values], k) => {
          const y = py(k + 0.5), s = seen[k], alone = !("low" in s);
          add(svg, "path", { class: "grey dots", d: points(values.map(px), values.map(() => y + 9)) });
          if (!alone) add(svg, "path", { class: "blue line", d: `M${px(s.low)} ${y}H${px(s.high)}` });
          add(svg, "circle", { class: alone ? "blue alone" : "blue mark", cx: px(s.value), cy: y, r: 5 });
          const told = alone ? [s.value, s.value] : [s.low, s.high];
          words[told[1] < 0 ? "lower" : told[0] > 0 ? "higher" : "not told apart"]++;
        });
        const said = Object.entries(words).filter(([, n]) => n).map(([word, n]) => `${word} in ${n}`).join(", ");
        tell(`${+count.value === 1 ? "One training would have said" : count.value + " seeds say"}: ${said}`);
      };
    },
  };

  function start(box) {
    const { kind, alt, height, ...data } = JSON.parse(box.querySelector("script").textContent);
    const bar = add(box, "div", { class: "controls" });
    const svg = add(add(box, "div", { class: "drawing" }), "svg", { viewBox: `0 0 730 ${height}`, role: "img", "aria-label": alt });
    const told = add(box, "p", { role: "status" });
    const paint = figures[kind](data, controls(bar, draw));
    function draw() {
      svg.replaceChildren();
      for (const field of bar.querySelectorAll("input")) field.told();
      paint(svg, text => { told.textContent = text; });
    }
    draw();
    box.classList.add("ready");
  }

  window.moving = { scores, turned, interval };
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".moving").forEach(start));
})();
