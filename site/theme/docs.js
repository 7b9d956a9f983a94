// Search in the documentation, copying of code, and a menu that is folded where the screen is narrow.
"use strict";
(() => {
  const base = document.body.dataset.base, find = document.getElementById("find"),
        found = document.getElementById("found");
  let index, last = "";

  function el(tag, ...children) {
    const e = document.createElement(tag);
    e.append(...children);
    return e;
  }
  const fold = (text) => text.toLowerCase();

  // ranked are the places that have all words, those with the words in their titles first.
  function ranked(words) {
    const out = [];
    for (const d of index) {
      const title = fold(d.title), text = fold(d.text);
      let score = 0;
      for (const w of words) {
        const inTitle = title.includes(w), at = text.split(w).length - 1;
        if (!inTitle && !at) {
          score = 0;
          break;
        }
        score += (inTitle ? 20 + 20 * w.length / title.length : 0) + Math.log2(1 + at);
      }
      if (score)
        out.push([score - (d.location.includes("#") ? 1 : 0) - (/adr|experiments/.test(d.location) ? 6 : 0), d]);
    }
    return out.sort((a, b) => b[0] - a[0]).slice(0, 12).map((v) => v[1]);
  }
  // around is the text about the first word, with the word marked.
  function around(text, words) {
    const at = Math.max(0, fold(text).indexOf(words[0])), from = Math.max(0, at - 50), small = el("small");
    const piece = text.slice(from, from + 150), i = fold(piece).indexOf(words[0]);
    if (i < 0)
      small.append(piece);
    else
      small.append((from ? "…" : "") + piece.slice(0, i), el("mark", piece.slice(i, i + words[0].length)),
        piece.slice(i + words[0].length));
    return small;
  }
  async function search() {
    const text = find.value.trim();
    if (text === last) return;
    last = text;
    const words = fold(text).split(/\s+/).filter(Boolean);
    if (!words.length) {
      found.hidden = true;
      return;
    }
    index ||= (await (await fetch(`${base}/search/search_index.json`)).json()).docs;
    const hits = ranked(words);
    found.replaceChildren(...(hits.length ? hits.map((d) => {
      const a = el("a", el("strong", d.title), around(d.text, words));
      a.href = `${base}/${d.location}`;
      return el("li", a);
    })
                                          : [el("li", el("p", "Nothing has these words."))]));
    found.hidden = false;
  }
  find.addEventListener("input", search);
  find.addEventListener("keydown", (e) => {
    if (e.key === "Enter") found.querySelector("a")?.click();
    if (e.key === "Escape") {
      found.hidden = true;
      last = "";
    }
  });
  addEventListener("keydown", (e) => {
    if (e.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) {
      e.preventDefault();
      find.focus();
    }
  });
  addEventListener("click", (e) => {
    if (!e.target.closest(".find")) found.hidden = true;
  });

  for (const pre of document.querySelectorAll("article pre")) {
    const button = el("button", "Copy"), box = el("div");
    button.type = "button";
    button.className = "copy";
    button.addEventListener("click", async () => {
      const lines = pre.textContent.split("\n"),
            typed = lines.filter((l) => l.startsWith("$ ")); // of a session, what was typed
      await navigator.clipboard.writeText(typed.length ? typed.map((l) => l.slice(2)).join("\n") : pre.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.className = "code";
    pre.replaceWith(box);
    box.append(pre, button);
  }
  if (innerWidth <= 800) document.querySelector(".menu").open = false;
  document.querySelector(".pages [aria-current]")?.scrollIntoView({ block: "nearest" });
})();
