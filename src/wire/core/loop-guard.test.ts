import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hasRecordings, recordingFolders } from "../../../test/support/recordings.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LoopGuard, type TextPlace } from "./loop-guard.ts";

/** Reads a text in parts; returns the position at which a loop was found, or -1. */
function foundAt(text: string, { size = 5, place = "text" as TextPlace } = {}): number {
  const guard = new LoopGuard();
  for (let at = 0; at < text.length; at += size) if (guard.read(text.slice(at, at + size), place) > 0) return at + size;
  return -1;
}

const sentence = "Wait, let me think about this again from the beginning. ";
const paragraph =
  "The user wants a number, so I will give the user a number. I should check whether the number is right first. ";

describe("loops", () => {
  test.each([
    ["a sentence", sentence.repeat(200), 6000],
    [
      "a sentence after a long text",
      `${"All of this differs: "
        .split("")
        .map((letter, at) => letter + at)
        .join(" ")}${sentence.repeat(200)}`,
      6200,
    ],
    ["a paragraph", paragraph.repeat(8).concat("\n\n").repeat(20), 12_000],
    ["line breaks", `{"city":${"\n".repeat(8000)}`, 6200],
    ["white space in a call", `{"city":${" \t".repeat(4000)}`, 6200],
    ["Chinese", "让我再想一想这个问题，然后再回答用户。我应该先检查一下这个数字是否正确，再继续写。".repeat(200), 6200],
    ["one word", "the ".repeat(10_000), 22_600],
    ["rows of a table", "| 0 | 0 | 0 |\n".repeat(4000), 22_600],
  ])("%s", (_, text, most) => {
    const at = foundAt(text);
    expect(at).toBeGreaterThan(4096);
    expect(at).toBeLessThanOrEqual(most);
  });

  // Small models repeat one word in their reasoning, which took 20,480 characters to notice: minutes on a slow machine.
  test.each(["the ", "Wait, ", "Hmm... wait. ", "no\n", "等一下。"])("the word %j in reasoning", (word) => {
    const at = foundAt(word.repeat(10_000), { place: "reasoning" });
    expect(at).toBeGreaterThan(4096);
    expect(at).toBeLessThanOrEqual(6200);
    expect(foundAt(word.repeat(Math.floor(15_000 / word.length)))).toBe(-1);
  });

  test("the end of the loop is the end of the text: what comes after it is no loop", () => {
    // Read at once, so that the loop is not found before its end.
    expect(
      foundAt(
        `${sentence.repeat(100)}So the answer is 4, and not what I thought first; that is all there is to it, I think now.`,
        { size: 10_000 },
      ),
    ).toBe(-1);
  });
});

describe("repetitions that are meant", () => {
  const table = "| --- | --- | --- |\n".repeat(200);
  const art = Array.from({ length: 60 }, (_, row) => "#".repeat(70 - (row % 2))).join("\n");
  test.each([
    ["ha × 50", "ha".repeat(50)],
    ["ha × 5000", "ha ".repeat(5000)],
    ["1,000 zeros", `[${"0, ".repeat(1000)}0]`],
    ["a table", table],
    ["a drawing", art],
    ["base64 of 12 KB of zeros", "A".repeat(16_000)],
    ["200 equal objects", JSON.stringify(Array.from({ length: 200 }, () => ({ id: 0, name: "none", tags: [] })))],
    ["an empty grid", `${" ".repeat(80)}\n`.repeat(40)],
    ["a line said a hundred times", "I will not talk in class again.\n".repeat(100)],
    ["numbered lines", Array.from({ length: 2000 }, (_, at) => `${at}. I will not talk in class again.`).join("\n")],
  ])("%s", (_, text) => expect(foundAt(text)).toBe(-1));

  test.each([
    ["a table", table],
    ["a drawing", art],
    ["zeros", `[${"0, ".repeat(4000)}0]`],
    ["base64", "A".repeat(16_000)],
    ["equal lines of code", "    x = f(x, y);\n".repeat(900)],
    ["a line said two hundred times", "I will not talk in class again.\n".repeat(120)],
  ])("%s in reasoning", (_, text) => expect(foundAt(text, { place: "reasoning" })).toBe(-1));

  test("equal sentences in the strings of a call", () =>
    expect(foundAt(JSON.stringify(Array.from({ length: 300 }, () => sentence)), { place: "structured" })).toBe(-1));
});

describe("for any text", () => {
  const letters = fc.string({ minLength: 1, maxLength: 300 });
  test("a repeated text is a loop in the end, however it is cut; the tail that is kept is bounded", () => {
    fc.assert(
      fc.property(letters, fc.integer({ min: 1, max: 3000 }), fc.string({ maxLength: 3000 }), (text, size, before) => {
        const loop = before + text.repeat(Math.ceil(40_000 / text.length));
        expect(foundAt(loop, { size })).toBeGreaterThan(4096);
      }),
      { numRuns: 60 },
    );
  });

  test("a text in which no part of it occurs twice is none", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 97 }),
        fc.constantFrom("text", "reasoning", "structured"),
        (step, place) => {
          const text = Array.from({ length: 8000 }, (_, at) => (at * step).toString(36)).join(" word ");
          expect(foundAt(text, { place })).toBe(-1);
        },
      ),
      { numRuns: 20 },
    );
  });
});

test("hostile texts take no longer than others: the comparison is linear", () => {
  // A naive search compares each of 2,048 distances with thousands of characters, for every 1,024 characters of this text.
  const almost = Array.from({ length: 300 }, (_, at) => `${"a".repeat(1000 + (at % 7))}b`).join("");
  expect(foundAt(almost, { size: 1024 })).toBe(-1);
});

/** All strings in a JSON value, without the instructions that a response repeats: some clients fill their prompts with repetitions. */
function* stringsIn(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null)
    for (const [name, member] of Object.entries(value)) if (name !== "instructions") yield* stringsIn(member);
}

/** The texts of a recorded answer: of a stream, the strings of its events one after the other. */
function* answersIn(body: string): Generator<string> {
  const events = [...body.matchAll(/^data: ?(\{.*\})\s*$/gm)].flatMap(([, data = ""]) => parsed(data));
  if (events.length === 0) for (const value of parsed(body)) yield* stringsIn(value);
  else yield events.flatMap((event) => deltasIn(event)).join("");
}

const deltaNames: ReadonlySet<string> = new Set(
  "content text delta arguments partial_json thinking reasoning reasoning_content refusal".split(" "),
);

function deltasIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    if (name === "response" || name === "message") return [];
    return typeof member === "string" ? (deltaNames.has(name) ? [member] : []) : deltasIn(member);
  });
}

function parsed(json: string): unknown[] {
  try {
    return [JSON.parse(json)];
  } catch {
    return [];
  }
}

function* filesIn(folder: string, ending: RegExp): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesIn(path, ending);
    else if (ending.test(entry.name)) yield path;
  }
}

const vectors = "../shared/vectors";
if (!existsSync(vectors)) console.log(`skipped: no ${vectors}, whose texts are no loops`);
const isHere = hasRecordings("whose texts are no loops") && existsSync(vectors);

describe("no false alarm", () => {
  test.skipIf(!isHere)("over every text of the vectors, and every recorded answer", () => {
    const alarms: string[] = [];
    let texts = 0;
    const read = (text: string, where: string): void => {
      texts++;
      for (const place of ["text", "reasoning"] as const)
        if (foundAt(text, { size: 1024, place }) >= 0) alarms.push(`${where} as ${place}: ${text.slice(-80)}`);
    };
    for (const folder of [vectors, ...recordingFolders])
      for (const file of filesIn(folder, /\.jsonl$/))
        for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
          const value = JSON.parse(line) as { readonly body?: unknown };
          for (const text of typeof value.body === "string" ? answersIn(value.body) : stringsIn(value))
            read(text, file);
        }
    expect(alarms).toEqual([]);
    expect(texts).toBeGreaterThan(10_000);
  });

  test("over the source code of this repository and of packages", () => {
    const packages = ["undici", "zod", "openai", "preact", "ws", "commander", "picocolors"].map(
      (name) => `node_modules/${name}`,
    );
    const alarms: string[] = [];
    let characters = 0;
    for (const folder of ["src", "test", "docs", "bench", ...packages.filter(existsSync)])
      for (const file of filesIn(folder, /\.(?:[cm]?[jt]sx?|json|md|css|html|yaml)$/)) {
        const text = readFileSync(file, "utf8");
        characters += text.length;
        for (const place of ["text", "reasoning"] as const)
          if (foundAt(text, { size: 1024, place }) >= 0) alarms.push(`${file} as ${place}`);
      }
    expect(alarms).toEqual([]);
    expect(characters).toBeGreaterThan(10_000_000);
  });
});
