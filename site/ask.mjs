// Asks the module of the site under Node: node ask.mjs ORIGAMI.WASM WASM_EXEC.JS PATH… prints a line of JSON per answer.
import { readFileSync } from "node:fs";

const [module, runtime, ...paths] = process.argv.slice(2);
(0, eval)(readFileSync(runtime, "utf8"));
const go = new Go();
globalThis.origamiReady = async (ask) => {
  for (const path of paths) {
    const { body, status, headers } = await new Promise((done) => ask(path, done));
    const line = JSON.stringify({ status, headers, body: Buffer.from(body).toString() }) + "\n";
    await new Promise((written) => process.stdout.write(line, written));
  }
  process.exit();
};
const { instance } = await WebAssembly.instantiate(readFileSync(module), go.importObject);
await go.run(instance);
process.exit(1); // it ended, and should not
