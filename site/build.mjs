// Makes the front page of the site: node ask.mjs … | node build.mjs FOLDER FIRST, with the answers to /openapi.json, to
// /api/v1/archs, and to the questions of the front page, whose question is FIRST. The page shows them before the module is
// there.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const [folder, first, ...paths] = process.argv.slice(2);
const answers = readFileSync(0, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const here = new URL(".", import.meta.url);
const wrong = answers.find((a) => a.status !== 200);
if (wrong || answers.length !== paths.length) throw new Error(wrong ? wrong.body : "an answer is missing");

const attribute = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
const data = paths.map((path, i) => {
  const [, verb, query] = /^\/api\/v1\/(\w+)\?(.*)$/.exec(path) || [];
  return verb ? `<script type="application/json" class="answer" data-verb="${verb}" data-query="${attribute(query)}">` +
    answers[i].body.replaceAll("<", "\\u003c") + "</script>\n" : "";
});
mkdirSync(`${folder}/api/v1`, { recursive: true });
writeFileSync(`${folder}/openapi.json`, answers[paths.indexOf("/openapi.json")].body);
writeFileSync(`${folder}/api/v1/archs`, answers[paths.indexOf("/api/v1/archs")].body);

let page = readFileSync(new URL("page/index.html", here), "utf8");
const replace = (from, to) => {
  if (!page.includes(from)) throw new Error(`the page has no ${from}`);
  page = page.replace(from, () => to);
};
replace('data-live>', `data-live data-site data-first="${attribute(first)}">`);
replace('<nav aria-label="Links">', '<nav aria-label="Links"><a href="docs/">Documentation</a>');
replace("<!-- answers -->", data.join(""));
replace("<footer>", readFileSync(new URL("home.html", here), "utf8") + "<footer>");
replace('<script src="chart.js">', '<script src="open.js"></script>\n<script src="chart.js">');
writeFileSync(`${folder}/index.html`, page);
