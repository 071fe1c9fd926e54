#!/usr/bin/env node
// Builds the page for browsers (src/page) into dist/page: its scripts bundled by rolldown, its parameters from the tables that read
// requests, so it follows tsc. Nothing is written that has not changed: a server may be reading it.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { rolldown } from "rolldown";
import { z } from "zod";
import { reportStyle } from "../dist/judge/check/report/report-tree.js";
import { chatParameters } from "../dist/wire/apis/chat/request.js";

const from = "src/page";
const to = "dist/page";

const files = new Map();
for (const name of ["index.html", "page.css", "icon.svg"]) files.set(name, readFileSync(`${from}/${name}`, "utf8"));
files.set("page.css", files.get("page.css") + reportStyle);
files.set("parameters.json", JSON.stringify(chatParameters.map(described)));

const bundle = await rolldown({
  input: {
    page: `${from}/main.tsx`,
    "judging-worker": `${from}/captured/judging-worker.ts`,
    "import-worker": `${from}/play/import-worker.ts`,
    "highlighting-worker": `${from}/markdown/highlighting-worker.ts`,
  },
  platform: "browser",
  tsconfig: "tsconfig.page.json",
});
const { output } = await bundle.generate({
  format: "esm",
  minify: true,
  entryFileNames: "[name].js",
  chunkFileNames: "[name].js",
});
await bundle.close();
for (const { fileName, code } of output) files.set(fileName, code);

mkdirSync(to, { recursive: true });
for (const name of readdirSync(to)) if (!files.has(name)) rmSync(`${to}/${name}`);
for (const [name, text] of files) {
  if (textOf(`${to}/${name}`) !== text) writeFileSync(`${to}/${name}`, text);
}

/** What the page shows of a parameter; `src/page/play/parameter.ts` has its shape. */
function described({ name, treatment, origin, note, shape }) {
  const { type, minimum, maximum, enum: values } = z.toJSONSchema(shape, { unrepresentable: "any", io: "input" });
  // zod's own limits of integers say nothing about the parameter.
  const shown = (limit) =>
    Number.isSafeInteger(limit) && Math.abs(limit) === Number.MAX_SAFE_INTEGER ? undefined : limit;
  return { name, treatment, origin, note, type, minimum: shown(minimum), maximum: shown(maximum), values };
}

function textOf(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
