import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";
import { maxGrowth } from "../support/growth.ts";
import { cpuMs } from "../support/hang.ts";

/*
 * Each regular expression in the source, on texts of repeated units. Those that have read foreign text for a long time without a test of
 * their growth took quadratic time: `/^\s*(\{\s*\}?\s*)?$/` on arguments of a call, `/<[^>]*>/` on an error page, and a JSON string that
 * does not end (`/"(?:[^"\\]|\\.)*"/`) in many places. No test gave them more than a few characters. A place in a refusal,
 * `/'loc': \((?:'?[\w$]{1,64}'?,? ?){1,12}\)/`, took exponential time: the texts here did not get past its `(`.
 */

/**
 * Expressions that take more than linear time, and read no foreign text, or only so much of it that it does not matter. By file and
 * beginning of the pattern.
 */
const bounded: Readonly<Record<string, string>> = {
  "src/serve/app/settings-of-config.ts (api.?key|": "names of members of the configuration",
  "src/judge/check/probe/run-check.ts \\/+$": "a URL of the command line",
  "src/serve/cli/batch-action.ts \\/+$": "a URL of the command line",
  "src/serve/cli/admin-client.ts \\/+$": "a URL of the command line",
  "src/serve/cli/doctor-server.ts \\/+$": "a URL of the command line",
  "src/serve/cli/launch-action.ts \\/+$": "a URL of the command line",
  "src/engines/upstream/targets.ts \\/+$": "a URL of the configuration",
  "src/serve/hosted/search-engines.ts \\/+$": "a URL of the configuration",
  "src/engines/upstream/unnamed-api.ts \\/+$": "a URL of the configuration",
  "src/text/formats/reading/read-literal.ts ^[-+]?": "a word of at most `maxWordLength` characters",
  "src/page/markdown/parser.ts \\d.*": "a text of at most `maxProse` characters",
  "src/text/formats/learn-format.ts":
    "renderings of a chat template of at most `maxRendering` characters, once for each template",
};

interface Expression {
  readonly place: string;
  readonly regex: RegExp;
}

const root = fileURLToPath(new URL("../../", import.meta.url));

function* sourceFiles(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sourceFiles(path);
    else if (/(?<!\.test)\.tsx?$/.test(entry.name)) yield path;
  }
}

function* expressionsIn(file: string): Generator<Expression> {
  const nodes: unknown[] = [parseAst(readFileSync(file, "utf8"), { lang: file.endsWith("x") ? "tsx" : "ts" })];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    if (typeof node !== "object" || node === null) continue;
    if ("regex" in node) {
      const { pattern, flags } = node.regex as { readonly pattern: string; readonly flags: string };
      yield { place: `${relative(root, file)} ${pattern}`, regex: new RegExp(pattern, flags) };
    } else nodes.push(...Object.values(node));
  }
}

const units = [" ", "\n", "\t", "\r", "a", "0", "<", "<a", "{", "[", "(", "\\", '\\"', '"', '"a" ', "'", "`", "/"];
const moreUnits = [".", "-", "_", ":", ",", "=", "#", "|", "*", "a ", "a.", "0 ", "a: ", "x-", "é", "\ud83d"];

/** The literal words of a pattern: texts that it gets past its beginning with. Escaped characters, such as `\(`, belong to them. */
function wordsOf({ source }: RegExp): string[] {
  const literal = source
    .replace(/\\[dwsSDWbB]|\[(?:\\.|[^\]])*\]|\(\?(?:<\w+>|<?[=!]|:)|\{\d+(?:,\d*)?\}/g, "\0")
    .replace(/\\(.)/g, (_, escaped: string) => String.fromCharCode(asLiteral + escaped.charCodeAt(0)));
  const words = (literal.match(/[^\0^$*+?()|]{1,60}/g) ?? []).map((word) =>
    word.replace(/[\ue000-\ue0ff]/g, (character) => String.fromCharCode(character.charCodeAt(0) - asLiteral)),
  );
  return [...new Set(words)];
}

/** Where escaped characters are kept meanwhile, apart from those with a meaning. */
const asLiteral = 0xe000;

function* textsFor(regex: RegExp): Generator<(length: number) => string> {
  const words = wordsOf(regex);
  const joined = words.map((_, at) => words.slice(0, at + 1).join(""));
  for (const prefix of new Set(["", ...words, ...joined])) {
    for (const unit of new Set([...units, ...moreUnits, ...words]))
      yield (length) => `${prefix}${unit.repeat(Math.ceil(length / unit.length))}\u0001`;
  }
}

const length = 2000;
/**
 * Exponential and cubic time is found on short texts: on one of `length`, it would not end. Each is half as long again as the one before,
 * so that the first one that takes too long takes milliseconds.
 */
const shortLengths = [16, 24, 36, 54, 81, 122, 183];

function msOf(regex: RegExp, text: string, rounds: number): number {
  let ms = Infinity;
  for (let round = 0; round < rounds; round++) {
    regex.lastIndex = 0;
    ms = Math.min(
      ms,
      cpuMs(() => (regex.global ? text.replace(regex, "") : regex.exec(text))),
    );
  }
  return ms;
}

/** The CPU time of a loop over the characters of a text, in milliseconds: what the cost of an expression is compared with. */
const loopMs = ((): number => {
  const text = "ab".repeat(length / 2);
  let sum = 0;
  const loops = 200;
  const run = (): void => {
    for (let loop = 0; loop < loops; loop++) for (let at = 0; at < length; at++) sum += text.charCodeAt(at);
  };
  run();
  const ms = Math.min(...[1, 2, 3].map(() => cpuMs(run))) / loops;
  expect(sum).toBeGreaterThan(0);
  return ms;
})();

/** Returns the worst growth of an expression; 0 if it is linear. */
function growthOf(regex: RegExp): number {
  let worst = 0;
  for (const textOf of textsFor(regex)) {
    for (const short of shortLengths) if (msOf(regex, textOf(short), 2) > 1000 * loopMs) return Infinity;
    const text = textOf(length);
    if (msOf(regex, text, 2) < 20 * loopMs) continue;
    const shorter = textOf(length / 4);
    const ratio = msOf(regex, text, 5) / Math.max(msOf(regex, shorter, 5), loopMs / 4);
    if (ratio > maxGrowth && msOf(regex, text, 5) > 30 * loopMs) worst = Math.max(worst, ratio);
  }
  return worst;
}

test("each regular expression in the source takes linear time on repeated units, or reads bounded text", () => {
  const expressions = [...sourceFiles(join(root, "src"))].flatMap((file) => [...expressionsIn(file)]);
  expect(expressions.length).toBeGreaterThan(500);
  const reasons = Object.keys(bounded);
  const superlinear = expressions
    .filter(({ place }) => !reasons.some((reason) => place.startsWith(reason)))
    .flatMap(({ place, regex }) => {
      const growth = growthOf(regex);
      return growth > 0 ? [`${place}: ${growth.toFixed(1)}`] : [];
    });
  expect(superlinear).toEqual([]);
  expect(reasons.filter((reason) => !expressions.some(({ place }) => place.startsWith(reason)))).toEqual([]);
});

test("an expression that takes quadratic or exponential time is found", () => {
  const place = /'loc': \((?<path>(?:'?[\w$]{1,64}'?,? ?){1,12})\)/g;
  const quadratic = [/\s+$/, /<[^>]*>/, /"(?:[^"\\]|\\.)*"/g, /^\s*(\{\s*\}?\s*)?$/];
  for (const regex of [...quadratic, /^a(?:\.[\w.]+)+:/, /^(?:a+)+b/, place])
    expect(growthOf(regex), regex.source).toBeGreaterThan(maxGrowth);
  for (const regex of [/\s+/, /"(?:[^"\\]|\\.)*"?/g, /x[a-z]{0,200}y/]) expect(growthOf(regex), regex.source).toBe(0);
});
