// Starts the service worker that answers, and says when it is there.
"use strict";
window.origami = (async () => {
  const workers = navigator.serviceWorker;
  if (!workers) throw new Error("This browser gives the page no service worker; a private window may be why. The command needs no browser.");
  await workers.register("worker.js");
  const { active } = await workers.ready;
  const controlled = workers.controller || new Promise((done) => workers.addEventListener("controllerchange", done));
  active.postMessage("api/v1/select?" + document.documentElement.dataset.first);
  await controlled;
})();
window.origami.catch(() => {}); // who asks is told
