import { expect, test } from "vitest";
import { MarkerReader } from "../../src/text/formats/marker-reader.ts";
import type { Format } from "../../src/text/formats/format.ts";
import { parseMessage } from "../../src/text/formats/parse-job.ts";
import { Accumulator } from "../../src/wire/core/accumulate.ts";
import type { Tool } from "../../src/wire/core/message.ts";
import { jobOf, readVectors } from "../support/vectors.ts";

// `toolFormat: auto` against the raw model texts of all families: where a marker of its format stands in a text, the calls that the
// format finds there are found without being told the format.
/** What cannot be known without the prompt's end or the model's habits. */
const waived: Readonly<Record<string, string>> = {
  "llamacpp-gpt-oss-006": "the header began in the prompt",
  "llamacpp-kimi-k2-011": "a call inside a thought, which only Kimi makes",
  "vllm-minimax-m1-014": "the same",
  "llamacpp-reka-edge-010": "the thought began in the prompt",
};

const vectors = readVectors().filter(({ tier }) => tier !== "continue");
if (vectors.length === 0) console.warn("found-formats.test: ../shared/vectors is absent, nothing is compared");

function openersOf(format: Format): readonly string[] {
  if (format.kind === "routed") return [format.start, "<|channel|>"];
  const calls = (format as Extract<Format, { kind: "plain" }>).calls.flatMap((call) => call.open ?? []);
  return [...(format.section?.open ?? []), ...calls];
}

function callsFoundIn(pieces: readonly string[], tools: readonly Tool[]): { name: string; arguments: unknown }[] {
  let made = 0;
  const reader = new MarkerReader({ choice: 0, newCallId: () => `call_${made++}`, tools, callsAllowed: true });
  const accumulator = new Accumulator();
  accumulator.add([{ type: "start", choice: 0 }]);
  for (const piece of pieces) accumulator.add(reader.push(piece));
  accumulator.add(reader.end());
  const [choice] = accumulator.result().choices;
  return (choice?.toolCalls ?? []).map((call) => ({ name: call.name, arguments: valueOf(call.arguments) }));
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

test.skipIf(vectors.length === 0)("calls of every family are found by their markers, in every split", () => {
  const families = new Set<string>();
  const failed: string[] = [];
  let compared = 0;
  for (const vector of vectors) {
    const job = jobOf(vector);
    const expected = parseMessage(job).calls.map((call) => ({ name: call.name, arguments: valueOf(call.arguments) }));
    const isMarked = openersOf(job.format).some((marker) => marker.trim().length >= 4 && vector.text.includes(marker));
    if (expected.length === 0 || !isMarked) continue;
    const names = [...new Set(expected.map(({ name }) => name))];
    const tools = names.map((name) => job.tools?.find((tool) => tool.name === name) ?? { name });
    compared++;
    families.add(vector.format);
    const whole = callsFoundIn([vector.text], tools);
    expect(callsFoundIn([...vector.text], tools), `${vector.id} character by character`).toEqual(whole);
    if (JSON.stringify(whole) !== JSON.stringify(expected)) failed.push(vector.id);
  }
  expect(failed.sort()).toEqual(Object.keys(waived).sort());
  expect(compared).toBeGreaterThan(600);
  expect(families.size).toBeGreaterThan(50);
});
