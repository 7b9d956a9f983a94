// The page: the question in its address, the answers of the program behind it, or those that a report has in it.
"use strict";
(() => {
  const { h } = chart, main = document.getElementById("main"), form = document.getElementById("question");
  const live = "live" in document.documentElement.dataset;
  const served = location.protocol.startsWith("http") && !("site" in document.documentElement.dataset)
    ? location.origin
    : "http://localhost:8620";
  let answers = [], asking = 0, spec, archs = [];

  // What a reader chooses for looking is in the address too, behind #.
  const state = {
    get: (name) => new URLSearchParams(location.hash.slice(1)).get(name),
    set(name, value) {
      const all = new URLSearchParams(location.hash.slice(1));
      if (value)
        all.set(name, value);
      else
        all.delete(name);
      const focused = document.activeElement?.name === name && document.activeElement.value;
      history.replaceState(null, "", all.size ? "#" + all : location.pathname + location.search);
      render();
      if (focused) main.querySelector(`[name="${name}"]:checked`)?.focus();
    },
  };

  // The documents of an answer: one, a list, or one per line.
  function read(text) {
    try {
      const v = JSON.parse(text);
      return Array.isArray(v) ? v : [v];
    } catch { return text.split("\n").filter((l) => l.trim()).map((l) => JSON.parse(l)); }
  }
  async function embedded() {
    for (const [id, name] of Object.entries(JSON.parse(document.getElementById("names")?.textContent || "{}")))
      views.names.set(id, name);
    return Promise.all([...document.querySelectorAll("script.answer")].map(async (e) => {
      let text = e.textContent;
      if (e.dataset.form === "gzip") {
        const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
      }
      return { verb: e.dataset.verb, command: e.dataset.command, query: e.dataset.query || "", text, docs: read(text) };
    }));
  }

  // split parts a list of devices. What follows a colon belongs to the device before: h200:clock=1GHz,num_sms=66.
  function split(text) {
    const out = [];
    for (const part of (text || "").split(",")) {
      if (part.includes("=") && !part.includes(":") && out.length)
        out[out.length - 1] += "," + part;
      else if (part)
        out.push(part);
    }
    return out;
  }
  // sizes are those of a list with ranges; a range without a step doubles.
  function sizes(text) {
    const out = [];
    for (const part of text.split(",")) {
      const [lo, ...more] = part.split(":").map(Number), hi = more[more.length - 1];
      if (!more.length)
        out.push(lo);
      else if (more.length === 1) {
        for (let v = lo; v < hi; v = 2 ** Math.floor(Math.log2(v) + 1)) out.push(v);
        out.push(hi);
      } else
        for (let v = lo; v <= hi && out.length < 256; v += more[0]) out.push(v);
    }
    return [...new Set(out)].filter((v) => v > 0).sort((a, b) => a - b);
  }

  // plan lists what is asked for a question, the verdict first. Of what follows it, each gets the parameters it knows.
  function plan(q) {
    const devices = split(q.get("arch")), m = q.get("m") || "", several = /[,:]/.test(m);
    const ns = (q.get("n") || "").split(","), ks = (q.get("k") || "").split(","),
          layers = Math.max(ns.length, ks.length);
    const verb = devices.length > 1 ? "compare" : "select", out = [];
    const ask = (name, changes, all) => {
      const known = spec && parameters(name), query = new URLSearchParams();
      for (const [k, v] of [...q, ...Object.entries(changes)])
        if (v === null)
          query.delete(k);
        else if (all || !known || known.has(k))
          query.set(k, v);
      out.push({ verb: name, query: query.toString() });
    };
    if (several || layers > 1) {
      if (devices.length === 1 && layers === 1) ask("select", {}, true);
      for (let i = 0; i < layers; i++) {
        ask(verb, {
          m: null, n: null, k: null, same: null, own: null, brief: verb === "select" ? "true" : null,
          problems: `m=${sizes(m).join(",")},n=${ns[i] ?? ns[0]},k=${ks[i] ?? ks[0]}`
        },
          devices.length > 1 || layers > 1);
      }
      return out;
    }
    if (verb === "compare") {
      ask("compare", {}, true);
      ask("roofline", {});
      return out;
    }
    const free = !q.get("contract");
    ask("select",
      free ? { advice: q.get("advice") || "true", regret: q.get("regret") || "true", top: q.get("top") || "10" } : {},
      true);
    ask("explain", { advice: null });
    if (free) ask("roofline", {});
    return out;
  }
  function parameters(verb) {
    return new Map((spec.paths["/api/v1/" + verb].get.parameters || []).map((p) => [p.name, p]));
  }

  // plain is a query with the letters that people read left as they are.
  const plain = (query) =>
    query.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%3D", "=").replaceAll("'", "%27");
  const question = () => new URLSearchParams(location.search);
  // command is a question as a command line.
  function command(verb, query) {
    const word = (v) => /^[\w.,:@=+/-]+$/.test(v) ? v : `'${v.replaceAll("'", "'\\''")}'`;
    return [
      "origami", verb,
      ...[...new URLSearchParams(query)].map(([k, v]) => v === "true" ? "--" + k.replaceAll("_", "-")
          : k.length === 1                                            ? `-${k} ${word(v)}`
                                                                      : `--${k.replaceAll("_", "-")} ${word(v)}`)
    ].join(" ");
  }

  async function get(path) {
    if (path.includes("?")) await window.origami; // of the site: what answers is there
    const r = await fetch(path);
    return { ok: r.ok, text: await r.text() };
  }
  // describe gets what can be asked, and draws the form.
  async function describe() {
    spec ||= JSON.parse((await get("openapi.json")).text);
    archs = archs.length ? archs : JSON.parse((await get("api/v1/archs")).text);
    for (const a of archs) views.names.set(a.device, a.name);
    draw(question());
  }
  async function ask() {
    const mine = ++asking, q = question();
    main.setAttribute("aria-busy", "true");
    main.classList.add("before"); // what is shown is the answer to the question before
    if (!answers.length)
      main.replaceChildren(
        h("p.waiting", { role: "status" }, window.origami ? "The models are loaded, once…" : "Asking…"));
    try {
      await describe();
      if (mine !== asking) return;
      const found = [];
      for (const one of plan(q)) {
        const path = `api/v1/${one.verb}?${one.query}`, { ok, text } = await get(path);
        if (mine !== asking) return;
        if (!ok && found.length) continue; // the verdict stands without what is beside it
        found.push({...one, text, docs: read(text), path });
        answers = found;
        main.classList.remove("before");
        render();
        if (!ok) break;
      }
    } catch (error) {
      if (mine === asking)
        main.replaceChildren(h("section.failure", { role: "alert" }, h("h1", {}, "There is no answer."),
          h("p", {}, String(error.message || error))));
    } finally {
      if (mine === asking) {
        main.removeAttribute("aria-busy");
        main.classList.remove("before");
      }
    }
  }

  // The form: what most ask in a row, everything else behind a fold, with the words of the interface's description.
  const field = (label, input, className = "") => h("label.field" + className, {}, h("span", {}, label), input);
  const option = (value, text, chosen) => h("option", { value, selected: value === chosen }, text);
  const models = {
    // N×K of the layers, from the models' config.json
    "Llama-3.1-8B": ["6144,4096,28672,4096", "4096,4096,4096,14336"],
    "Llama-3.3-70B": ["10240,8192,57344,8192", "8192,8192,8192,28672"],
    "Qwen3-32B": ["10240,5120,51200,5120", "5120,8192,5120,25600"],
  };
  const common = ["arch", "m", "n", "k", "dtype", "kernel", "trans_a", "trans_b"];
  function draw(q) {
    const chosen = split(q.get("arch") || first().get("arch")),
          value = (name) => q.get(name) ?? (q.size ? "" : first().get(name)) ?? "";
    const text = (name, list, label, more = {}) =>
      field(label, h("input", { name, value: value(name), list, autocomplete: "off", spellcheck: "false", ...more }));
    const chips = h(".devices", {},
      chosen.map((d, i) => h("button.chip", {
        type: "button",
        onclick: () => go((p) => p.set("arch", chosen.filter((_, j) => j !== i).join(",")))
      }, h("span.unseen", {}, "Remove "), views.names.get(d) || d, h("i", { "aria-hidden": "true" }, "×"))));
    const vendors = [...new Set(archs.map((a) => a.vendor))],
          add = h("select", {
            "aria-label": "Add a device",
            onchange: (e) => go((p) => p.set("arch", [...chosen, e.target.value].join(",")))
          },
            option("", chosen.length ? "+ device" : "device", ""),
            vendors.map((v) => h("optgroup", { label: v },
                          archs.filter((a) => a.vendor === v && !chosen.includes(a.device))
                            .map((a) => option(a.device, a.name)))));
    const families = [...new Set(
      archs.filter((a) => chosen.some((c) => c.split(":")[0].split("@").pop() === a.device || a.aliases?.includes(c)))
        .flatMap((a) => a.kernels))];
    const select = (name, label, values, none) => field(label,
      h("select", { name }, none !== undefined && option("", none, value(name)),
        values.map((v) => option(v, v, value(name))),
        value(name) && !values.includes(value(name)) && option(value(name), value(name), value(name))));
    const tick = (name, label) => h("label.tick-box", {},
      h("input", { type: "checkbox", name, value: "true", checked: value(name) === "true" }), label);
    const known = new Map([...parameters("compare"), ...parameters("select")]),
          types = known.get("dtype").schema.enum || [];
    const others = [...known.values()].filter((p) => !common.includes(p.name) && p.name !== "problems");
    const more = h("details.more", { open: others.some((p) => q.get(p.name)) || undefined }, h("summary", {}, "More"),
      h(".all", {},
        others.map((p) => p.schema.type === "boolean"
            ? h(".field", {}, tick(p.name, p.name.replaceAll("_", " ")), h("small", {}, p.description))
            : field(p.name.replaceAll("_", " "), [
                p.schema.enum
                  ? h("select", { name: p.name }, option("", "", value(p.name)),
                      p.schema.enum.map((v) => option(v, v, value(p.name))))
                  : h("input", { name: p.name, value: q.get(p.name) ?? "", autocomplete: "off", spellcheck: "false" }),
                h("small", {}, p.description)
              ]))));
    const shapes = h("select", {
      "aria-label": "Layers of a model",
      onchange: (e) => {
        const s = models[e.target.value];
        if (s)
          go((p) => {
            p.set("n", s[0]);
            p.set("k", s[1]);
            p.set("trans_b", "true");
            if (!/[,:]/.test(p.get("m") || "")) p.set("m", "1:8192");
          });
      }
    },
      option("", "layers of…", ""), Object.keys(models).map((m) => option(m, m)));
    const asked = chosen.map((d) => views.names.get(d) || d).join(", ");
    form.replaceChildren(h("details.asked", { open: !narrow.matches },
                           h("summary", {}, h("strong", {}, asked),
                             ` ${["m", "n", "k"].map(value).join(" × ")} ${value("dtype")} `, h("u", {}, "Change")),
                           h(".row", {}, field("Devices", h(".with", {}, chips, add), ".grow"),
                             h("input", { type: "hidden", name: "arch", value: chosen.join(",") })),
                           h(".row", {}, text("m", "sizes-m", "M"), text("n", "sizes", "N"), text("k", "sizes", "K"),
                             field("Layers", shapes), select("dtype", "Type", types),
                             select("kernel", "Kernel family", families, "default"),
                             h(".field.ticks", { role: "group", "aria-label": "Layout" },
                               tick("trans_a", "A transposed"), tick("trans_b", "B transposed")),
                             h("button.ask", {}, "Ask")),
                           more),
      h("datalist", { id: "sizes" }, ["1024", "2048", "4096", "8192", "16384"].map((v) => option(v))),
      h("datalist", { id: "sizes-m" },
        ["1", "16", "256", "4096", "8192", "1:8192", "1,16,256,4096"].map((v) => option(v))));
  }
  const narrow = matchMedia("(max-width: 640px)"); // the form is folded behind its question
  narrow.onchange = () => form.querySelector(".asked")?.toggleAttribute("open", !narrow.matches);
  const first = () => new URLSearchParams(
    document.documentElement.dataset.first || "arch=h200&m=4096&n=4096&k=4096&dtype=bf16&trans_b=true");
  // go asks a changed question. Empty fields are no part of it.
  function go(change) {
    const p = new URLSearchParams();
    for (const [k, v] of new FormData(form))
      if (v !== "") p.set(k, v);
    change?.(p);
    history.pushState(null, "", "?" + plain(p));
    ask();
  }

  // take is what a reader takes along: the configuration to paste, the command, the request, the JSON.
  function take(pick) {
    const asked = answers[0], out = [], triton = views.triton(pick);
    if (triton) out.push(["triton.Config", triton]);
    out.push([
      "Command line",
      answers.filter((a) => a.verb === asked.verb).map((a) => a.command || command(a.verb, a.query)).join("\n")
    ]);
    if (asked.query) out.push(["curl", `curl '${served}/api/v1/${asked.verb}?${plain(asked.query)}'`]);
    if (pick?.config) out.push(["Configuration", JSON.stringify(pick.config)]);
    return views.section("take", "Use it in code", out.map(([name, text]) => h(".snippet", {}, h("span", {}, name),
      h("pre", { tabindex: "0", "aria-label": name }, h("code", {}, text)), chart.copy("Copy", name, text))));
  }
  // what is the device with another number, beside itself.
  function whatIf(e) {
    const numbers = e.parameters.filter((p) => p.used !== false && p.value > 0), q = question(),
          device = split(q.get("arch"))[0];
    if (!live || !device || !numbers.length) return null;
    const of = h("select", { "aria-label": "Number of the device" },
      numbers.map((p) => option(p.name,
                    `${p.name.replaceAll("_", " ")}, ${p.unit === "1" ? p.value : chart.quantity(p.value, p.unit)}`)));
    const by = h(
      "select", { "aria-label": "Times" }, ["0.5", "0.75", "1.25", "1.5", "2"].map((v) => option(v, v + "×", "1.25")));
    return views.section("what-if", "What if the device had other numbers",
      h("p.faint", {}, "All its other numbers stay as they are."),
      h(".row", {}, of, by,
        h("button.ask", {
          type: "button",
          onclick: () => {
            const p = numbers.find((n) => n.name === of.value), v = p.value * by.value,
                  changed = Number.isInteger(p.value) ? Math.round(v) : v;
            go((all) => all.set("arch", `${device},${device}${device.includes(":") ? "," : ":"}${p.name}=${changed}`));
          }
        },
          "Compare")));
  }
  function raw() {
    return views.section("raw", "JSON",
      answers.map((a) => h("details", {
        ontoggle: (e) => {
          const pre = e.target.querySelector("pre");
          if (!pre.textContent) pre.textContent = a.text;
        }
      },
                    h("summary", {}, `${a.command || command(a.verb, a.query)}`),
                    h("p", {},
                      a.path ? h("a", { href: a.path }, "The answer alone")
                             : h("a", {
                                 href: URL.createObjectURL(new Blob([a.text], { type: "application/json" })),
                                 download: a.verb + ".json"
                               },
                                 "Save")),
                    h("pre", { tabindex: "0" }))));
  }

  function render() {
    const open = new Set([...main.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
    const { sections, pick, explained } = views.show(answers.flatMap((a) => a.docs), state);
    const failed = answers.every((a) => a.docs.every((d) => views.kindOf(d) === "failure"));
    const rest = failed || !answers.length ? [] : [take(pick), raw()];
    const at = sections.findIndex((s) => s.classList?.contains("ways"));
    if (at >= 0 && rest.length && rest[0].children.length > 2 && answers.length < 4)
      sections.splice(at + 1, 0, rest.shift());
    const changed = explained && whatIf(explained), inside = sections.findIndex((s) => s.classList?.contains("inside"));
    if (changed) sections.splice(inside, 0, changed);
    main.replaceChildren(...sections, ...rest);
    const title = main.querySelector("h2");
    if (title && !main.querySelector("h1")) title.replaceWith(h("h1.title", {}, title.textContent));
    for (const plot of main.querySelectorAll(".plot")) plot.redraw(plot.clientWidth);
    for (const s of main.querySelectorAll("details > summary"))
      if (open.has(s.textContent)) s.parentElement.open = true;
    const heading = main.querySelector("h1"), where = main.querySelector(".eyebrow");
    if (heading)
      document.title = [heading.getAttribute("aria-label") || heading.textContent, where?.firstChild?.textContent]
                         .filter(Boolean)
                         .join(" · ") +
        " · origami";
  }

  // Answers lie beside each other where there is room.
  addEventListener("hashchange", render);
  (async () => {
    answers = await embedded();
    if (answers.length && !(live && location.search.length > 1)) render();
    if (!live) return;
    form.hidden = false;
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      go();
    });
    addEventListener("popstate", ask);
    if (answers.length && location.search.length <= 1) return describe();
    if (location.search.length <= 1) history.replaceState(null, "", "?" + first() + location.hash);
    await ask();
  })();
})();
