import { expect, test } from "vitest";
import { growthOf, maxGrowth } from "../../../test/support/growth.ts";
import { writeRecording } from "../capture/recording.ts";
import { recordedFactsOf } from "./recorded-facts.ts";

const recording = (path: string, body: object): string =>
  writeRecording({
    request: { method: "POST", path, body: JSON.stringify(body) },
    response: { status: 200, headers: [], pieces: [] },
  });
const asked = (...contents: readonly unknown[]): string =>
  recording("/v1/responses?x=1", {
    model: "gpt-5",
    stream: true,
    input: contents.map((content) => ({ role: "user", content })),
  });

test("each text of the user has a marker of its own, and a request continues the one that it begins with", () => {
  const call = { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "x" }] };
  const text = [asked("a"), asked("a", [{ type: "input_text", text: "b" }]), asked("a", "c"), asked("a"), asked("z")];
  const result = recording("/v1/responses", { model: "m", input: [{ role: "user", content: "q" }, call] });
  const facts = recordedFactsOf("responses", "between", [{ name: "s.jsonl", text: [...text, result].join("\n") }]);
  const ids = facts.map(({ id }) => id);
  expect(ids.map((id) => id.replace(/-[a-z0-9]+-[a-z0-9]+$/, ""))).toEqual([
    "recorded-0-0",
    "recorded-0-1",
    "recorded-0-1",
    "recorded-1-0",
    "recorded-2-1",
  ]);
  expect(facts.map(({ continues }) => continues)).toEqual([undefined, ids[0], undefined, undefined, undefined]);
  expect(facts[1]?.body).toEqual({
    model: "between",
    stream: true,
    input: [
      { role: "user", content: `a fact:${ids[0]}.` },
      { role: "user", content: [{ type: "input_text", text: `b fact:${ids[1]}.` }] },
    ],
  });
  expect(JSON.stringify(facts[4]?.body)).toContain(`x fact:${ids[4]}.`);
});

test("a folder without requests to the API is an error that says what is expected", () => {
  expect(() => recordedFactsOf("chat", "m", [{ name: "s.jsonl", text: asked("a") }])).toThrow(
    /expected recorded requests to \/v1\/chat\/completions in s\.jsonl/,
  );
});

test("recordings are read in linear time", () => {
  const growth = growthOf((size) => {
    const text = Array.from({ length: size }, (_, at) => asked(`${at}`, "y")).join("\n");
    return () => recordedFactsOf("responses", "m", [{ name: "s", text }]);
  });
  expect(growth).toBeLessThan(maxGrowth);
});
