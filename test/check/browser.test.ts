import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createContext, runInContext, runInThisContext } from "node:vm";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Exchange } from "../../src/judge/check/rules/exchange.ts";
import type { ProfileName } from "../../src/judge/check/rules/profile/profile-rule.ts";
import * as rules from "../../src/rules.ts";
import { findChromium, openedInChromium } from "../support/chromium.ts";
import { legalBody } from "./legal/body.ts";
import { legalStream } from "./legal/stream.ts";
import { between, oneOf, seeded } from "./random.ts";
import { waitMs } from "../support/hang.ts";

// The rules run in a browser as they are: the same module, bundled for the web, finds the same where there is nothing of Node.

interface Case {
  readonly exchange: Exchange;
  readonly demanded: ProfileName | null;
}

/** Evaluated everywhere: here with the module itself, elsewhere with its bundle. */
const judgeAll = `(rules, cases) => JSON.stringify({
  ids: rules.everyRule.map(({ id }) => id),
  verdicts: cases.map(({ exchange, demanded }) => [rules.formOf(exchange) ?? null, rules.judge(exchange, demanded ?? undefined)]),
  captures: cases.map(({ exchange }) => rules.judgeCapture("capture", exchange.response.body, exchange.request.body).findings),
})`;

const cases = Array.from({ length: 240 }, (_, seed) => caseOf(seed));
let bundle: string;
let expected: string;
const folder = mkdtempSync(join(tmpdir(), "truewire-browser-"));

beforeAll(async () => {
  const build = await rolldown({ input: "src/rules.ts", platform: "browser" });
  const { output } = await build.generate({ format: "iife", name: "rules", codeSplitting: false });
  await build.close();
  bundle = output[0].code;
  const here = runInThisContext(judgeAll) as (module: typeof rules, all: readonly Case[]) => string;
  expected = here(rules, cases);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the cases have much to find", () => {
  const { verdicts } = JSON.parse(expected) as { verdicts: [unknown, { findings: { rule: string }[] }][] };
  const found = new Set(verdicts.flatMap(([, { findings }]) => findings.map(({ rule }) => rule)));
  expect(found.size).toBeGreaterThan(40);
});

test("in a context without anything of Node, the rules find the same", () => {
  // Of the web they take nothing but this.
  const context = createContext({ TextEncoder, TextDecoder });
  const missing = ["process", "Buffer", "require", "global", "setImmediate", "module", "fetch", "URL", "setTimeout"];
  expect(runInContext(missing.map((name) => `typeof ${name}`).join(" + "), context)).toBe(
    "undefined".repeat(missing.length),
  );
  runInContext(bundle, context, { timeout: waitMs });
  context.input = JSON.stringify(cases);
  expect(runInContext(`(${judgeAll})(rules, JSON.parse(input))`, context, { timeout: waitMs })).toBe(expected);
});

const browser = findChromium();
if (browser === undefined) console.log("skipped: no Chromium (CHROME_PATH, or on the PATH) to run the rules in");

test.skipIf(browser === undefined)("in a browser, the rules find the same", async () => {
  const page = join(folder, "rules.html");
  writeFileSync(join(folder, "rules.js"), bundle);
  writeFileSync(
    join(folder, "judge.js"),
    `let said;
     try { said = (${judgeAll})(rules, ${JSON.stringify(cases)}); } catch (error) { said = String(error?.stack ?? error); }
     document.querySelector("pre").textContent = encodeURIComponent(said);`,
  );
  const scripts = '<script src="rules.js"></script><script src="judge.js"></script>';
  writeFileSync(page, `<!doctype html><meta charset="utf-8"><pre></pre>${scripts}`);
  const document = await openedInChromium(browser ?? "", pathToFileURL(page).href);
  const said = decodeURIComponent(/<pre>([^<]*)<\/pre>/.exec(document)?.[1] ?? "");
  expect(said).toBe(expected);
});

/** A legal stream or body, and three times in four one that somebody has spoiled. */
function caseOf(seed: number): Case {
  const random = seeded(seed);
  const { exchange } = seed % 2 === 0 ? legalStream(seed) : legalBody(seed);
  const demanded = oneOf([null, "lean", "exact"] as const, random);
  if (random() < 0.25) return { exchange, demanded };
  const { response } = exchange;
  return { exchange: { ...exchange, response: { ...response, body: spoiled(response.body, random) } }, demanded };
}

function spoiled(body: string, random: () => number): string {
  const at = between(0, body.length - 1, random);
  return oneOf(
    [
      () => body.slice(0, at) + body.slice(at + 1),
      () => body.slice(0, at),
      () => body.replaceAll("\n", "\r\n"),
      () => body.replaceAll('"index":0', '"index":"0"'),
      () => body.replaceAll('"role":', '"rôle":'),
      () => body.replaceAll("null", '"🦙"'),
      () => body.replace("data: [DONE]\n\n", ""),
      () => body.replace(/"arguments": ?"/, '"arguments":"{'),
      () => body.replaceAll('"usage":', '"used":'),
      () => body.replaceAll(/\d\d/g, "-7"),
      () => `${body.slice(0, at)}${body.slice(body.lastIndexOf("data:", at))}`,
    ],
    random,
  )();
}
