// A service worker that answers what `origami serve` answers, with the same program as a WebAssembly module: the page
// asks as it asks a server, and works without a network. Pages of the documentation do so once visited.
"use strict";
importScripts("wasm_exec.js");

// A forge has several sites at one origin, each with a path of its own. `make site` puts in what the files hash to.
const ours = `origami-${self.registration.scope}-`, cache = ours + "VERSION";
const module = "origami.wasm.gz", kept = ["./", "open.js", "style.css", "chart.js", "views.js", "page.js",
  "openapi.json", "api/v1/archs", module];

self.addEventListener("install", (event) => event.waitUntil((async () => {
  await (await caches.open(cache)).addAll(kept.map((file) => new Request(file, { cache: "reload" })));
  // Where a browser can be told, the documentation does not wait for an answer that is being computed.
  const docs = { urlPattern: new URL("docs/*", self.registration.scope).href };
  await event.addRoutes?.({ condition: docs, source: "race-network-and-fetch-handler" })?.catch(() => {});
  await self.skipWaiting();
})()));

self.addEventListener("activate", (event) => event.waitUntil((async () => {
  const others = (await caches.keys()).filter((name) => name.startsWith(ours) && name !== cache);
  await Promise.all(others.map((name) => caches.delete(name)));
  await self.clients.claim();
})()));

// The opening page says that it is open, and what it shows: the program starts before the first question, and answers that
// one, since browsers compile what runs for the first time.
self.addEventListener("message", (event) => event.waitUntil(Promise.all([self.clients.claim(), answer("/" + event.data)])));

self.addEventListener("fetch", (event) => {
  const at = new URL(event.request.url), scope = new URL(self.registration.scope);
  if (event.request.method !== "GET" || at.origin !== scope.origin || !at.pathname.startsWith(scope.pathname)) return;
  const path = at.pathname.slice(scope.pathname.length);
  if (path.startsWith("api/") && !(kept.includes(path) && !at.search)) {
    event.respondWith(answer("/" + path + at.search));
  } else if (kept.includes(path || "./")) {
    event.respondWith(caches.match(path || "./", { cacheName: cache }).then((found) => found || fetch(event.request)));
  } else {
    event.respondWith(visited(event));
  }
});

// page is the address without what is asked of it: files do not depend on that, and there are as many as there are pages.
function page(request) {
  const at = new URL(request.url);
  return at.origin + at.pathname;
}

// visited answers from the network, and without one with what it answered before: a page of the documentation that was
// read once can be read again.
async function visited(event) {
  try {
    const answer = await fetch(event.request);
    if (answer.status === 200) {
      const copy = answer.clone(), at = page(event.request);
      event.waitUntil(caches.open(cache).then((open) => open.put(at, copy)).catch(() => {}));
    }
    return answer;
  } catch (error) {
    const found = await caches.match(page(event.request), { cacheName: cache });
    if (found) return found;
    throw error;
  }
}

let running; // the function that answers, from the first question on

// program starts the module, and starts it again after it has ended.
function program() {
  running ??= new Promise((resolve, reject) => {
    self.origamiReady = resolve;
    start().then(() => reject(new Error("the program has ended")), reject).finally(() => { running = undefined; });
  });
  return running;
}

async function start() {
  const packed = (await caches.match(module, { cacheName: cache })) || (await fetch(module));
  const headers = { "Content-Type": "application/wasm" };
  const unpacked = new Response(packed.body.pipeThrough(new DecompressionStream("gzip")), { headers });
  const go = new Go();
  const { instance } = await WebAssembly.instantiateStreaming(unpacked, go.importObject);
  await go.run(instance); // until it ends
}

async function answer(path) {
  try {
    const ask = await program();
    const { body, status, headers } = await new Promise((done) => ask(path, done));
    return new Response(body, { status, headers });
  } catch (error) {
    return new Response(`origami does not answer: ${error.message}\n`, { status: 500 });
  }
}
