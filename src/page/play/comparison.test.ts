import { expect, test } from "vitest";
import { Comparison, differencesOf, measureRows, type Measures, roundsOf, verdict } from "./comparison.ts";
import { freshValues, Settings, type SettingsValues } from "./settings.ts";
import type { Turn } from "./turn.ts";

const done: Measures = { state: "done" };
const plain: SettingsValues = { ...freshValues, model: "m", preset: "" };

test.each([
  [{ tokensPerSecond: 120 }, { tokensPerSecond: 57 }, "A generated 2.1 times as fast as B."],
  [{ tokensPerSecond: 100 }, { tokensPerSecond: 120 }, "B generated 20 % faster than A."],
  [{ tokensPerSecond: 100 }, { tokensPerSecond: 102 }, "Both generated at the same speed."],
  [{ firstMs: 205 }, { firstMs: 545 }, "A began 340 ms before B."],
  [{ firstMs: 200 }, { firstMs: 203 }, "Both began at the same time."],
  [{ totalMs: 5200 }, { totalMs: 2100 }, "B finished 3.1 s before A."],
  [
    { tokensPerSecond: 10, firstMs: 100, totalMs: 900 },
    { tokensPerSecond: 20, firstMs: 50, totalMs: 600 },
    "B generated 2.0 times as fast as A. B began 50 ms before A. B finished 300 ms before A.",
  ],
  [{}, { tokensPerSecond: 3 }, "Not compared: the servers reported no numbers."],
  [{ state: "failed" }, { tokensPerSecond: 3 }, "Not compared: A failed."],
  [{ state: "stopped" }, { state: "failed" }, "Not compared: A was stopped and B failed."],
] as const)("%j and %j: %s", (a, b, words) => {
  expect(verdict({ ...done, ...a }, { ...done, ...b })).toBe(words);
});

test("the numbers of both are shown, the better one is marked, and what neither has is left out", () => {
  const a = {
    ...done,
    tokensPerSecond: 120.4,
    firstMs: 205,
    tokens: 81,
    promptTokens: 1024,
    cachedTokens: 1023,
    prefillMs: 20,
  };
  const b = { ...done, tokensPerSecond: 57, firstMs: 206, tokens: 1090 };
  expect(measureRows(a, b)).toEqual([
    { name: "Tokens per second", values: ["120", "57"], better: 0 },
    { name: "First token after", values: ["205 ms", "206 ms"] },
    { name: "Answer tokens", values: ["81", "1,090"] },
    { name: "Prompt tokens", values: ["1,024", "unknown"] },
    { name: "Of them cached", values: ["1,023 (100 %)", "unknown"] },
    { name: "Cost of the prompt", values: ["1 token processed in 20 ms", "unknown"] },
  ]);
});

test("the settings that differ, with known defaults", () => {
  const tools = [{ id: 1, name: "count", description: "", parameters: "", canned: "" }];
  const other = { ...plain, system: "Be brief.", parameters: { temperature: "0.2", seed: " " }, tools, choices: 2 };
  const defaults = new Map([["temperature", { value: 0.7, origin: "file" }]]);
  expect(differencesOf([plain, other], [defaults, undefined])).toEqual([
    { name: "system prompt", values: ["none", "Be brief."] },
    { name: "tools", values: ["none", "count"] },
    { name: "n", values: ["none", "2"] },
    { name: "temperature", values: ["0.7 (default)", "0.2"] },
  ]);
  expect(differencesOf([plain, { ...plain, model: "other" }])).toEqual([]);
});

test("a comparison begins with copies of the settings, B with the next model", () => {
  const settings = new Settings();
  settings.set({ ...plain, system: "Be brief." });
  const [a, b] = new Comparison(settings, ["first", "m", "last"]).sides;
  expect([a, b].map(({ settings }) => [settings.model, settings.system])).toEqual([
    ["m", "Be brief."],
    ["last", "Be brief."],
  ]);
  b.settings.set({ system: "Be long." });
  expect([settings.system, a.settings.system]).toEqual(["Be brief.", "Be brief."]);
  const [, again] = new Comparison(settings, ["m"]).sides;
  expect(again.settings.model).toBe("m");
});

// If one side only were asked, the answers below one another would be those of different questions.
test("neither is asked where the settings of one cannot be sent", () => {
  const settings = new Settings();
  settings.set({ ...plain });
  const comparison = new Comparison(settings, ["m"]);
  comparison.sides[1].settings.set({ format: "schema", schema: "{" });
  expect(comparison.ask("Hello", [])).toBe(false);
  expect(comparison.problem).toBe("Not asked yet: in the settings of B, the schema of the answer is no valid JSON.");
  expect(comparison.sides.map(({ conversation }) => conversation.turns)).toEqual([[], []]);
});

test("a round is a question with all turns up to the next one", () => {
  const turn = (kind: Turn["kind"], id: number): Turn =>
    ({ kind, id, text: "", images: [], results: [] }) as unknown as Turn;
  const turns = [turn("question", 1), turn("answer", 2), turn("results", 3), turn("answer", 4), turn("question", 5)];
  expect(roundsOf(turns).map(({ question, turns }) => [question.id, turns.map(({ id }) => id)])).toEqual([
    [1, [2, 3, 4]],
    [5, []],
  ]);
});
