// Shows answers: what a command wrote as JSON, as sections of the page. Names and units are those of the answers' keys.
"use strict";
const views = (() => {
  const { h, quantity, percent, span, parts, digits, domain, rows, table, number, figure, keys, color, whole, ramp,
    xy, cells, copy } = chart;
  const names = new Map(); // of devices, by id

  // known reports which kind of answer a document is, by its keys.
  function kindOf(d) {
    if (d === null || typeof d !== "object") return "other";
    const has = (...all) => all.every((key) => key in d);
    if (has("error") && !has("arch")) return "failure";
    if (has("bands")) return "bands";
    if (has("tp", "context", "devices")) return "step";
    if (has("entries", "problem")) return "comparison";
    if (has("ceilings") || has("devices", "kernels")) return "rooflines";
    if (has("rungs", "claims")) return "ladder";
    if (has("terms", "parameters")) return "explanation";
    if (has("milliseconds", "pick")) return "bench";
    if (has("gflops", "winner")) return "cell";
    if (has("problems", "summary", "classes")) return "evaluation";
    if (has("predicted", "config")) return "answer";
    if (has("summary", "classes")) return "totals";
    return "other";
  }

  const spoken = (key) => key.replaceAll("_", " ");
  const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const list = (values) => (values || []).join("; ");
  const seconds = (v) => quantity(v, "s");
  const side = (e) => (e.device ? names.get(e.device) || e.device : e.arch) + (e.what_if ? " with " + e.what_if : "");
  const brief = (e) => (e.device || e.arch) + (e.what_if ? ":" + e.what_if : "");

  // Configurations: the tile, and the rest of the axes in words.
  function tile(c) {
    return !c ? [] : ["block_m", "block_n", "block_k"].map((k) => c[k]).filter((v) => v !== undefined && v !== null);
  }
  function axes(c) {
    const out = [];
    for (const [key, v] of Object.entries(c || {}).sort(([a], [b]) => b.startsWith("num_") - a.startsWith("num_"))) {
      if (v === null || key.startsWith("block_") || key === "split_k" && v === 1 || v === 0) continue;
      if (key === "axes")
        for (const [name, value] of Object.entries(v)) out.push(`${spoken(name)} ${value}`);
      else if (key.startsWith("num_"))
        out.push(`${v} ${spoken(key.slice(4)).replace(/s$/, v === 1 ? "" : "s")}`);
      else
        out.push(`${spoken(key.replace(/_[mk]$/, ""))} ${v}`);
    }
    return out;
  }
  function short(c) {
    if (!c || typeof c === "string") return c || "";
    return tile(c).join("×") + (axes(c).length ? " · " + axes(c).join(", ") : "");
  }
  function size(p) {
    const rows = p.groups ? p.groups.join("+") : p.m;
    return `${rows} × ${p.n} × ${p.k}` + (p.batch > 1 ? `, batch ${p.batch}` : "");
  }
  function layout(p) {
    const rest = Object.entries(p).filter(([k,
      v]) => !["m", "n", "k", "batch", "groups", "dtype", "trans_a", "trans_b"].includes(k) && v !== null && v !== "");
    return [
      p.dtype, p.trans_a && "A transposed", p.trans_b && "B transposed",
      ...rest.map(([k, v]) => `${spoken(k)} ${typeof v === "object" ? JSON.stringify(v) : v}`)
    ].filter(Boolean)
      .join(", ");
  }

  // What an interval rests on.
  const means = {
    checked: "The model was held against measured times of this device",
    related: "Other kinds of problems were timed on this device, or too few of this kind",
    sister: "Only other devices of its architecture were timed", unchecked: "Only other architectures were timed"
  };
  // How sure an answer is: a word, a sentence, and which of three colours.
  function evidence(e) {
    const word = (e.evidence || (e.validated ? "checked" : "unchecked")).split(/[ (:]/)[0];
    const c = e.checked, out = e.outside || [];
    const on = c && (c.times ? `${c.times} times of ${c.sizes} sizes` : `${c.sizes} sizes`);
    const text =
      [
        !(c && word === "checked") && (means[word] || upper(word)) + ".",
        c && word !== "unchecked" &&
          (word === "checked" ? `The model was held against ${on} of this device` : `Compared with ${on}`) +
            ` (${c.data_set})` + (c.median_error ? `: median error ${percent(c.median_error)}.` : "."),
        out.length && (word === "checked" ? `This question differs: ${list(out)}.` : upper(list(out)) + "."),
        e.interval_widened > 1.005 && `The interval is ${digits(e.interval_widened, 2)} times as wide for it.`
      ].filter(Boolean)
        .join(" ");
    return { word, text, level: word === "checked" ? "sure" : word === "unchecked" ? "unsure" : "half" };
  }
  function badge(e, ...more) {
    const v = evidence(e);
    return h("span.badge." + v.level, { title: v.text }, v.word, ...more);
  }
  const section = (name, title, ...content) =>
    h("section." + name, { "aria-label": title || undefined }, title && h("h2", {}, title), ...content);
  // timed is a time with its interval, of an answer or of one of its ways.
  function timed(e) {
    const p = e.predicted || e, i = p.interval_seconds;
    return { seconds: p.seconds, lo: i && i[0], hi: i && i[1], level: p.interval_level, cycles: p.cycles };
  }
  // Two times are compared in one way: the one ÷ the other. What takes less than 1× the time is faster.
  const ratio = (r) => (r < 9.995 ? r.toFixed(2) : digits(r)) + "×";
  const beside = (base, t) => !(t / base > 0) ? "" : Math.abs(t / base - 1) < 0.005 ? "the same time"
                                                                                    : `${ratio(t / base)} the time`;
  // trust is how sure a time is: a badge, how far the ends of its interval are from it, and what that rests on.
  function trust(e) {
    const t = timed(e), [lo, hi] = [t.lo, t.hi].map((v) => Math.round(Math.abs(v / t.seconds - 1) * 100));
    return [
      h("p", {}, badge(e), t.hi > 0 && h("strong", {}, ` −${lo}\u202f% to +${hi}\u202f%`)),
      h("p.faint", {}, t.hi > 0 && `${Math.round((t.level || 0.9) * 100)}\u202f% of measured times should lie within. `,
        evidence(e).text)
    ];
  }

  // ruler draws an interval with its time.
  function ruler(t) {
    if (!(t.hi > 0)) return h("p.faint", {}, "The model states no interval.");
    const most = t.hi * 1.12, least = t.lo > t.hi * 0.35 ? t.lo * 0.85 : 0,
          at = (v) => (v - least) / (most - least) * 100 + "%";
    return h(".ruler", {},
      h(".track", { "aria-hidden": "true" },
        h("i.interval", { style: { left: at(t.lo), width: `calc(${at(t.hi)} - ${at(t.lo)})` } }),
        h("i.needle", { style: { left: at(t.seconds) } })),
      h("p", {}, h("strong", {}, span(t.lo, t.hi, "s")),
        ` with ${Math.round((t.level || 0.9) * 100)}\u202f% probability`));
  }
  function big(t) {
    const [v, u] = t.seconds ? parts(t.seconds, "s") : [whole(t.cycles), "cycles"];
    return h("p.big", {}, v, h("small", {}, "\u202f" + u));
  }

  // triton is a configuration as Triton's autotuner reads it.
  function triton(a) {
    const c = a?.config;
    if (!c || !/^triton/.test(a.kernel) || !(c.num_warps > 0)) return "";
    return `triton.Config({'BLOCK_SIZE_M': ${c.block_m}, 'BLOCK_SIZE_N': ${c.block_n}, 'BLOCK_SIZE_K': ${c.block_k}, ` +
      `'GROUP_SIZE_M': ${c.group_m}${c.split_k > 1 ? `, 'SPLIT_K': ${c.split_k}` : ""}}, num_warps=${c.num_warps}, ` +
      `num_stages=${c.num_stages}),`;
  }
  const fact = (name, value, ...text) =>
    h("li", {}, h("span.faint", {}, name), h("strong", {}, value), text.map((t) => t && h("p", {}, t)));

  // verdict is the pick: configuration, time, interval, how sure, what limits it, and what would gain most.
  function verdict(a) {
    const t = timed(a), code = triton(a), reasons = (a.predicted.why || "").split("; ");
    const others =
            (a.ways || []).filter((w) => timed(w).seconds > 0).sort((x, y) => timed(x).seconds - timed(y).seconds),
          best = others[0] && timed(others[0]).seconds < t.seconds * 0.995 ? others[0] : null, [gain, next] = gains(a);
    return h("section.verdict", { "aria-label": "The pick" },
      h("p.eyebrow", {}, h("strong", {}, side(a)), h("span", {}, size(a.problem)), h("span", {}, layout(a.problem))),
      h(".hero", {},
        h(".pick", {}, h("p.over", {}, "The pick: the fastest configuration of ", h("strong", {}, a.kernel)),
          h("h1.tile", { "aria-label": "The pick is " + tile(a.config).join("x") },
            tile(a.config).map(
              (v, i) => [i > 0 && h("i", {}, "×"), h("span", {}, String(v), h("small", {}, "tile " + "MNK"[i]))])),
          h("ul.chips", {},
            axes(a.config).map((t) => h("li", {}, t.replace(/^group (\d+)$/, "groups of $1 tile rows"))),
            code && h("li.act", {}, copy("Copy triton.Config", "triton.Config", code)))),
        h(".time", {}, h("p.over", {}, "Predicted time"), big(t), ruler(t)),
        h(".sure", {}, h("p.over", {}, "How sure"), trust(a))),
      h("ul.brief", {},
        fact("Limited by", spoken(a.predicted.bound || "–"), upper((reasons[0] || "").replace(/^.*?: /, "")),
          h("a", {
            href: "#why",
            onclick: (e) => {
              e.preventDefault();
              document.querySelector(".why, .spent")?.scrollIntoView();
            }
          },
            "Why, and where the time goes")),
        gain &&
          fact("Biggest gain", gain.saved,
            gain.title + (gain.saved.startsWith("−") ? ` (${ratio(gain.share)} the time).` : "."),
            next && `Next: ${next.saved}, ${next.title.charAt(0).toLowerCase() + next.title.slice(1)}.`),
        others.length > 0 &&
          fact("Fastest of all ways", best ? `${best.kernel} ${seconds(timed(best).seconds)}` : "the pick",
            `The pick keeps to the kernel family ${a.kernel}` +
              (code ? ", whose configuration you set. " : ". ") +
              (best ? `${best.kernel} is another kernel, not a setting.` : "No other kernel family is faster."))));
  }

  // ways are the pick and the other kernel families, the fastest first.
  function ways(a) {
    if (!a.ways?.length) return null;
    const all = [{...a, pick: true }, ...a.ways]
                  .map((w) => ({...w, t: timed(w) }))
                  .filter((w) => w.t.seconds > 0)
                  .sort((x, y) => x.t.seconds - y.t.seconds);
    const pick = timed(a).seconds, most = Math.max(...all.map((w) => w.t.seconds)) * 1.15;
    const cap = Math.min(Math.max(most, ...all.map((w) => w.t.hi || 0)) * 1.02, most * 2);
    return section("ways", "Ways to run it", rows({
      title: "Predicted times of the kernel families", unit: "s", axis: { domain: [0, cap] },
      items: all.map((w) => ({
        name: [w.kernel, " ", badge(w)], note: short(w.config), strong: w.pick, to: w.t.seconds, lo: w.t.lo,
        hi: w.t.hi, color: w.pick ? "var(--accent)" : "var(--bar)", ink: "var(--ink)",
        value: [h("strong", {}, seconds(w.t.seconds)), h("small", {}, w.pick ? "the pick" : beside(pick, w.t.seconds))]
      }))
    }),
      h("p.faint", {},
        "A bar is the predicted time, the line across its end the interval. × compares times with the pick's."));
  }

  // rule is a sentence with what it gains.
  const rule = (gain, title, text) =>
    h("li", {}, h("span.gain", {}, gain), h("div", {}, h("strong", {}, title), text && h("p", {}, text)));
  // gains are changes that take less time for the same work, the best first.
  function gains(a) {
    const base = timed(a).seconds, all = a.advice || (a.ways || []).map((w) => ({
      gain: base / timed(w).seconds, do: `use the kernel family ${w.kernel}`, seconds: timed(w).seconds,
      kernel: w.kernel, config: w.config, problem: a.problem
    }));
    return all.filter((v) => v.gain > 1.01).sort((x, y) => y.gain - x.gain).map((v) => ({
      share: 1 / v.gain, title: upper(v.do), saved: v.rule === "rows" ? `${ratio(1 / v.gain)} the time per row`
        : v.rule !== "fuse" && less(base * (1 - 1 / v.gain)) || `${ratio(1 / v.gain)} the time`,
      text: `${seconds(v.seconds)} with ${v.kernel} ${short(v.config)}` +
        (size(v.problem) !== size(a.problem) ? `, as ${size(v.problem)}.` : ".")
    }));
  }
  const less = (v) => v > 0 ? "−" + seconds(v) : "";
  function why(a, around) {
    const p = a.predicted, reasons = (p.why || "").split("; ").filter(Boolean), k = around.kernel, t = timed(a).seconds;
    const share = (r) => h("small", {}, `${ratio(r)} the time`);
    const out = gains(a).map((g) => rule([g.saved, g.saved.startsWith("−") && share(g.share)], g.title, g.text));
    if (k && k.of_attainable > 0 && k.of_attainable < 0.97) {
      out.push(rule(["≤ ", less(t * (1 - k.of_attainable)), share(k.of_attainable)], "What is left below the roof",
        `The roofs allow ${quantity(k.attainable_flop_per_second, "FLOP/s")}; the pick reaches ${
          quantity(k.flop_per_second, "FLOP/s")}. Roof: ${k.bound}.`));
    }
    if (a.expected_regret > 0) {
      const r = 1 / (1 + a.expected_regret);
      out.push(rule(["≈ ", less(t * (1 - r)), share(r)], `Measure the first ${a.worth_measuring} candidates`,
        `On average, the pick takes ${percent(a.expected_regret)} more time than the fastest candidate.`));
    }
    if (!out.length && !reasons.length) return null;
    return section("why", "Why", reasons.length > 0 && h("p.lead", {}, upper(reasons[0]) + "."),
      reasons.length > 1 && h("ul.facts", {}, reasons.slice(1).map((r) => h("li", {}, r))),
      out.length > 0 && [h("h3", {}, "What would gain time"), h("ul.rules", {}, out)]);
  }

  // spent is where the time goes: the terms that have a share of the total.
  function spent(e) {
    const total = e.predicted.seconds,
          all = Object.entries(e.terms)
                  .filter(([, t]) => t.share)
                  .sort((x, y) => Math.abs(y[1].share) - Math.abs(x[1].share));
    if (!all.length) return null;
    const plus = all.filter(([, t]) => t.share > 0), sum = plus.reduce((a, [, t]) => a + t.share, 0);
    const hue = new Map(plus.map(([name], i) => [name, color(i)]));
    return section("spent", "Where the time goes",
      h(".stack", { "aria-hidden": "true" },
        plus.map(([name, t]) => h("i", {
          title: `${spoken(name)} ${percent(t.share)}`,
          style: { width: t.share / sum * 100 + "%", background: hue.get(name) }
        },
                   t.share / sum > 0.12 && h("span", {}, `${spoken(name)} ${percent(t.share)}`)))),
      h("ul.terms", {},
        all.map(([name, t]) => h("li", {},
                  h("i.swatch", { "aria-hidden": "true", style: { background: hue.get(name) || "transparent" } }),
                  h("strong", {}, spoken(name)), h("span.n", {}, percent(t.share)),
                  h("span.n", {}, seconds(t.share * total)), h("span.faint", {}, t.doc || "")))));
  }

  // roofs draws kernels under the roofs of devices: at each level of memory, operations by byte against rate.
  function roofs(d) {
    const out = [];
    for (const type of [...new Set(d.devices.map((v) => v.dtype))]) {
      const devices = d.devices.filter((v) => v.dtype === type),
            kernels = d.kernels.filter((k) => k.problem.dtype === type && devices.some((v) => v.device === k.device));
      if (d.kernels.length && !kernels.length) continue;
      const marks = [], ys = [], xs = [], rowsBehind = [], one = devices.length === 1, levels = [];
      const roof = (c) => c.reached ?? c.limit;
      const shapes = new Map();
      for (const v of devices)
        for (const c of v.ceilings)
          if (c.unit === "B/s" && !shapes.has(c.level)) {
            shapes.set(c.level, shapes.size);
            levels.push(c.level);
          }
      for (const k of kernels)
        for (const l of k.levels)
          if (shapes.has(l.level) && l.flop_per_byte > 0 && k.flop_per_second > 0) {
            xs.push(l.flop_per_byte);
            ys.push(k.flop_per_second);
          }
      for (const v of devices)
        for (const c of v.ceilings) {
          if (c.ridge_flop_per_byte) xs.push(c.ridge_flop_per_byte / 4, c.ridge_flop_per_byte * 4);
          if (c.unit !== "B/s") ys.push(roof(c));
        }
      const xd = domain(xs, { log: true, room: 0.03 }), yd = domain(ys, { log: true, room: 0.12 });
      yd[0] = Math.min(yd[0], yd[1] / 300);
      devices.forEach((v, i) => {
        const matrix = Math.max(...v.ceilings.filter((c) => c.unit !== "B/s").map(roof));
        for (const c of v.ceilings) {
          const r = roof(c), flat = c.unit !== "B/s";
          if (!(r > 0)) continue;
          rowsBehind.push([
            v.name, c.name, c.level, number(quantity(r, c.unit)),
            c.ridge_flop_per_byte ? number(digits(c.ridge_flop_per_byte)) : "", c.source
          ]);
          if (!one && c.level === "shared memory") continue;
          const hue = one ? (flat ? "var(--ink)" : color(shapes.get(c.level))) : color(i),
                end = flat ? r : Math.min(matrix, r * xd[1]);
          const fastest = Math.max(...v.ceilings.filter((o) => o.unit === "B/s").map((o) => roof(o) || 0));
          marks.push({
            color: hue, thin: flat && r < matrix,
            dash: one || flat ? undefined : ["", "7 3", "2 3", "9 3 2 3"][shapes.get(c.level) % 4],
            line: flat ? [[Math.max(xd[0], r / fastest), r], [xd[1], r]] : [[xd[0], r * xd[0]], [end / r, end]]
          });
          if (flat)
            marks.push({
              color: hue,
              texts: [{
                x: xd[1], y: r, dy: -6, anchor: "end",
                text: (one ? "" : v.device.split("@").pop() + " ") + c.name + " " + quantity(r, c.unit)
              }]
            });
          else if (one)
            marks.push({
              color: hue,
              texts: [{
                x: Math.max(xd[0], yd[0] / r) * 1.06, y: Math.max(yd[0], r * xd[0]) * 1.06, dy: -8,
                text: `${c.name} ${quantity(r, c.unit)}`
              }]
            });
        }
      });
      for (const k of kernels) {
        const i = devices.findIndex((v) => v.device === k.device), many = kernels.length > 12;
        const dots =
          k.levels.filter((l) => shapes.has(l.level) && l.flop_per_byte > 0 && (one || l.level !== "shared memory"))
            .map((l, j, all) => ({
              x: l.flop_per_byte, y: k.flop_per_second, level: l.level,
              shape: one ? (k.measured ? 1 : 0) : shapes.get(l.level), r: many ? 3 : 5, hollow: !k.measured && many,
              text: many || j < all.length - 1 ? "" : one ? k.name : devices[i].device.split("@").pop(),
              left: Math.log(l.flop_per_byte / xd[0]) > 0.8 * Math.log(xd[1] / xd[0]),
              tip: `${k.name} ${short(k.config)}\n${size(k.problem)} on ${devices[i].name}\n${l.level}: ${
                     digits(l.flop_per_byte)} FLOP/B, ${quantity(l.bytes_per_second, "B/s")}` +
                (l.of_roof ? `, ${percent(l.of_roof)} of its roof` : "") +
                `\n${quantity(k.flop_per_second, "FLOP/s")}, ${percent(k.of_attainable)} of the roof`
            }));
        for (const dot of dots) marks.push({ color: one ? color(shapes.get(dot.level)) : color(i), dots: [dot] });
        for (const l of k.levels)
          rowsBehind.push([
            devices[i].name, k.name + " " + short(k.config) + ", " + size(k.problem), l.level,
            number(quantity(l.bytes_per_second, "B/s")), number(digits(l.flop_per_byte)),
            l.of_roof ? percent(l.of_roof) + " of the roof" : ""
          ]);
      }
      out.push(figure({
        title: `Roofline, ${type}`,
        caption: `A kernel has a point per level of memory: its operations ÷ the bytes that pass there. ${
          one ? "Each point belongs under the line of its colour."
              : "Shapes of points and dashes of lines are levels: " + levels.slice(1).join(", ") + "."}`,
        legend: one ? null : devices.map((v, i) => ({ text: v.name, color: color(i) })),
        draw: (width) => xy({
          width, height: Math.max(300, Math.min(520, width * 0.5)), x: { log: true, domain: xd, label: "FLOP/B" },
          y: { log: true, domain: yd, unit: "FLOP/s", label: "rate" }, marks
        }),
        behind: {
          header: ["device", "roof or kernel", "level", "rate or bandwidth", "FLOP/B", "source, or share"],
          rows: rowsBehind.slice(0, 400)
        }
      }));
    }
    return out.length ? section("roofs", "Under the roofs", out) : null;
  }

  // compared is one problem on several devices.
  function compared(c, around) {
    const good = c.entries.map((e, i) => ({...e, i, t: e.predicted ? timed(e) : {} })),
          ok = good.filter((e) => e.t.seconds > 0), f = c.fastest;
    const failed = good.filter((e) => e.error)
                     .map((e) => h("p.note", {}, h("strong", {}, side(e) + ": "), e.error.what || String(e.error),
                            e.error.fix && "; " + e.error.fix));
    if (!ok.length) return [failed];
    const sorted = [...ok].sort((x, y) => x.t.seconds - y.t.seconds), first = f ? good[f.entry] : sorted[0],
          next = sorted.find((e) => e !== first);
    const cap =
      Math.min(Math.max(...ok.map((e) => e.t.hi || e.t.seconds)) * 1.02, Math.max(...ok.map((e) => e.t.seconds)) * 2);
    const odds = f?.odds, others = ok.filter((e) => e !== first && c.odds?.[first.i]?.[e.i] > 0),
          rival = others.sort((x, y) => c.odds[first.i][x.i] - c.odds[first.i][y.i])[0] || next,
          note = rival && c.recorded?.[first.i]?.[rival.i];
    return [
      h("section.verdict", { "aria-label": "The fastest" },
        h("p.eyebrow", {}, h("strong", {}, size(c.problem)), h("span", {}, layout(c.problem))),
        h(".hero", {},
          h(".pick", {},
            h("p.over", {},
              !f             ? "Level with the next"
                : odds < 0.9 ? "Probably the fastest"
                             : "The fastest"),
            h("h1", {}, side(first)), h("p", {}, "runs ", h("strong", {}, first.kernel), " " + short(first.config))),
          h(".time", {}, h("p.over", {}, "Predicted time"), big(first.t), ruler(first.t)),
          next &&
            h(".sure", {}, h("p.over", {}, "Next, ", h("strong", {}, side(next)), ", takes"),
              h("p.big.second", {}, f ? ratio(next.t.seconds / first.t.seconds) : "1×", h("small", {}, " the time")),
              h("p", {}, "and runs ", h("strong", {}, next.kernel), " " + short(next.config)))),
        h("ul.brief", {}, h("li", {}, h("span.faint", {}, `How sure is ${seconds(first.t.seconds)}`), trust(first)),
          odds > 0 && rival &&
            fact(`Faster than ${side(rival)}`, `${odds > 0.99 ? "over 99\u202f%" : percent(odds)} likely`,
              first.t.hi < rival.t.lo
                ? "The intervals do not overlap."
                : "The intervals overlap, and yet it is so likely: one device would have to be slower than predicted " +
                  "while the other is faster. The odds take half of their errors for shared (correlation 0.5), which " +
                  "fits published pairs of devices best."),
          note?.decided > 0 &&
            fact("The same two devices, measured", `${note.right} of ${note.decided} right`,
              `Of ${note.decided} published shapes of this class and type, timed on both and more than 10\u202f% ` +
                `apart, the model named the faster device of ${note.right}.`))),
      section("ways", "Side by side", rows({
        title: "Predicted times of the devices", unit: "s", axis: { domain: [0, cap] },
        items: sorted.map((e) => ({
          name: [side(e), " ", badge(e)], note: `${e.kernel}, ${short(e.config)}`, strong: e === first,
          to: e.t.seconds, lo: e.t.lo, hi: e.t.hi, color: color(e.i), ink: "var(--ink)",
          value: [
            h("strong", {}, seconds(e.t.seconds)),
            h("small", {}, e === first ? "the fastest" : beside(first.t.seconds, e.t.seconds))
          ]
        }))
      }),
        failed),
      section("families", "Every way, on every device",
        table("Times of all kernel families",
          ["device", "kernel family", "configuration", "time", "interval", "how sure"],
          sorted.flatMap((e) => [e, ...(e.ways || [])].map((w, j) => {
            const t = timed(w);
            return [
              j ? "" : side(e), w.kernel, short(w.config), number(seconds(t.seconds)),
              number(t.hi ? span(t.lo, t.hi, "s") : "–"), evidence(w).word
            ];
          })))),
      section("rates", "Rates and roofs",
        table("Rates and roofs", ["device", "rate", "of the roof", "of DRAM's peak", "limited by", "why"],
          sorted.map((e) => [side(e), number(quantity(e.predicted.tflops * 1e12, "FLOP/s")),
                       number(e.roofline?.of_roof ? percent(e.roofline.of_roof) : "–"),
                       number(e.roofline?.of_dram_peak ? percent(e.roofline.of_dram_peak) : "–"), e.predicted.bound,
                       e.predicted.why || ""])))
    ];
  }

  // series groups problems that differ in M alone.
  function layersOf(all) {
    const out = new Map();
    for (const c of all) {
      const label = Object.values(c.labels || {}).filter(Boolean).join(" "), { m, ...rest } = c.problem,
            key = JSON.stringify([label, rest]);
      if (!out.has(key)) out.set(key, { label, problem: c.problem, all: [] });
      out.get(key).all.push(c);
    }
    for (const l of out.values()) l.all.sort((x, y) => x.problem.m - y.problem.m);
    return [...out.values()];
  }

  const measures = {
    time: ["time", "s", (e) => timed(e)],
    rate: [
      "rate", "FLOP/s",
      (e) => {
        const t = timed(e), f = e.predicted.tflops * 1e12 * t.seconds;
        return { seconds: f / t.seconds, lo: f / t.hi, hi: f / t.lo };
      }
    ],
    ratio: [
      "time ÷ the fastest's", "",
      (e, first) => {
        const t = timed(e), b = timed(first).seconds;
        return { seconds: t.seconds / b, lo: t.lo / b, hi: t.hi / b };
      }
    ]
  };

  // many is a list of problems on one or several devices: a panel for each layer with M on x, or rows.
  function many(all, state) {
    const sides = [];
    for (const c of all)
      for (const e of c.entries)
        if (!sides.some((s) => brief(s) === brief(e))) sides.push(e);
    const layers = layersOf(all), several = sides.length > 1,
          of = (c, s) => c.entries.find((e) => brief(e) === brief(s) && e.predicted && timed(e).seconds > 0);
    const shown = measures[state.get("view")] ? state.get("view") : "time",
          [what, unit, value] = measures[several ? shown
              : shown === "ratio"                ? "time"
                                                 : shown];
    // The time of all layers, at the least and at the most M that each of them has.
    const shared = layers[0]
                     .all.map((c) => c.problem.m)
                     .filter((m) => layers.every((l) => l.all.some((c) => c.problem.m === m && of(c, sides[0]))));
    const sums = [...new Set([shared[0], shared[shared.length - 1]])].filter((m) => m).map(
      (m) => [m, layers.reduce((v, l) => v + timed(of(l.all.find((c) => c.problem.m === m), sides[0])).seconds, 0)]);
    const kernels = new Set(all.flatMap((c) => c.entries.map((e) => e.kernel + JSON.stringify(e.config)))).size;
    const ranks = several ? standings(all, sides, of) : [], base = ranks[0]?.s || sides[0];
    const head = several
      ? winners(all, sides, ranks)
      : h("section.verdict", { "aria-label": "The picks" }, h("p.eyebrow", {}, h("strong", {}, side(sides[0]))),
          h(".hero", {},
            h(".pick", {},
              h("h1", {}, layers.length > 1 && sums.length ? `${layers.length} layers` : `${all.length} problems`),
              h("p", {}, `${kernels} different kernels`)),
            sums.map(
              ([m, v], i) => h(i ? ".sure" : ".time", {},
                h("p.big" + (i ? ".second" : ""), {}, parts(v, "s")[0], h("small", {}, "\u202f" + parts(v, "s")[1])),
                h("p", {}, `for ${layers.length > 1 ? "all layers, once each," : "it"} at M = ${m}`)))));
    const lines = layers.filter((l) => l.all.length > 2),
          rest = layers.filter((l) => l.all.length <= 2).flatMap((l) => l.all);
    const out = [head];
    if (lines.length) {
      const choose = h("fieldset.choose", {}, h("legend.unseen", {}, "Shown"),
        Object.keys(measures)
          .filter((v) => several || v !== "ratio")
          .map((v) => h("label", {}, h("input", {
            type: "radio", name: "view", value: v, checked: v === shown,
            onchange: () => state.set("view", v === "time" ? "" : v)
          }),
                 v)));
      const panels = lines.map((l) => {
        const ms = l.all.map((c) => c.problem.m), marks = [], ends = [], values = [], behind = [];
        sides.forEach((s, i) => {
          const points =
            l.all
              .map(
                (c) => [c.problem.m, of(c, s) && of(c, base) ? value(of(c, s), of(c, base)) : null, of(c, s)])
              .filter((p) => p[1]);
          if (!points.length) return;
          values.push(...points.map((p) => p[1].seconds));
          marks.push(
            { color: color(i), band: points.filter((p) => p[1].hi > 0).map((p) => [p[0], p[1].lo, p[1].hi]) }, {
              color: color(i),
              line: points.map((p) => [p[0], p[1].seconds]),
              dots: points.map((p) => ({
                x: p[0], y: p[1].seconds, r: 2.6, shape: i,
                tip: `${side(s)}, M = ${p[0]}\n${seconds(timed(p[2]).seconds)} (${
                  span(timed(p[2]).lo, timed(p[2]).hi,
                    "s")}), ${quantity(p[2].predicted.tflops * 1e12, "FLOP/s")}\n${p[2].kernel} ${short(p[2].config)}`
              }))
            });
          ends.push({
            y: points[points.length - 1][1].seconds, text: several ? s.device + (s.what_if ? "*" : "") : "",
            color: color(i)
          });
        });
        for (const c of l.all)
          behind.push([
            number(String(c.problem.m)), ...sides.map((s) => number(of(c, s) ? seconds(timed(of(c, s)).seconds) : "–"))
          ]);
        const ratio = unit === "", log = ratio ? Math.max(...values) / Math.min(...values) > 6 : true;
        return figure({
          title: l.label || `${l.problem.n} × ${l.problem.k}`,
          caption:
            (l.label ? `${called(l)}N = ${l.problem.n}, K = ${l.problem.k}` : `N × K`) + ", " + layout(l.problem),
          draw: (width) => xy({
            width, height: 230, x: { log: true, base: 2, domain: domain(ms, { log: true, room: 0.02 }), label: "M" },
            y: {
              log, domain: domain(values, { log, zero: !log && !ratio, room: 0.1 }), unit,
              text: ratio ? (v) => digits(v, 2) + "×" : undefined, label: what
            },
            marks,
            ends: several ? ends : []
          }),
          behind: { header: ["M", ...sides.map(side)], rows: behind }
        });
      });
      out.push(section("panels", "By M",
        h(".bar-of-choices", {}, several && keys(sides.map((s, i) => ({ text: side(s), color: color(i), shape: i }))),
          choose),
        h(".grid-of-figures" +
            ({ 1: ".single", 2: ".by2", 4: ".by2" }[panels.length] || (panels.length > 6 ? ".by4" : "")),
          {}, panels),
        h("p.faint", {}, "Lines are predicted, bands are intervals.")));
    }
    if (rest.length) {
      const every = rest.flatMap((c) => sides.map((s) => of(c, s)).filter(Boolean).map(timed));
      const d = domain(every.flatMap((t) => [t.seconds, t.lo, t.hi]), { log: true });
      out.push(section("problems", several ? "Problem by problem" : "Picks",
        several && keys(sides.map((s, i) => ({ text: side(s), color: color(i), shape: i }))), rows({
          title: "Predicted times", unit: "s", axis: { log: true, domain: d },
          items: rest.map((c) => {
            const first =
              sides.map((s) => of(c, s)).filter(Boolean).sort((x, y) => timed(x).seconds - timed(y).seconds)[0];
            return {
              name: Object.values(c.labels || {}).join(" ") || size(c.problem),
              note: several ? size(c.problem) : first && short(first.config), value: first &&
                [
                  h("strong", {}, seconds(timed(first).seconds)),
                  h("small", {},
                    !several ? evidence(first).word
                      : c.fastest
                      ? `${first.device}; the next ${ratio(c.fastest.lead)}${c.fastest.clear ? ", clear" : ""}`
                      : "even")
                ],
              dots: sides.map((s, i) => [of(c, s), i]).filter(([e]) => e).map(([e, i]) => ({
                v: timed(e).seconds, lo: timed(e).lo, hi: timed(e).hi, color: color(i), shape: i,
                tip: `${side(e)}: ${seconds(timed(e).seconds)}`
              }))
            };
          })
        })));
    }
    out.push(section("list", "All picks",
      h("details", { open: all.length * sides.length <= 30 }, h("summary", {}, `${all.length} problems, one by one`),
        table("All picks",
          [
            "problem", "label", "type", "device", "kernel family", "configuration", "time", "interval", "rate",
            "limited by", "how sure"
          ],
          all.flatMap((c) => c.entries.map((e, j) => {
            const t = e.predicted ? timed(e) : {};
            return [
              j ? "" : size(c.problem), j ? "" : Object.values(c.labels || {}).join(" "), j ? "" : layout(c.problem),
              side(e), e.kernel || "", e.config ? short(e.config) : e.error?.what || "no answer",
              number(seconds(t.seconds)), number(t.hi ? span(t.lo, t.hi, "s") : "–"),
              number(e.predicted?.tflops ? quantity(e.predicted.tflops * 1e12, "FLOP/s") : "–"),
              e.predicted?.bound || "", e.predicted ? evidence(e).word : ""
            ];
          }))))));
    return out;
  }
  // What layers are called in models.
  const layerNames = {
    qkv: "queries, keys, values", q: "queries", kv: "keys, values", o: "attention's output",
    gate_up: "feed-forward, first half", up: "feed-forward, first half", down: "feed-forward, second half",
    q_a: "queries, compressed", q_b: "queries, expanded", kv_a: "keys and values, compressed",
    kv_b: "keys and values, expanded", head: "logits of the vocabulary"
  };
  function called(l) {
    const name = l.label.replace(/_proj$/, "");
    return Object.hasOwn(layerNames, name) ? layerNames[name] + ": " : "";
  }

  // standings are the devices, the one that is most often the fastest first, with their times ÷ its times.
  function standings(all, sides, of) {
    const out = sides.map((s, i) => ({ s, i, wins: 0, clear: 0, words: new Map() }));
    for (const c of all) {
      const f = c.fastest, w = f && out.find((x) => brief(x.s) === brief(c.entries[f.entry]));
      if (w) w.wins++;
      if (w && f.clear) w.clear++;
      for (const x of out) {
        const e = of(c, x.s), word = e && evidence(e).word;
        if (e) x.words.set(word, [e, (x.words.get(word)?.[1] || 0) + 1]);
      }
    }
    const against = (s) => {
      for (const x of out) {
        x.all = all.filter((c) => of(c, x.s) && of(c, s))
                  .map((c) => timed(of(c, x.s)).seconds / timed(of(c, s)).seconds);
        x.mean = Math.exp(x.all.reduce((sum, v) => sum + Math.log(v), 0) / x.all.length);
      }
      return out.filter((x) => x.all.length).sort((x, y) => y.wins - x.wins || x.mean - y.mean);
    };
    const first = against(sides[0])[0];
    return first ? against(first.s) : [];
  }
  // winners says how often each device is the fastest, by how much, and where.
  function winners(all, sides, ranks) {
    const [top, next] = ranks, decided = all.filter((c) => c.fastest).length;
    if (!top) return null;
    return [
      h("section.verdict", { "aria-label": "The verdict" },
        h("p.eyebrow", {}, h("strong", {}, `${all.length} problems`), h("span", {}, sides.map(side).join(", "))),
        h(".hero", {},
          h(".pick", {},
            h("p.over", {}, top.wins === all.length ? "The fastest on each of them" : "Most often the fastest"),
            h("h1", {}, side(top.s))),
          h(".time", {}, h("p.over", {}, "Fastest on"),
            h("p.big", {}, String(top.wins), h("small", {}, ` of ${decided}`)),
            h("p", {}, h("strong", {}, `${top.clear} clearly`), `, ${top.wins - top.clear} with less than 95\u202f% probability`)),
          next &&
            h(".sure", {}, h("p.over", {}, "Next, ", h("strong", {}, side(next.s)), ", takes"),
              h("p.big.second", {}, ratio(next.mean), h("small", {}, " the time")),
              h("p", {}, "geometric mean of predicted times")))),
      section("ways", "Side by side", rows({
        title: "Times beside the fastest device's",
        axis: { log: true, domain: domain(ranks.flatMap((x) => [...x.all, 1]), { log: true }), mark: 1, text: ratio },
        items: ranks.map((x) => ({
          name: [side(x.s), " ", [...x.words.values()].map(([e, n]) => badge(e, n < x.all.length ? ` ${n}` : ""))],
          note: x.wins > 0 && `fastest on ${x.wins}`, strong: x === top,
          dots: [
            ...x === top ? [] : x.all.map((v) => ({ v, color: color(x.i), shape: "thin" })),
            { v: x.mean, color: color(x.i), shape: x.i, tip: ratio(x.mean) }
          ],
          value: [
            h("strong", {}, ratio(x.mean)),
            x !== top && h("small", {}, `${ratio(Math.min(...x.all))} to ${ratio(Math.max(...x.all))}`)
          ]
        }))
      }),
        h("p.faint", {},
          `Predicted time ÷ the time on ${side(top.s)}. The mark is the geometric mean, each thin line a problem: ` +
            "the lines show how problems differ, not how sure the times are.")),
      where(all, sides)
    ];
  }
  // where is a table of layers and M, with the fastest device and how much longer the next one takes.
  function where(all, sides) {
    const layers = layersOf(all), ms = [...new Set(all.map((c) => c.problem.m))].sort((x, y) => x - y);
    if (layers.length * ms.length > all.length * 2) return null;
    const cell = (c) => {
      const f = c?.fastest, e = f && c.entries[f.entry];
      if (!f) return h("td", {}, c ? "even" : "–");
      return h("td" + (f.clear ? ".clear" : ""), {
        style: { "--hue": color(sides.findIndex((s) => brief(s) === brief(e))) },
        title: `${size(c.problem)}: ${side(e)} ${seconds(timed(e).seconds)}`
      },
        brief(e), h("strong", {}, " " + ratio(f.lead)),
        h("span.unseen", {}, f.clear ? ", clear" : ", not clear"));
    };
    return section("where", "The fastest, size by size",
      h("p.faint", {}, "× is the time of the next device ÷ its time. ", h("span.sample.clear", {}, "Clear"),
        " faster with a probability of at least 95\u202f%. ", h("span.sample", {}, "Open"), " less sure."),
      h(".wide", { tabindex: "0", role: "region", "aria-label": "The fastest device by layer and M, table" },
        h("table", {},
          h("thead", {},
            h("tr", {}, h("th", { scope: "col" }, "N × K"), ms.map((m) => h("th", { scope: "col" }, `M = ${m}`)))),
          h("tbody", {},
            layers.map((l) => h("tr", {},
                         h("th", { scope: "row" }, l.label && h("strong", {}, l.label + " "),
                           h("small", {}, `${called(l)}${l.problem.n} × ${l.problem.k}`)),
                         ms.map((m) => cell(l.all.find((c) => c.problem.m === m)))))))));
  }

  // step is what a language model takes per token on devices, with the number of sequences on x.
  function step(d) {
    const all = d.devices.filter((s) => s.seconds > 0);
    const best = all.filter((s) => s.fits).sort((a, b) => a.seconds - b.seconds)[0] || all[0];
    const name = (s) => names.get(s.device) || s.named, curves = all.filter((s) => s.curve);
    const at = (s, batch) => s.curve.find((p) => p.batch === batch);
    const batches = curves.length ? curves[0].curve.map((p) => p.batch) : [];
    const marks = curves.flatMap((s) => {
      const i = all.indexOf(s);
      return [
        { color: color(i), band: s.curve.map((p) => [p.batch, ...p.interval_seconds]) }, {
          color: color(i),
          line: s.curve.map((p) => [p.batch, p.seconds]),
          dots: s.curve.map((p) => ({
            x: p.batch, y: p.seconds, r: 2.6, shape: i, hollow: !p.fits,
            tip: `${name(s)}, ${p.batch} sequences\n${seconds(p.seconds)} (${span(...p.interval_seconds, "s")})` +
              (p.fits ? "" : "\nthey do not fit into memory")
          }))
        }
      ];
    });
    const key = keys(all.map((s, i) => ({ text: name(s), color: color(i), shape: i })));
    const time = { log: true, unit: "s", label: "time per token" };
    return [
      best && h("section.verdict", { "aria-label": "The time per token" },
        h("p.eyebrow", {}, h("strong", {}, name(best)), h("span", {}, d.model),
          h("span", {}, `weights in ${d.weights}, K and V in ${d.cache}, in ${d.server}`)),
        h(".hero", {},
          h(".time", {}, big(best), h("p", {}, `per token of ${d.batch} sequences, ${d.context} tokens of prompt and ${
            d.new} new ones each`)),
          h(".sure", {}, ruler(timed(best))))),
      curves.length > 0 && section("panels", "By sequences at once", key, h(".grid-of-figures.single", {}, figure({
        title: "Time per token", caption: "Lines are predicted, bands are intervals. Hollow points do not fit into memory.",
        draw: (width) => xy({
          width, height: 300, marks, x: { log: true, base: 2, domain: domain(batches, { log: true, room: 0.02 }),
            label: "sequences at once" },
          y: { ...time, domain: domain(curves.flatMap((s) => s.curve.map((p) => p.seconds)), { log: true, room: 0.1 }) }
        }),
        behind: {
          header: ["sequences", ...curves.map(name)],
          rows: batches.map((b) => [number(String(b)), ...curves.map((s) => number(seconds(at(s, b).seconds)))])
        }
      }))),
      section("list", "Where the time goes", table("The parts of the time per token",
        ["device", "time per token", "interval", "tokens/s", ...(best ? best.parts.map((p) => p.name) : []), "unchecked"],
        d.devices.map((s) => s.error ? [s.named, s.error.what] : [
          name(s) + (s.fits ? "" : ", does not fit"), number(seconds(s.seconds)), span(...s.interval_seconds, "s"),
          number(digits(s.tokens_per_second)), ...s.parts.map((p) => number(percent(p.share))), list(s.unchecked)
        ])))
    ];
  }

  // bands is a range of M, divided among few kernels.
  function bands(d) {
    const kernels = [...new Map(d.bands.map((b) => [b.kernel + JSON.stringify(b.config), b])).keys()],
          hue = (b) => color(kernels.indexOf(b.kernel + JSON.stringify(b.config)));
    const lo = Math.log2(d.bands[0].m_low), hi = Math.log2(d.bands[d.bands.length - 1].m_high + 1),
          range = (b) => b.m_low === b.m_high ? String(b.m_low) : `${b.m_low} – ${b.m_high}`;
    return [
      h("section.verdict", { "aria-label": "The kernels" },
        h("p.eyebrow", {}, h("strong", {}, side(d)), h("span", {}, `N = ${d.problem.n}, K = ${d.problem.k}`),
          h("span", {}, layout(d.problem))),
        h(".hero", {},
          h(".pick", {}, h("h1", {}, `${d.kernels} ${d.kernels === 1 ? "kernel" : "kernels"}`),
            h("p", {}, `for M = ${d.bands[0].m_low} to ${d.bands[d.bands.length - 1].m_high}`)),
          h(".time", {}, h("p.big", {}, percent(d.mean_regret)),
            h("p", {}, `more time than a pick for each M, on average over ${d.asked} sizes`)),
          h(".sure", {}, h("p.big.second", {}, percent(d.worst_regret)),
            h("p", {}, d.worst_regret > 0 ? `at worst, at M = ${d.worst_m}` : "at worst")))),
      section("bands", "Which kernel for which M",
        h(".strip", { "aria-hidden": "true" },
          d.bands.map((b) => h("i", {
            title: `M = ${range(b)}: ${short(b.config)}`,
            style: { flex: String(Math.max(0.15, Math.log2(b.m_high + 1) - Math.log2(b.m_low))), background: hue(b) }
          },
                        h("span", {}, tile(b.config).join("×") || b.kernel)))),
        h(".strip-axis", { "aria-hidden": "true" },
          d.bands.map(
            (b) => h("span", { style: { flex: String(Math.max(0.15, Math.log2(b.m_high + 1) - Math.log2(b.m_low))) } },
              String(b.m_low)))),
        table("Kernels by M",
          ["M", "kernel family", "configuration", "time, from", "to", "mean regret", "worst regret"],
          d.bands.map((b) => [h("span", {}, h("i.swatch", { style: { background: hue(b) } }), " " + range(b)), b.kernel,
                        short(b.config), number(seconds(b.seconds_low)), number(seconds(b.seconds_high)),
                        number(percent(b.mean_regret)), number(percent(b.worst_regret))]))),
      d.same &&
        section("same", "The price of sameness",
          h("p", {},
            `With ${Object.entries(d.same.values).map(([k, v]) => `${spoken(k)} ${v}`).join(", ")} for all: ${
              percent(d.same.mean_price)} on average, ${percent(d.same.worst_price)} at worst.`),
          rows({
            title: "Price of each choice", unit: "%",
            axis: { domain: domain(d.same.choices.map((c) => c.mean_price), { zero: true }), text: percent },
            items: d.same.choices.map((c) => ({
              name: Object.entries(c.values).map(([k, v]) => `${spoken(k)} ${v}`).join(", "), to: c.mean_price,
              color: "var(--bar)", value: percent(c.mean_price)
            }))
          }))
    ];
  }

  // map shows one property of the cells of a grid at a time.
  function map(all, state) {
    const kinds = [
      ["gflops", "rate", (c) => c.gflops === null ? null : c.gflops * 1e9, "FLOP/s"],
      [
        "winner", "kernel", (c) => c.tile || (c.winner === null ? null : String(c.winner)), "",
        (c) => c.winner === null ? "" : String(c.winner)
      ],
      [
        "pick", "the model's pick", (c) => c.pick?.config || null, "",
        (c) => c.pick?.kernel ? String(c.pick.kernel) : ""
      ],
      ["flop_per_byte", "FLOP/B of the tile", (c) => c.flop_per_byte, "1"],
      ["split", "split of K", (c) => c.split === null ? null : String(c.split), "", (c) => String(c.split)],
      ["bound", "limited by", (c) => c.bound || null, ""],
      [
        "ctas_per_unit", "CTAs at once per SM or CU", (c) => c.ctas_per_unit === null ? null : String(c.ctas_per_unit),
        "", (c) => String(c.ctas_per_unit)
      ],
      ["waves", "waves", (c) => c.waves, "1"],
      ["regret", "regret of the pick", (c) => c.pick ? c.pick.regret : null, "%"]
    ];
    const there = kinds.filter(([, , of]) => all.some((c) => of(c) !== null && of(c) !== undefined)),
          chosen = there.find(([key]) => key === state.get("map")) || there[0];
    if (!chosen) return null;
    const sizes = ["m", "n", "k"].map((a) => [...new Set(all.map((c) => c.problem[a]))].sort((x, y) => x - y)),
          varies = [0, 1, 2].filter((i) => sizes[i].length > 1), [, title, of, unit, mark] = chosen;
    const [r, c] = varies.length > 1 ? varies : [0, 1],
              grid = varies.length <= 2 && sizes[r].length * sizes[c].length <= all.length * 3,
              letters = ["m", "n", "k"];
    const values = all.map(of).filter((v) => v !== null && v !== undefined), numeric = typeof values[0] === "number",
          log = numeric && !grid && unit === "FLOP/s" && Math.max(...values) / Math.min(...values) > 20;
    const lo = Math.min(...values), hi = Math.max(...values),
          share = (v) => hi === lo ? 0.5
      : log                        ? Math.log(v / lo) / Math.log(hi / lo)
                                   : (v - lo) / (hi - lo);
    const counts = new Map();
    for (const v of values) counts.set(v, (counts.get(v) || 0) + 1);
    const classes = [...counts].sort((x, y) => y[1] - x[1]).map((v) => v[0]),
          ordered = !numeric && classes.every((v) => /^\d+$/.test(v)) && chosen[0] !== "winner";
    if (ordered) classes.sort((x, y) => x - y);
    const paint = (v) => numeric ? ramp(unit === "%" ? Math.min(1, v / 0.2) : share(v))
      : ordered                  ? ramp(classes.indexOf(v) / Math.max(1, classes.length - 1))
      : classes.indexOf(v) < 8   ? { color: color(classes.indexOf(v)), ink: "var(--on-series)" }
                                 : { color: "var(--line)", ink: "var(--ink)" };
    const text = (v) => numeric ? (unit === "%"      ? percent(v)
                                      : unit === "1" ? digits(v)
                                                     : quantity(v, unit))
                                : v,
          tip = (x) => `${size(x.problem)} ${x.problem.dtype}\n${title}: ${text(of(x))}` +
      (x.gflops ? `\n${quantity(x.gflops * 1e9, "FLOP/s")}` : "") + (x.config ? `\n${x.config}` : "") +
      (x.bound ? `\n${x.bound}-bound, split ${x.split}, ${x.ctas_per_unit} CTAs at once` : "") +
      (x.pick ? `\nthe pick ${x.pick.config}: regret ${percent(x.pick.regret)}` : "");
    const scaled = (v) => unit === "FLOP/s" ? digits(v / (hi >= 2e13 ? 1e12 : 1e9))
      : unit === "%"                        ? digits(v * 100, 2)
                                            : digits(v);
    const shown = all.filter((x) => of(x) !== null && of(x) !== undefined),
          choose = h("fieldset.choose", {}, h("legend.unseen", {}, "Map"),
            there.map(([key, name]) => h("label", {}, h("input", {
              type: "radio", name: "map", value: key, checked: key === chosen[0],
              onchange: () => state.set("map", key)
            }),
                        name)));
    const legend = numeric
      ? null
      : classes.slice(0, 24).map((v) => ({ text: `${v} (${counts.get(v)})`, color: paint(v).color, shape: 1 }));
    const first = all[0].problem,
          fixed = [0, 1, 2]
                    .filter((i) => !varies.includes(i))
                    .map((i) => `${letters[i].toUpperCase()} = ${sizes[i][0]}`)
                    .join(", ");
    const draw = grid
      ? (width) => cells({
          width, y: letters[r].toUpperCase(), x: letters[c].toUpperCase(), rows: sizes[r].map(String),
          columns: sizes[c].map(String),
          cells: shown.map((x) => ({
            row: sizes[r].indexOf(x.problem[letters[r]]),
            column: sizes[c].indexOf(x.problem[letters[c]]),
            ...paint(of(x)),
            text: numeric ? scaled(of(x))
              : mark      ? mark(x)
                          : "",
            tip: tip(x)
          }))
        })
      : (width) => {
          const work = (x) => 2 * x.problem.m * x.problem.n * x.problem.k * (x.problem.batch || 1);
          return xy({
            width, height: Math.min(460, width * 0.55),
            x: { log: true, domain: domain(shown.map(work), { log: true }), unit: "FLOP", label: "work" },
            y: numeric ? { log, domain: domain(values, { log, zero: !log }), unit, label: title }
                       : { log: true, domain: domain(shown.map((x) => x.problem.k), { log: true }), label: "K" },
            marks: shown.map((x) => ({
              color: numeric ? color(0) : paint(of(x)).color,
              dots: [{ x: work(x), y: numeric ? of(x) : x.problem.k, tip: tip(x) }]
            }))
          });
        };
    return section("map", `${upper(title)} over ${varies.map((i) => letters[i].toUpperCase()).join(" and ")}`,
      h("p.faint", {},
        [
          fixed, layout(first), numeric && `${text(lo)} to ${text(hi)}`,
          numeric && unit === "FLOP/s" && grid && `the numbers are ${hi >= 2e13 ? "TFLOP/s" : "GFLOP/s"}`
        ].filter(Boolean)
          .join(" · ")),
      h(".bar-of-choices", {}, choose), figure({
        title: upper(title), caption: `${shown.length} sizes`, legend, draw,
        behind: {
          header: ["M", "N", "K", title, "configuration"],
          rows: shown.slice(0, 1000).map((x) => [number(String(x.problem.m)), number(String(x.problem.n)),
                                           number(String(x.problem.k)), number(text(of(x))), x.config || x.tile])
        }
      }));
  }

  // ladder is the rungs of an SGEMM ladder, and what is said of them.
  function ladder(d) {
    const rate = (s) => 2 * d.problem.m * d.problem.n * d.problem.k / s;
    const best = [...d.rungs].sort((x, y) => (x.predicted_seconds || 9e9) - (y.predicted_seconds || 9e9))[0];
    const kinds = [["predicted", 0], ["measured", 1]], of = (r, kind) => r[kind + "_seconds"];
    const all = d.rungs.flatMap((r) => kinds.map(([kind]) => of(r, kind))).filter((v) => v > 0).map(rate);
    const why = (r) => r.rejected ? `does not fit: ${r.detail || r.rejected}`
      : r.limited_by ? `limited by ${spoken(r.limited_by)}` : r.doc;
    const items = d.rungs.map((r) => ({
      name: r.rung + (r.label ? ` (${r.label})` : ""), note: why(r),
      value: r.predicted_seconds > 0 && [h("strong", {}, seconds(r.predicted_seconds)),
        h("small", {}, r.measured_seconds > 0 ? `measured ${seconds(r.measured_seconds)}` : "")],
      dots: kinds.filter(([kind]) => of(r, kind) > 0).map(([kind, i]) => ({
        v: rate(of(r, kind)), color: color(i), shape: i, tip: `${kind} ${seconds(of(r, kind))}`
      }))
    }));
    const levels = { true: "sure", false: "unsure" }, bytes = ["flop_per_requested_byte", "flop_per_l2_byte",
      "flop_per_dram_byte", "conflict_degree"];
    const costs = Object.keys(d.rungs.find((r) => r.cost_seconds)?.cost_seconds || {});
    return [
      h("section.verdict", { "aria-label": "The ladder" },
        h("p.eyebrow", {}, h("strong", {}, side(d)), h("span", {}, size(d.problem)), h("span", {}, layout(d.problem))),
        h(".hero", {},
          h(".pick", {}, h("p.faint", {}, "The fastest rung"), h("h1", {}, best.rung), h("p", {}, best.doc)),
          h(".time", {}, big({ seconds: best.predicted_seconds }),
            h("p", {}, quantity(rate(best.predicted_seconds), "FLOP/s"))))),
      section(
        "rungs", "Rung by rung", keys(kinds.map(([kind, i]) => ({ text: kind, color: color(i), shape: i }))), rows({
          title: "Rates of the rungs", unit: "FLOP/s", axis: { log: true, domain: domain(all, { log: true }) }, items
        })),
      section("claims", "What is said of them",
        h("ul.rules", {},
          d.claims.map((c) => rule(h("span.badge." + (levels[c.verdict] || "half"), {}, c.verdict),
                         `${c.rung} ${c.claim}`, c.evidence)))),
      section("costs", "Costs",
        table("Costs of the rungs",
          [
            "rung", "FLOP/B asked", "at L2", "at DRAM", "bank conflicts", ...costs.map(spoken),
            "source of the measured time"
          ],
          d.rungs.map(
            (r) => [r.rung, ...bytes.map((k) => number(r[k] ? digits(r[k]) : "–")),
              ...costs.map((k) => number(r.cost_seconds ? seconds(r.cost_seconds[k]) : "–")), r.source || ""])))
    ];
  }

  // agreement draws predicted against measured times.
  function agreement(points, title) {
    const all = points.flatMap((p) => [p.x, p.y]), d = domain(all, { log: true });
    return figure({
      title,
      caption: "On the line, both are equal. The thin lines are 1.5 times apart from it.",
      draw: (width) => xy({
        width, height: Math.min(460, Math.max(280, width * 0.6)),
        x: { log: true, domain: d, unit: "s", label: "measured" },
        y: { log: true, domain: d, unit: "s", label: "predicted" },
        marks: [
          ...[1, 1.5, 1 / 1.5].map(
            (f) => ({ color: "var(--faint)", thin: f !== 1, line: [[d[0], d[0] * f], [d[1], d[1] * f]] })),
          { color: color(0), dots: points }
        ]
      }),
      behind: {
        header: ["problem", "measured", "predicted"],
        rows: points.map((p) => [p.tip.split("\n")[0], number(seconds(p.x)), number(seconds(p.y))])
      }
    });
  }
  function evaluation(d) {
    const s = d.summary, ms = (v) => v / 1000,
          ok = d.problems.filter((p) => p.efficiency > 0).sort((x, y) => x.efficiency - y.efficiency),
          least = Math.min(0.5, ok[0]?.efficiency ?? 0.5);
    return [
      h("section.verdict", { "aria-label": "The score" },
        h("p.eyebrow", {}, h("strong", {}, side(d)), h("span", {}, `${d.model} against ${d.records}`),
          h("span", {}, `kernel family ${d.kernel}`)),
        h(".hero", {},
          h(".pick", {}, h("p.faint", {}, "The picks reach"), h("h1", {}, percent(s.efficiency_geomean)),
            h("p", {}, "of the speed of the fastest measured kernel, geometric mean")),
          h(".time", {}, h("p.big", {}, percent(s.error_median)), h("p", {}, "median error of the predicted times")),
          h(".sure", {}, h("p.big.second", {}, percent(s.efficiency_worst)),
            h("p", {}, `at worst, of ${s.problems} problems`)))),
      section("scores", "The picks that lose most", rows({
        title: "Speed of the pick",
        axis: { domain: [least, 1], text: percent },
        items: ok.slice(0, 10).map((p) => ({
          name: size(p), note: short(p.pick), from: least, to: p.efficiency, color: "var(--accent)",
          value: percent(p.efficiency)
        }))
      }),
        h("details", {}, h("summary", {}, `All ${ok.length} problems`),
          table("All problems",
            ["problem", "pick", "fastest", "pick's time", "predicted", "fastest time", "speed of the pick"],
            ok.map(
              (p) => [size(p), short(p.pick), short(p.best), number(seconds(ms(p.pick_ms))),
                number(seconds(ms(p.predicted_ms))), number(seconds(ms(p.best_ms))), number(percent(p.efficiency))])))),
      section("agreement", "Times",
        agreement(
          d.problems.filter((p) => p.pick_ms > 0 && p.predicted_ms > 0).map((p) => ({
            x: ms(p.pick_ms), y: ms(p.predicted_ms), lo: p.interval_ms && ms(p.interval_ms[0]),
            hi: p.interval_ms && ms(p.interval_ms[1]),
            tip: `${size(p)}\n${short(p.pick)}\nmeasured ${seconds(ms(p.pick_ms))}, predicted ${
              seconds(ms(p.predicted_ms))}`
          })),
          "Predicted against measured times of the picks"))
    ];
  }
  function bench(all) {
    const ms = (v) => v / 1000, ok = all.filter((b) => b.milliseconds?.best > 0),
          series = ["pick", ...new Set(ok.flatMap((b) => (b.libraries || []).map((l) => l.name)))];
    const of = (b, name) =>
            name === "pick" ? b.milliseconds.pick : (b.libraries || []).find((l) => l.name === name)?.milliseconds,
          rel = (b, name) => of(b, name) > 0 ? b.milliseconds.best / of(b, name) : null;
    if (!ok.length) return [];
    return [
      section("bench", "The pick and the libraries, against the fastest candidate",
        keys(series.map((name, i) => ({ text: name, color: color(i), shape: i }))), rows({
          title: "Speed, the fastest candidate is 100 %",
          axis: {
            domain: domain([...ok.flatMap((b) => series.map((n) => rel(b, n))).filter(Boolean), 1], {}), mark: 1,
            text: percent
          },
          items: ok.map((b) => ({
            name: size(b.problem), note: short(b.pick), value: rel(b, "pick") && percent(rel(b, "pick")), dots: series
              .map((n, i) =>
                     rel(b, n) && { v: rel(b, n), color: color(i), shape: i, tip: `${n} ${seconds(ms(of(b, n)))}` })
              .filter(Boolean)
          }))
        })),
      section("agreement", "Times",
        agreement(ok.filter((b) => b.milliseconds.predicted > 0 && b.milliseconds.pick > 0).map((b) => ({
          x: ms(b.milliseconds.pick),
          y: ms(b.milliseconds.predicted),
          tip: `${size(b.problem)}\n${short(b.pick)}\nmeasured ${seconds(ms(b.milliseconds.pick))}, predicted ${
            seconds(ms(b.milliseconds.predicted))}`
        })),
          "Predicted against measured times of the picks"))
    ];
  }

  // parameters and terms of an explanation, with formula and source.
  function inside(e) {
    const value = (v, unit) => number(v === null ? "–"
        : unit === "1" ? whole(v)
                       : `${Math.abs(v) < 1e5 && Math.abs(v) > 1e-3 ? digits(v, 4) : quantity(v, unit)}${
                           Math.abs(v) < 1e5 && Math.abs(v) > 1e-3 ? " " + unit : ""}`);
    return section("inside", "Every number",
      h("details", {}, h("summary", {}, `${e.parameters.length} numbers of the device`),
        table("Numbers of the device", ["name", "value", "from", "source", "date"],
          e.parameters.map((p) => [spoken(p.name), value(p.value, p.unit),
                             [p.tier, p.method].filter(Boolean).join(", "), p.source, p.date || ""]))),
      h("details", {}, h("summary", {}, `${Object.keys(e.terms).length} terms of the prediction`),
        table(
          "Terms of the prediction", ["term", "value", "formula", "meaning", "source"], Object.entries(e.terms).map(([
            name, t
          ]) => [spoken(name), value(t.value, t.unit), h("code", {}, t.formula || ""), t.doc || "", t.source || ""]))),
      e.constants?.length > 0 &&
        h("details", {}, h("summary", {}, `${e.constants.length} constants of the model`),
          table("Constants of the model", ["name", "value", "meaning", "source"],
            e.constants.map((c) => [spoken(c.name), value(c.value, c.unit), c.doc || "", c.source || ""]))));
  }
  function runnersUp(all) {
    if (all.length < 2) return null;
    const best = timed(all[0]).seconds || timed(all[0]).cycles;
    return section("runners", "Runners-up",
      table("Runners-up", ["rank", "configuration", "time", "beside the pick", "limited by"], all.map((a) => {
        const v = timed(a).seconds || timed(a).cycles;
        return [
          number(String(a.rank)), short(a.config), number(timed(a).seconds ? seconds(v) : whole(v)),
          a === all[0] ? "the pick" : beside(best, v).replace(" the time", ""), a.predicted.bound
        ];
      })));
  }

  // other shows any other answer as a table of its keys.
  function other(docs) {
    const flat = (d, before = "") => Object.entries(d).flatMap(
      ([k, v]) => v && typeof v === "object" && !Array.isArray(v) ? flat(v, before + k + ".") : [[before + k, v]]);
    const rowsOf = (all) => {
      const columns = [...new Set(all.flatMap((d) => flat(d).map(([k]) => k)))];
      return table("The answer", columns.map(spoken), all.slice(0, 1000).map((d) => {
        const m = new Map(flat(d));
        return columns.map((k) => {
          const v = m.get(k);
          return Array.isArray(v) ? v.map((x) => typeof x === "object" ? JSON.stringify(x) : x).join(", ").slice(0, 300)
            : typeof v === "number"         ? v
            : v === undefined || v === null ? "–"
                                            : String(v);
        });
      }));
    };
    const objects = docs.filter((d) => d && typeof d === "object");
    if (!objects.length) return null;
    if (objects.length === 1) {
      const d = objects[0],
            lists = Object.entries(d).filter(([, v]) => Array.isArray(v) && v.length && typeof v[0] === "object"),
            plain = flat(d).filter(([, v]) => !Array.isArray(v) || typeof v[0] !== "object");
      return section("other", "The answer",
        table("The answer", ["key", "value"], plain.map(([k, v]) => [spoken(k), Array.isArray(v) ? v.join(", ") : v])),
        lists.map(([k, v]) => [h("h3", {}, upper(spoken(k))), rowsOf(v)]));
    }
    return section("other", `${objects.length} rows`, rowsOf(objects));
  }
  function failure(e) {
    return h("section.failure", { role: "alert" }, h("h1", {}, upper(e.what || "There is no answer") + "."),
      e.where && h("p.where", {}, h("code", {}, e.where)), e.fix && h("p", {}, upper(e.fix) + "."));
  }

  // show makes the sections of all answers, the verdict first.
  function show(docs, state) {
    const by = {};
    for (const d of docs) (by[kindOf(d)] ||= []).push(d);
    for (const r of by.rooflines || [])
      for (const v of r.devices) names.set(v.device.split("@").pop(), v.name);
    const out = (by.failure || []).map((d) => failure(d.error)), around = {}, explained = by.explanation || [];
    const problems = new Set((by.answer || []).map((a) => JSON.stringify([a.problem, a.labels, a.arch, a.device])));
    const roofline = (by.rooflines || [])[0], add = (...more) => out.push(...more.flat(2).filter(Boolean));
    let verdictOf = (by.answer || [])[0] || explained[0];
    if (roofline && verdictOf) around.kernel = roofline.kernels.find((k) => k.device.endsWith(verdictOf.device));
    if (by.bands)
      for (const b of by.bands) add(bands(b));
    for (const s of by.step || []) add(step(s));
    if ((by.comparison || []).length === 1)
      add(compared(by.comparison[0], around));
    else if (by.comparison)
      add(many(by.comparison, state));
    if (problems.size > 1) {
      const listed = (by.answer || [])
                       .filter((a) => !(a.rank > 1))
                       .map((a) => ({ problem: a.problem, labels: a.labels, entries: [a] }));
      const drawn = many(listed, state);
      add(by.bands ? drawn.slice(1) : drawn);
      verdictOf = undefined;
    }
    if (verdictOf) {
      add(verdict(verdictOf), ways(verdictOf),
        h(".two", {}, why(verdictOf, around), explained[0] && spent(explained[0])));
      if ((by.answer || []).length > 1) add(runnersUp(by.answer.filter((a) => a.rank)));
    }
    for (const r of by.rooflines || []) add(roofs(r));
    if (by.cell) add(map(by.cell, state));
    for (const l of by.ladder || []) add(ladder(l));
    for (const e of by.evaluation || []) add(evaluation(e));
    if (by.bench) add(bench(by.bench));
    for (const e of explained) add(inside(e));
    if (by.other) add(other(by.other));
    return { sections: out, pick: verdictOf, explained: explained[0] };
  }
  return { show, names, section, kindOf, triton };
})();
