// Draws the figures of a page from the JSON beside them, and makes choices and sliders work.
"use strict";
(() => {
  const prefixes = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1], ["m", 1e-3], ["µ", 1e-6], ["n", 1e-9]];

  // text writes a number with its unit and up to so many digits: 1.23e-5 s is "12.3 µs", 0.5 % is "50 %".
  function text(v, unit, digits = 3) {
    if (unit === "%") return short(v * 100, digits) + " %";
    if (!unit) return short(v, digits);
    if (unit === "÷") return short(v, digits) + "×";
    if (v === 0) return "0 " + unit;
    const [prefix, scale] = prefixes.find(([, s]) => Math.abs(v) >= s * 0.9999) || prefixes.at(-1);
    return short(v / scale, digits) + " " + prefix + unit;
  }

  function short(v, digits) {
    const rounded = Number(v.toPrecision(digits));
    return Math.abs(rounded) >= 1e6 || (rounded !== 0 && Math.abs(rounded) < 1e-4) ? rounded.toExponential() : String(rounded);
  }

  const symbols = ["circle", "square", "triangle", "diamond", "cross", "star", "wye"];
  const colour = (i) => (i < 0 ? "var(--text)" : `var(--c${i % 7})`);

  // axis describes one axis. values are what is drawn along it, each how many numbers have room.
  function axis(a, values, each) {
    const options = { label: null, tickSize: 4 };
    if (a.names) return { ...options, type: "band", domain: a.names, tickFormat: (d) => d, padding: 0.08 };
    options.tickFormat = (v) => text(v, a.unit);
    if (a.log) {
      const [low, high] = a.low || a.high ? [a.low, a.high] : d3.extent(values);
      const margin = low === high ? 2 : (high / low) ** 0.03;
      const domain = a.low || a.high ? [low, high] : [low / margin, high * margin];
      return { ...options, type: "log", domain, ticks: logTicks(domain, Math.max(3, each)) };
    }
    options.ticks = Math.max(2, Math.min(8, each));
    options.nice = !(a.low || a.high);
    if (a.low || a.high) options.domain = [a.low, a.high];
    return options;
  }

  // logTicks are round numbers, at most so many unless there are more powers of ten.
  function logTicks([low, high], most) {
    let ticks = [];
    for (const mantissas of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7], d3.range(1, 10, 0.5), d3.range(1, 10, 0.1)]) {
      const more = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
        for (const m of mantissas) {
          const v = Number((m * 10 ** power).toPrecision(6));
          if (v >= low * 0.9999 && v <= high * 1.0001) more.push(v);
        }
      }
      if (more.length > most && ticks.length > 1) break;
      ticks = more;
    }
    const skip = Math.ceil(ticks.length / Math.max(most, 2));
    return skip > 1 ? ticks.filter((_, i) => i % skip === 0) : ticks;
  }

  // along lists the numbers that are drawn along an axis.
  function along(spec, key) {
    return spec.marks.filter((m) => m.kind !== "texts").flatMap((m) => m.rows.flatMap((r) =>
      [r[key], r[key + "2"]].filter((v) => typeof v === "number" && (v > 0 || !spec[key].log))));
  }

  function marks(spec, width) {
    const out = [];
    for (const m of spec.marks) {
      const fill = colour(m.series);
      switch (m.kind) {
        case "dots":
          out.push(Plot.dot(m.rows, {
            x: "x", y: "y", r: m.large ? 7 : m.rows.length > 150 ? 2.5 : 4, symbol: symbols[Math.max(m.series, 0) % symbols.length],
            fill: m.hollow ? "none" : fill, fillOpacity: m.large ? 1 : 0.75,
            stroke: m.hollow ? fill : m.large ? "var(--page)" : "none", strokeWidth: m.hollow ? 1.5 : 2,
          }));
          break;
        case "line":
          out.push(Plot.line(m.rows, { x: "x", y: "y", stroke: fill, strokeWidth: m.dashed ? 1.25 : 2,
            strokeDasharray: m.dashed ? "5 4" : null, strokeOpacity: m.series < 0 ? 0.65 : 1 }));
          break;
        case "band":
          out.push(Plot.areaY(m.rows, { x: "x", y1: "y", y2: "y2", fill, fillOpacity: 0.15 }));
          break;
        case "bars":
          out.push(Plot.barX(m.rows, { x1: "x", x2: "x2", y: "y", fill, insetLeft: 0.5, insetRight: 0.5 }));
          break;
        case "groups":
          out.push(Plot.barX(m.rows, { x: "x", y: () => spec.series[m.series], fy: "y", fill, insetTop: 0.5, insetBottom: 0.5 }));
          out.push(Plot.text(m.rows, { x: "x", y: () => spec.series[m.series], fy: "y", text: (d) => text(d.x, spec.x.unit),
            textAnchor: "start", dx: 4, fill: "var(--text)" }));
          break;
        case "cells":
          out.push(Plot.cell(m.rows, { x: "x", y: "y", fill: "v", inset: 0.5 }));
          if (width >= 600) {
            out.push(Plot.text(m.rows, { x: "x", y: "y", text: (d) => short(d.v * (spec.scale.unit === "%" ? 100 : 1), 2),
              fill: (d) => ink(d.v, spec.scale), fontSize: 11 }));
          }
          break;
        case "boxes":
          out.push(Plot.rect(m.rows, { x1: "x", y1: "y", x2: "x2", y2: "y2", fill: "v" }));
          break;
        case "texts":
          out.push(Plot.text(m.rows, { x: "x", y: "y", text: "tip", fill, textAnchor: "start", dx: 4, dy: -8,
            stroke: "var(--page)", strokeWidth: 4 }));
          break;
      }
    }
    return out.concat(tips(spec, width));
  }

  // ink is the colour of a number that can be read on the colour of its cell.
  function ink(v, scale) {
    return d3.lab(d3.interpolateViridis((v - scale.low) / (scale.high - scale.low))).l > 55 ? "#000" : "#fff";
  }

  // tips shows what is nearest to the pointer.
  function tips(spec, width) {
    const rows = spec.marks.filter((m) => m.kind !== "texts").flatMap((m) => m.rows.filter((r) => r.tip).map((r) => {
      const tip = { text: r.tip, x: r.x, y: r.y };
      if (m.kind === "bars") tip.x = (r.x + r.x2) / 2;
      if (m.kind === "groups") Object.assign(tip, { y: spec.series[m.series], fy: r.y });
      if (m.kind === "boxes") Object.assign(tip, { x: spec.x.log ? Math.sqrt(r.x * r.x2) : (r.x + r.x2) / 2,
        y: spec.y.log ? Math.sqrt(r.y * r.y2) : (r.y + r.y2) / 2 });
      return tip;
    }));
    if (rows.length === 0) return [];
    const options = { x: "x", y: "y", title: "text", maxRadius: 60 };
    if (rows[0].fy !== undefined) options.fy = "fy";
    const tip = { ...options, fill: "var(--panel)", stroke: "var(--strong)", lineWidth: width < 600 ? 18 : 30 };
    return [Plot.tip(rows, spec.y.names ? Plot.pointerY(tip) : Plot.pointer(tip))];
  }

  // longest is the room that names need, in pixels. A narrow page has less room for them.
  function longest(names, width) {
    return Math.min(Math.max(...names.map((n) => n.length)) * 7.2 + 16, width * 0.5);
  }

  function cut(name, room) {
    const most = Math.max(4, Math.floor((room - 14) / 7));
    return name.length > most ? name.slice(0, most - 1) + "…" : name;
  }

  function draw(spec, width) {
    const cells = spec.marks.some((m) => m.kind === "cells");
    const groups = spec.marks.some((m) => m.kind === "groups");
    const names = spec.y.names;
    const left = names ? longest(names, width) : spec.y.unit ? 84 : 56;
    let height = spec.square ? Math.min(width, 620) : Math.max(260, Math.min(width * 0.5, 460));
    if (groups) height = names.length * (spec.series.length * 18 + 12) + 70;
    else if (names) height = names.length * (cells ? Math.min(34, Math.max(16, width / 30)) : 24) + 70;
    const plotWidth = spec.square ? Math.min(width, 700) : cells ? Math.min(width, left + spec.x.names.length * 64 + 24) : width;
    // Names across lean where there is no room for them, and then take more of the height.
    const lean = cells && plotWidth < 600;
    const below = lean ? 18 + Math.max(...spec.x.names.map((n) => n.length)) * 8 : 42;
    height += below - 42;
    const options = {
      width: plotWidth, height, marginLeft: left, marginRight: groups ? 56 : 28, marginTop: 26, marginBottom: below,
      x: { ...axis(spec.x, along(spec, "x"), Math.floor((plotWidth - left) / 80)), label: spec.x.label, labelAnchor: "center", labelArrow: "none" },
      y: { ...axis(spec.y, along(spec, "y"), Math.floor(height / 50)), label: names && !cells ? null : spec.y.label, labelArrow: "none" },
      color: { type: "identity" },
      style: { fontSize: "12px" },
      marks: [],
    };
    if (spec.scale) options.color = { type: spec.scale.log ? "log" : "linear", scheme: "viridis" };
    if (spec.scale && spec.scale.high) options.color.domain = [spec.scale.low, spec.scale.high];
    if (cells) options.color.type = "linear";
    if (lean) options.x.tickRotate = -55;
    if (groups) {
      options.fy = { domain: names, label: null, axis: "left", padding: 0.18, tickFormat: (n) => cut(n, left) };
      options.y = { domain: spec.series, axis: null, padding: 0.05 };
    } else if (names) {
      options.y.tickFormat = (n) => cut(String(n), left);
    }
    if (!cells) options.marks.push(Plot.gridX(options.x.type === "log" ? options.x.ticks : undefined, { stroke: "var(--line)", strokeOpacity: 1 }));
    if (!names) options.marks.push(Plot.gridY(options.y.type === "log" ? options.y.ticks : undefined, { stroke: "var(--line)", strokeOpacity: 1 }));
    for (const [key, mark] of [["x", Plot.axisX], ["y", Plot.axisY]]) {
      const o = options[key];
      if (o.type !== "log") continue;
      // Given as a mark, as a scale writes only some of its ticks.
      options.marks.push(mark(o.ticks, { text: o.tickFormat, label: o.label, labelAnchor: o.labelAnchor, labelArrow: "none", tickSize: 4 }));
    }
    options.marks.push(...marks(spec, width));
    return Plot.plot(options);
  }

  function legend(spec) {
    const used = new Set(spec.marks.map((m) => m.series));
    const shown = spec.series.map((name, i) => [name, i]).filter(([, i]) => used.has(i));
    if (spec.scale) return ramp(spec);
    if (shown.length < 2) return null;
    const list = document.createElement("ul");
    list.className = "legend";
    for (const [name, i] of shown) {
      const item = document.createElement("li");
      const points = spec.marks.some((m) => m.series === i && m.kind === "dots");
      const path = points ? d3.symbol(d3["symbol" + symbols[i % symbols.length].replace(/^./, (c) => c.toUpperCase())], 70)()
        : "M-6,-6H6V6H-6Z";
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      mark.setAttribute("viewBox", "-7 -7 14 14");
      mark.setAttribute("aria-hidden", "true");
      const shape = mark.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
      shape.setAttribute("d", path);
      shape.setAttribute("fill", colour(i));
      item.append(mark, name);
      list.append(item);
    }
    return list;
  }

  // ramp says what the colours of numbers mean.
  function ramp(spec) {
    const values = spec.marks.flatMap((m) => m.rows.filter((r) => r.v !== undefined).map((r) => r.v));
    const box = document.createElement("div");
    box.className = "ramp";
    const bar = document.createElement("span");
    bar.className = "bar";
    bar.style.background = `linear-gradient(to right, ${d3.range(0, 1.01, 0.1).map(d3.interpolateViridis).join(",")})`;
    const [low, high] = spec.scale.high ? [spec.scale.low, spec.scale.high] : d3.extent(values);
    box.append(`${spec.scale.label}: ${text(low, spec.scale.unit)}`, bar, text(high, spec.scale.unit));
    return box;
  }

  function show(figure) {
    const spec = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const place = figure.querySelector(".plot");
    const keys = legend(spec);
    if (keys) place.before(keys);
    let last = 0;
    const redraw = () => {
      const width = Math.floor(place.clientWidth);
      if (width < 40 || width === last) return;
      last = width;
      const svg = draw(spec, width);
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-labelledby", figure.querySelector("figcaption").id);
      for (const child of svg.children) child.setAttribute("aria-hidden", "true");
      place.replaceChildren(svg);
    };
    new ResizeObserver(() => requestAnimationFrame(redraw)).observe(place);
    figure.redraw = redraw;
    redraw();
  }

  function choose(choice) {
    const select = choice.querySelector("select");
    const panels = [...choice.querySelectorAll(":scope > .panel")];
    const update = () => panels.forEach((p) => {
      p.hidden = p.id !== select.value;
      p.querySelectorAll("figure.chart").forEach((f) => f.redraw && f.redraw()); // it had no width before
    });
    choice.classList.add("drawn");
    if (panels.length < 2) choice.querySelector(".chooser").hidden = true;
    select.addEventListener("change", update);
    update();
  }

  // whatIf looks the answer up among those that the page has, or asks for it.
  function whatIf(box) {
    const spec = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
    const out = box.querySelector("output");
    const at = spec.sliders.map((s) => s.at);
    const base = spec.times[spec.base];
    const say = (seconds, note) => {
      const known = seconds > 0;
      const facts = [["Predicted time", known ? text(seconds, "s") : "–"],
        ["Beside the device's own", known ? text(seconds / base, "÷") + " the time" : "–"], ["Kernel", note]];
      out.replaceChildren(...facts.map(([label, value]) => {
        const fact = document.createElement("div"), name = document.createElement("div");
        name.className = "label";
        name.textContent = label;
        fact.append(name, value);
        return fact;
      }));
    };
    let asked = 0;
    const update = async () => {
      const i = spec.sliders.reduce((sum, s, k) => sum * s.values.length + Math.round(at[k]), 0);
      const mine = ++asked;
      const step = spec.sliders.every((s, k) => Number.isInteger(at[k]));
      if (step && (spec.times[i] || !spec.ask)) return say(spec.times[i], spec.notes[i]);
      await new Promise((done) => setTimeout(done, 120)); // until the slider rests
      if (mine !== asked) return;
      const changes = spec.sliders.filter((s, k) => at[k] !== s.at)
        .map((s) => `${s.name}=${value(s, at[spec.sliders.indexOf(s)])}${s.unit}`).join(",");
      try {
        const reply = await fetch(spec.ask.replace("CHANGES", encodeURIComponent(changes)));
        const answer = await reply.json();
        if (mine !== asked) return; // a later question is on its way
        if (!reply.ok) return say(NaN, answer.error.what);
        const c = answer.config;
        say(answer.predicted.seconds, `${c.block_m}x${c.block_n}x${c.block_k}, ${answer.predicted.bound}-bound`);
      } catch {
        say(NaN, "the server does not answer");
      }
    };
    spec.sliders.forEach((s, k) => {
      const id = `${box.id}-${k}`;
      const field = document.createElement("div");
      field.innerHTML = `<label for="${id}"><span></span><strong></strong></label><input type="range" id="${id}">`;
      field.querySelector("span").textContent = s.label;
      const number = field.querySelector("strong"), input = field.querySelector("input");
      Object.assign(input, { min: 0, max: s.values.length - 1, step: spec.ask ? 0.05 : 1, value: s.at });
      const name = () => {
        number.textContent = text(value(s, at[k]), s.unit);
        input.setAttribute("aria-valuetext", number.textContent);
      };
      input.addEventListener("input", () => { at[k] = Number(input.value); name(); update(); });
      name();
      box.querySelector(".sliders").append(field);
    });
    update();
  }

  // value is a slider's number at a place, between two steps too. Units are whole.
  function value(s, at) {
    const i = Math.min(Math.floor(at), s.values.length - 2);
    const v = s.values[i] + (s.values[i + 1] - s.values[i]) * (at - i);
    return s.unit ? Math.round(v) : Math.max(1, Math.round(v));
  }

  document.querySelectorAll(".choice").forEach(choose);
  document.querySelectorAll("figure.chart").forEach(show);
  document.querySelectorAll(".whatif").forEach(whatIf);
  document.documentElement.dataset.drawn = "true";
})();
