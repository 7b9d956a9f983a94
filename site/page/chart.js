// Draws figures: numbers as text, SVG with axes, maps, and rows of bars. It knows nothing of what they mean.
"use strict";
const chart = (() => {
  const ns = "http://www.w3.org/2000/svg";

  // h makes an element. Texts become text, whatever is in them.
  function h(name, attributes, ...children) {
    const [tag, ...classes] = name.split(".");
    const e = document.createElement(tag || "div");
    if (classes.length) e.className = classes.join(" ");
    return fill(e, attributes, children);
  }
  function s(name, attributes, ...children) { return fill(document.createElementNS(ns, name), attributes, children); }
  // seen is a text without what moves other letters or is not seen, which names of others may have in them.
  function seen(text) {
    return text.replace(
      /[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => c === "\n" ? c : "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
  }
  function fill(e, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (key.startsWith("on"))
        e.addEventListener(key.slice(2), value);
      else if (key === "style")
        for (const [k, v] of Object.entries(value)) e.style.setProperty(k, v);
      else
        e.setAttribute(key, value === true ? "" : value);
    }
    e.append(...children.flat(3)
        .filter((c) => c !== undefined && c !== null && c !== false && c !== "")
        .map((c) => c instanceof Node ? c : seen(String(c))));
    return e;
  }

  // Numbers as people read them: three digits and a unit.
  const prefixes = [
    [1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"],
    [1e-9, "n"], [1e-12, "p"]
  ];
  function digits(v, n = 3) {
    if (!Number.isFinite(v)) return "–";
    if (v === 0) return "0";
    const a = Math.abs(v);
    if (a >= 10 ** (n - 1)) return String(Math.round(v));
    return Number(v.toPrecision(n)).toFixed(Math.max(0, Math.min(12, n - 1 - Math.floor(Math.log10(a) + 1e-9))));
  }
  function parts(v, unit) {
    if (v === null || v === undefined || !Number.isFinite(v)) return ["–", ""];
    if (v === 0) return ["0", unit];
    if (!unit || unit === "1") return [whole(v), ""];
    if (unit === "%") return [digits(v * 100), "%"];
    const a = Math.abs(v) * (1 + 1e-9);
    const [factor, prefix] = prefixes.find(([f]) => a >= f) || prefixes[prefixes.length - 1];
    return [digits(v / factor), prefix + unit];
  }
  function quantity(v, unit) { return parts(v, unit).filter(Boolean).join("\u202f"); }
  function whole(v) { return Number.isInteger(v) && Math.abs(v) < 1e7 ? String(v) : digits(v, 4); }
  function percent(v) {
    return Math.abs(v) > 0 && Math.abs(v) < 1e-4 ? "under 0.01\u202f%"
                                                 : digits(v * 100, Math.abs(v) < 0.0995 ? 2 : 3) + "\u202f%";
  }
  function span(lo, hi, unit) {
    const [a, u] = parts(lo, unit), [b, w] = parts(hi, unit);
    return u === w ? `${a}–${b}\u202f${w}` : `${a}\u202f${u} – ${b}\u202f${w}`;
  }

  // scale maps numbers to places: linear, log, or between names.
  function scale(axis, from, to) {
    const [lo, hi] = axis.domain, log = axis.log;
    const at = log ? Math.log : (v) => v, a = at(lo), b = at(hi) === a ? a + 1 : at(hi);
    const f = (v) => from + (at(v) - a) / (b - a) * (to - from);
    f.ticks = (count) => ticks(lo, hi, log, axis.base, count);
    return f;
  }
  function ticks(lo, hi, log, base, count) {
    const out = [];
    if (!log) {
      const raw = (hi - lo) / Math.max(1, count), p = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].find((f) => f * p >= raw) * p;
      for (let v = Math.ceil(lo / step - 1e-9) * step; v <= hi * (1 + 1e-9); v += step)
        out.push(Math.abs(v) < step / 1e6 ? 0 : v);
      return out;
    }
    const b = base || 10, first = Math.ceil(Math.log(lo) / Math.log(b) - 1e-9),
          last = Math.floor(Math.log(hi) / Math.log(b) + 1e-9);
    const each = Math.max(1, Math.ceil((last - first + 1) / count));
    for (let i = first; i <= last; i++)
      if ((i - first) % each === 0) out.push(b ** i);
    if (!base && out.length < 3) {
      for (let i = first - 1; i <= last; i++)
        for (const f of [2, 5])
          if (f * 10 ** i >= lo && f * 10 ** i <= hi) out.push(f * 10 ** i);
      out.sort((x, y) => x - y);
    }
    return out.length > 1 ? out : [lo, hi];
  }
  // domain covers numbers with some room.
  function domain(values, { log, zero, room = 0.06 } = {}) {
    const all = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
    let lo = Math.min(...all), hi = Math.max(...all);
    if (!all.length) return [1, 10];
    if (log) {
      const f = (hi / lo) ** room * 1.02;
      return [lo / f, hi * f];
    }
    if (zero) return [0, hi * (1 + room) || 1];
    const d = (hi - lo || Math.abs(hi) || 1) * room;
    return [lo - d, hi + d];
  }

  const wide = (text) => [...text].length * 6.9;
  // trimmed is a quantity at a tick, without the zeros that say how exact a number is.
  const trimmed = (v, unit) => {
    const [a, u] = parts(v, unit);
    return [a.includes(".") ? a.replace(/\.?0+$/, "") : a, u].filter(Boolean).join("\u202f");
  };

  // xy draws marks between two axes, and returns the points that have tips.
  function xy({ width, height, x, y, marks, ends = [] }) {
    const points = [], yTicks = (sy) => sy.ticks(Math.max(2, Math.round(height / 55)));
    const text = (v, axis) => axis.text ? axis.text(v) : axis.unit ? trimmed(v, axis.unit) : whole(v);
    const probe = yTicks(scale(y, height, 0)).map((v) => wide(text(v, y)));
    const room = {
      l: Math.max(34, ...probe) + 10, t: y.label ? 22 : 8, b: x.label ? 38 : 22,
      r: Math.min(width * 0.4, Math.max(12, ...ends.map((e) => wide(e.text) * 1.1 + 14)))
    };
    const sx = scale(x, room.l, width - room.r), sy = scale(y, height - room.b, room.t);
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "drawn" });
    const clip = "c" + Math.random().toString(36).slice(2);
    svg.append(s("clipPath", { id: clip }, s("rect", {
      x: room.l - 1, y: room.t - 6, width: Math.max(1, width - room.l - room.r + 2),
      height: Math.max(1, height - room.t - room.b + 12)
    })));
    const grid = s("g", { class: "grid" });
    for (const v of yTicks(sy)) {
      grid.append(s("line", { x1: room.l, x2: width - room.r, y1: sy(v), y2: sy(v) }),
        s("text", { x: room.l - 8, y: sy(v) + 4, "text-anchor": "end" }, text(v, y)));
    }
    let last = -Infinity;
    for (const v of sx.ticks(Math.max(2, Math.round((width - room.l - room.r) / 64)))) {
      const t = text(v, x), at = sx(v);
      grid.append(s("line", { x1: at, x2: at, y1: height - room.b, y2: height - room.b + 4 }));
      if (at - wide(t) / 2 > last + 6) {
        grid.append(s("text", { x: at, y: height - room.b + 17, "text-anchor": "middle" }, t));
        last = at + wide(t) / 2;
      }
    }
    if (x.label)
      grid.append(s(
        "text", { x: (room.l + width - room.r) / 2, y: height - 4, "text-anchor": "middle", class: "label" }, x.label));
    if (y.label) grid.append(s("text", { x: 0, y: 11, class: "label" }, y.label));
    svg.append(grid);
    const inside = s("g", { "clip-path": `url(#${clip})` }), above = s("g"), taken = [];
    for (const m of marks) {
      if (m.band) {
        const there = m.band.map(([a, lo, hi]) => `${sx(a)},${sy(lo)}`),
              back = m.band.map(([a, , hi]) => `${sx(a)},${sy(hi)}`).reverse();
        inside.append(s("polygon", { points: there.concat(back).join(" "), class: "band", style: { fill: m.color } }));
      }
      if (m.line) {
        inside.append(s("polyline", {
          points: m.line.map(([a, b]) => `${sx(a)},${sy(b)}`).join(" "), class: m.thin ? "line thin" : "line",
          "stroke-dasharray": m.dash, style: { stroke: m.color }
        }));
      }
      for (const d of m.dots || []) {
        const cx = sx(d.x), cy = sy(d.y), r = d.r || 3.5;
        if (d.lo > 0)
          inside.append(
            s("line", { x1: cx, x2: cx, y1: sy(d.lo), y2: sy(d.hi), class: "whisker", style: { stroke: m.color } }));
        inside.append(shape(d.shape, cx, cy, r, m.color, d.hollow));
        if (d.text) {
          let at = cy + 4; // nor those of points beside them
          while (d.left && taken.some((v) => Math.abs(v - at) < 12)) at += 4;
          above.append(s("text", { x: cx + (d.left ? -r - 4 : r + 4), y: at, class: "name",
            "text-anchor": d.left ? "end" : "start" }, d.text));
        }
        if (d.tip) points.push({ x: cx, y: cy, tip: d.tip });
      }
      for (const t of m.texts || []) {
        let at = sy(t.y) + (t.dy || 0); // names at one end of lines do not cover each other
        if (t.anchor === "end") {
          while (taken.some((v) => Math.abs(v - at) < 13)) at -= 13;
          taken.push(at);
        }
        above.append(s("text",
          { x: sx(t.x), y: at, "text-anchor": t.anchor || "start", class: "name", style: { fill: m.color } }, t.text));
      }
    }
    svg.append(inside, above);
    // Names stand at the ends of lines, moved apart.
    const placed = ends.map((e) => ({...e, at: sy(e.y) })).sort((a, b) => a.at - b.at);
    for (let pass = 0; pass < 60; pass++) {
      for (let i = 1; i < placed.length; i++) {
        const lack = 14 - (placed[i].at - placed[i - 1].at);
        if (lack > 0.1) {
          placed[i].at += lack / 2;
          placed[i - 1].at -= lack / 2;
        }
      }
      for (const p of placed) p.at = Math.max(room.t, Math.min(height - room.b, p.at));
    }
    for (const p of placed)
      svg.append(s("text", { x: width - room.r + 7, y: p.at + 4, class: "end", style: { fill: p.color } }, p.text));
    return { svg, points };
  }
  function shape(kind, x, y, r, color, hollow) {
    const style = hollow ? { stroke: color, fill: "var(--card)" } : { fill: color };
    const path = (d) => s("path", { d, class: "dot", style });
    switch (kind) {
    case 1:
      return path(`M${x - r},${y - r}h${2 * r}v${2 * r}h${- 2 * r}z`);
    case 2:
      return path(`M${x},${y - r * 1.3}l${r * 1.2},${r * 2.1}h${- 2.4 * r}z`);
    case 3:
      return path(
        `M${x},${y - r * 1.35}l${r * 1.35},${r * 1.35}l${- r * 1.35},${r * 1.35}l${- r * 1.35},${- r * 1.35}z`);
    default:
      return s("circle", { cx: x, cy: y, r, class: "dot", style });
    }
  }

  // cells draws a map: a place for each row and column, with a colour and, where there is room, a text.
  function cells({ width, rows, columns, cells: all, x, y }) {
    const left = Math.max(...rows.map(wide)) + 26, size = Math.min(64, (width - left) / columns.length),
          tall = Math.max(12, Math.min(size, 30));
    const height = rows.length * tall + 40, points = [];
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "drawn" });
    const grid = s("g", { class: "grid" }), everyRow = Math.ceil(14 / tall);
    const every = Math.ceil((Math.max(...columns.map(wide)) + 6) / size);
    rows.forEach((name, i) => {
      if (i % everyRow === 0)
        grid.append(s("text", { x: left - 6, y: (i + 0.5) * tall + 4, "text-anchor": "end" }, name));
    });
    columns.forEach((name, j) => {
      if (j % every === 0)
        grid.append(
          s("text", { x: left + (j + 0.5) * size, y: rows.length * tall + 16, "text-anchor": "middle" }, name));
    });
    grid.append(
      s("text", { x: left + columns.length * size / 2, y: height - 6, "text-anchor": "middle", class: "label" }, x),
      s("text", { x: 0, y: 12, class: "label" }, y));
    svg.append(grid);
    for (const c of all) {
      const at = left + c.column * size, top = c.row * tall;
      svg.append(s("rect", {
        x: at + 0.5, y: top + 0.5, width: Math.max(1, size - 1), height: tall - 1, rx: 2, class: "cell",
        style: { fill: c.color }
      }));
      if (c.text && wide(c.text) * 0.9 <= size && tall >= 13) {
        svg.append(s("text",
          { x: at + size / 2, y: top + tall / 2 + 4, "text-anchor": "middle", class: "in", style: { fill: c.ink } },
          c.text));
      }
      points.push({ x: at + size / 2, y: top + tall / 2, tip: c.tip });
    }
    return { svg, points };
  }

  // ramp is a colour between pale and full, by a share, and the ink that is read on it.
  const stops = [[253, 240, 213], [250, 196, 132], [232, 121, 92], [178, 62, 96], [92, 38, 99]];
  function ramp(share) {
    const at = Math.max(0, Math.min(1, share)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
    const mix = stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (at - i)));
    return { color: `rgb(${mix})`, ink: 0.3 * mix[0] + 0.59 * mix[1] + 0.11 * mix[2] > 135 ? "#1c1a17" : "#fff" };
  }

  // rows draws names with bars, intervals and dots on one axis, as text that wraps and is copied.
  // Each item has name, note, value (at the end) and marks: {from, to, lo, hi, dots: [{v, color, shape, tip}], color}.
  function rows({ items, axis, title, unit }) {
    const at = scale(axis, 0, 100), place = (v) => Math.max(0, Math.min(100, at(v)));
    const text = (v) => axis.text ? axis.text(v) : trimmed(v, unit);
    const lines = axis.ticks || at.ticks(6);
    const list = h("ul.rows", { "aria-label": title });
    for (const item of items) {
      const track = h(".track", { "aria-hidden": "true" });
      for (const v of lines) track.append(h("i.tick", { style: { left: place(v) + "%" } }));
      if (axis.mark !== undefined) track.append(h("i.tick.strong", { style: { left: place(axis.mark) + "%" } }));
      if (item.to !== undefined) {
        const a = place(item.from ?? axis.domain[0]);
        track.append(h("i.bar", { style: { left: a + "%", width: place(item.to) - a + "%", background: item.color } }));
      }
      if (item.lo !== undefined && item.hi !== undefined) {
        const a = place(item.lo), b = place(item.hi);
        track.append(h("i.interval" + (item.hi > axis.domain[1] ? ".beyond" : ""),
          { style: { left: a + "%", width: b - a + "%", color: item.ink || item.color } }));
      }
      for (const d of item.dots || []) {
        if (d.lo !== undefined)
          track.append(h("i.interval",
            { style: { left: place(d.lo) + "%", width: place(d.hi) - place(d.lo) + "%", color: d.color } }));
        track.append(
          h(`i.point.p${d.shape || 0}`, { title: d.tip, style: { left: place(d.v) + "%", color: d.color } }));
      }
      list.append(h("li" + (item.strong ? ".strong" : ""), {},
        h(".name", {}, item.name, item.note && h("small", {}, item.note)), track, h(".value", {}, item.value)));
    }
    let last = -20;
    const marks = lines.filter((v) => {
      const ok = place(v) - last > 12;
      if (ok) last = place(v);
      return ok;
    });
    const under = h(".track.axis", { "aria-hidden": "true" },
      marks.map((v) => h("span", { style: { left: place(v) + "%" } }, text(v))));
    list.append(h("li.axis", { "aria-hidden": "true" }, h(".name"), under, h(".value")));
    return list;
  }

  // table shows rows of cells. Those that are numbers are on the right.
  function table(caption, header, body) {
    const cell = (tag, v, i) => {
      const numeric = typeof v === "number" || v && v.number, shown = v && v.text !== undefined ? v.text : v;
      return h(tag + (numeric ? ".n" : ""), tag === "th" ? { scope: "col" } : {},
        shown === null || shown === undefined ? "–"
          : shown instanceof Node             ? shown
          : typeof shown === "number"         ? whole(shown)
                                              : String(shown));
    };
    return h(".wide", { tabindex: "0", role: "region", "aria-label": caption + ", table" },
      h("table", {}, h("caption.unseen", {}, caption),
        h("thead", {},
          h("tr", {},
            header.map(
              (t, i) => h("th" + (body[0] && (typeof body[0][i] === "number" || body[0][i]?.number) ? ".n" : ""),
                { scope: "col" }, t)))),
        h("tbody", {}, body.map((row) => h("tr", {}, row.map((v, i) => cell("td", v, i)))))));
  }
  const number = (text) => ({ text, number: true });

  // figure shows what draw makes for a width, again for each width, with the table behind it.
  const tip = h(".tip", {});
  tip.id = "tip";
  tip.setAttribute("role", "status");
  function figure({ title, caption, draw, legend, behind }) {
    const box = h(".plot");
    let points = [], at = -1, ring, width = 0;
    const show = (i) => {
      at = i;
      ring?.remove();
      const p = points[i], svg = box.firstChild;
      if (!p || !svg) {
        tip.classList.remove("shown");
        return;
      }
      ring = s("circle", { cx: p.x, cy: p.y, r: 7, class: "ring" });
      svg.append(ring);
      tip.replaceChildren(...p.tip.split("\n").map((line) => h("p", {}, line)));
      if (!tip.isConnected) document.body.append(tip);
      tip.classList.add("shown");
      const r = svg.getBoundingClientRect(), k = r.width / svg.viewBox.baseVal.width;
      const left = r.left + p.x * k, top = r.top + p.y * k, w = tip.offsetWidth, t = tip.offsetHeight;
      tip.style.left =
        Math.max(8, Math.min(document.documentElement.clientWidth - w - 8, left - w / 2)) + scrollX + "px";
      tip.style.top = (top - t - 14 < 0 ? top + 16 : top - t - 14) + scrollY + "px";
    };
    box.addEventListener("pointermove", (e) => {
      const svg = box.firstChild, r = svg.getBoundingClientRect(), k = svg.viewBox.baseVal.width / r.width;
      const x = (e.clientX - r.left) * k, y = (e.clientY - r.top) * k;
      let best = -1, least = 36 ** 2;
      points.forEach((p, i) => {
        const d = (p.x - x) ** 2 + (p.y - y) ** 2;
        if (d < least) {
          least = d;
          best = i;
        }
      });
      if (best !== at) show(best);
    });
    box.addEventListener("pointerleave", () => show(-1));
    box.addEventListener("focusout", () => show(-1));
    box.addEventListener("keydown", (e) => {
      const to = {
        ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: points.length - 1,
        Escape: -1
      }[e.key];
      if (to === undefined || !points.length) return;
      e.preventDefault();
      show(e.key === "Escape" ? -1 : Math.max(0, Math.min(points.length - 1, to)));
    });
    const redraw = (w) => {
      if (w < 40 || w === width) return;
      width = w;
      const drawn = draw(w);
      points = drawn.points;
      drawn.svg.setAttribute("role", "img");
      drawn.svg.setAttribute("tabindex", "0");
      drawn.svg.setAttribute("aria-label", title + (points.length ? ". The arrow keys go through the points." : ""));
      box.replaceChildren(drawn.svg);
    };
    box.redraw = redraw; // at once, where it is put
    new ResizeObserver(([e]) => setTimeout(redraw, 0, Math.floor(e.contentRect.width))).observe(box);
    return h("figure", {}, h("figcaption", {}, h("strong", {}, title), caption && h("span", {}, caption)),
      legend && keys(legend), box,
      behind &&
        h("details.behind", {}, h("summary", {}, "Table", h("span.unseen", {}, ": " + title)),
          table(title, behind.header, behind.rows)));
  }
  // keys names the colours of a figure.
  function keys(list) {
    return h("ul.keys", {},
      list.map((k) => h("li", {}, h(`i.point.p${k.shape || 0}`, { style: { color: k.color }, "aria-hidden": "true" }),
                 k.text)));
  }

  // copy is a button that copies a text.
  function copy(label, name, text) {
    const button = h("button.copy", { type: "button", "aria-label": "Copy " + name, onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const area = h("textarea", {}, text);
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 1500);
    } }, label);
    return button;
  }

  const color = (i) => `var(--c${i % 8})`;
  return {
    h,
    digits,
    parts,
    quantity,
    whole,
    percent,
    span,
    domain,
    xy,
    cells,
    ramp,
    rows,
    table,
    number,
    figure,
    keys,
    copy,
    color
  };
})();
