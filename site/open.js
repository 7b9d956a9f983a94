// Starts the service worker that answers. A question in the address that came before it was there is asked again.
"use strict";
(() => {
  const asked = location.search.length > 1;
  const say = (text) => {
    const show = () => {
      const main = document.createElement("main"), title = document.createElement("h1"), line = document.createElement("p");
      title.textContent = "origami";
      line.setAttribute("role", "status");
      line.textContent = text;
      main.append(title, line);
      document.body.replaceChildren(main);
    };
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", show);
    else show();
  };
  if (asked) say("Loading the models, once…");
  // What asks waits for this.
  window.origami = (async () => {
    const workers = navigator.serviceWorker;
    if (!workers) throw new Error("this browser gives the page no service worker; a private window may be why");
    await workers.register("worker.js");
    const { active } = await workers.ready;
    if (asked) return location.reload();
    const controlled = workers.controller || new Promise((done) => workers.addEventListener("controllerchange", done));
    active.postMessage("open");
    await controlled;
  })();
  window.origami.catch((error) => {
    if (asked) say(`origami cannot be started: ${error.message}. The command and its documentation need no browser.`);
  });
})();
