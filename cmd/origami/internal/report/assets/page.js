// Shows what is at a pointer in the figures of a page, and makes choices and sliders work.
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

  // tips shows what is nearest to the pointer, or what the arrow keys reach.
  function tips(place) {
    const drawings = [...place.querySelectorAll("svg")].map((svg) => [svg, [...svg.querySelectorAll("title")]]);
    const texts = drawings[0][1].map((title) => title.textContent); // the narrow drawing has the same marks
    for (const [svg, titles] of drawings) {
      const marks = titles.map((title, i) => ({ element: title.parentNode, text: texts[i] }));
      titles.forEach((title) => title.remove()); // the browser would show them too
      if (marks.length > 0) tip(place, svg, marks);
    }
  }

  function tip(place, svg, marks) {
    const box = document.createElement("div");
    box.className = "tip";
    box.hidden = true;
    box.setAttribute("role", "status");
    place.append(box);
    svg.setAttribute("tabindex", "0");
    let at = -1;
    const show = (i) => {
      if (at >= 0) marks[at].element.classList.remove("lit");
      at = i;
      box.hidden = i < 0;
      if (i < 0) return;
      marks[i].element.classList.add("lit");
      box.textContent = marks[i].text;
      const mark = marks[i].element.getBoundingClientRect(), outside = place.getBoundingClientRect();
      const left = mark.left + mark.width / 2 - outside.left, top = mark.top - outside.top;
      box.style.left = `${Math.max(0, Math.min(left - box.offsetWidth / 2, outside.width - box.offsetWidth))}px`;
      box.style.top = `${top - box.offsetHeight - 8 < -40 ? top + mark.height + 8 : top - box.offsetHeight - 8}px`;
    };
    // away is how far a point is from a mark: from its edge, and within it from its middle, which counts less.
    const away = (mark, x, y) => {
      const r = mark.element.getBoundingClientRect();
      const dx = Math.max(r.left - x, 0, x - r.right), dy = Math.max(r.top - y, 0, y - r.bottom);
      return Math.hypot(dx, dy) + 1e-3 * Math.hypot(x - (r.left + r.right) / 2, y - (r.top + r.bottom) / 2);
    };
    const point = (e) => {
      const far = marks.map((m) => away(m, e.clientX, e.clientY));
      const nearest = far.indexOf(Math.min(...far));
      show(far[nearest] < 40 ? nearest : -1);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", () => show(-1));
    svg.addEventListener("blur", () => show(-1));
    svg.addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[e.key];
      if (e.key === "Escape") show(-1);
      if (!step) return;
      e.preventDefault();
      show(Math.max(0, Math.min(marks.length - 1, at + step)));
    });
  }

  function choose(choice) {
    const select = choice.querySelector("select");
    const panels = [...choice.querySelectorAll(":scope > .panel")];
    const update = () => panels.forEach((p) => { p.hidden = p.id !== select.value; });
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
        await window.origami; // what answers, where it has to start first
        const reply = await fetch(spec.ask.replace("CHANGES", encodeURIComponent(changes)));
        const answer = await reply.json();
        if (mine !== asked) return; // a later question is on its way
        if (!reply.ok) return say(NaN, answer.error.what);
        const c = answer.config;
        say(spec.scale * answer.predicted.seconds, `${c.block_m}x${c.block_n}x${c.block_k}, ${answer.predicted.bound}-bound`);
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
  document.querySelectorAll(".plot").forEach(tips);
  document.querySelectorAll(".whatif").forEach(whatIf);
  document.documentElement.dataset.drawn = "true";
})();
