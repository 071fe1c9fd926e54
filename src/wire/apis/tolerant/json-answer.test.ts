import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent, TokenLogprob } from "../../core/events.ts";
import { lean } from "../profile.ts";
import { rewrittenCapture } from "../repair-capture.ts";
import { bodyDemandsJson, demandsJson, JsonAnswer } from "./json-answer.ts";

const json = '{"shelf": 3}';
const start: GenerationEvent = { type: "start", choice: 0 };
const end: GenerationEvent = { type: "end", end: { kind: "done" } };
const text = (more: string, choice = 0): GenerationEvent => ({ type: "text-delta", choice, text: more });
const finish = (reason: "stop" | "length" | "tool-calls" = "stop", choice = 0): GenerationEvent => ({
  type: "finish",
  choice,
  reason,
});

function read(
  batches: readonly (readonly GenerationEvent[])[],
  isWhole: boolean,
): { readonly events: readonly GenerationEvent[]; readonly notes: readonly string[] } {
  const notes: string[] = [];
  const answer = new JsonAnswer({ isWhole, note: (repair) => notes.push(repair) });
  return { events: batches.flatMap((batch) => answer.transform([...batch])), notes };
}

describe.each([false, true])("an answer that must be JSON; whole: %s", (isWhole) => {
  const answer = (...events: readonly GenerationEvent[]): ReturnType<typeof read> =>
    read([[start], ...events.map((event) => [event]), [end]], isWhole);
  const textOf = ({ events }: ReturnType<typeof read>, choice = 0): string | null | undefined =>
    accumulate(events).choices[choice]?.text;

  test("the fence is removed, and noted", () => {
    const read = answer(text("```"), text('json\n{"shelf":'), text(" 3}\n``"), text("`"), finish());
    expect([textOf(read), read.notes]).toEqual([json, ["json-fence"]]);
  });

  test("JSON is not changed", () => {
    const events = [start, text('{"shelf":'), text(" 3}"), finish(), end];
    expect(read([events], isWhole)).toEqual({ events, notes: [] });
  });

  test("each choice has its own fence", () => {
    const read = answer(
      text("```json\n[1"),
      text("```\n[2", 1),
      text("]\n```"),
      text("]\n```", 1),
      finish(),
      finish("stop", 1),
    );
    expect([textOf(read), textOf(read, 1)]).toEqual(["[1]", "[2]"]);
  });

  test("text that is not JSON is noted, unless the answer was cut or has calls", () => {
    expect(answer(text("I cannot do that."), finish()).notes).toEqual(["json-other-text"]);
    expect(answer(text("I cannot"), finish("length")).notes).toEqual([]);
    const call = [
      { type: "tool-call-start", choice: 0, index: 0, id: "a", name: "f" },
      { type: "tool-call-delta", choice: 0, index: 0, arguments: "{}" },
      { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
    ] as const;
    const read = answer(text("Let me look."), ...call, finish("tool-calls"));
    expect([textOf(read), read.notes]).toEqual(["Let me look.", []]);
  });

  test("parts of an answer have their own JSON, and keep their places", () => {
    const part: GenerationEvent = { type: "part-start", choice: 0, kind: "text" };
    const over: GenerationEvent = { type: "part-end", choice: 0 };
    const { events } = answer(part, text("```json\n[1]\n```"), over, part, text("```json\n[2]\n```"), over, finish());
    const texts = accumulate(events).choices[0]?.parts.map((one) => (one.type === "text" ? one.text : ""));
    expect(texts).toEqual(["[1]", "[2]"]);
  });

  // An image came before the reasoning that led to it, and OpenAI refuses that in the next request.
  test("items of the source keep their places among the parts", () => {
    const item: GenerationEvent = {
      type: "extra",
      choice: 0,
      place: "item",
      dialect: "responses",
      value: { id: "ig_1" },
    };
    const reasoning: GenerationEvent = { type: "reasoning-delta", choice: 0, text: "Hm." };
    const { events } = answer(reasoning, item, text("```json\n"), text(`${json}\n\`\`\``), finish());
    expect(accumulate(events).choices[0]?.parts.map(({ type }) => type)).toEqual(["reasoning", "item", "text"]);
    expect(textOf({ events, notes: [] })).toBe(json);
  });

  test("a failure in the middle: what had arrived is sent", () => {
    const failed: GenerationEvent = {
      type: "end",
      end: { kind: "truncated", failure: { kind: "bad-answer", message: "m", status: 502 } },
    };
    const { events } = read([[start], [text('{"a":')], [text(" 1")], [failed]], isWhole);
    expect(accumulate(events).choices[0]?.text).toBe('{"a": 1');
    expect(events.at(-1)).toBe(failed);
  });
});

test("JSON between other text: taken out of a whole answer, noted in a stream", () => {
  const events = [start, text("Here it is:\n```json\n"), text(`${json}\n\`\`\`\nAnything else?`), finish(), end];
  const whole = read([events], true);
  expect([accumulate(whole.events).choices[0]?.text, whole.notes]).toEqual([json, ["json-fence", "json-other-text"]]);
  const streamed = read([events], false);
  expect(streamed).toEqual({ events, notes: ["json-other-text"] });
});

test("the logprobs of the fence go with it, and the others stay with their tokens", () => {
  const token = (one: string): TokenLogprob => ({ token: one, logprob: -1, bytes: null, top: [] });
  const tokens = ["```", "json", "\n", "{", '"a"', ":1", "}", "\n", "``", "`"];
  const deltas = tokens.map((one): GenerationEvent => ({
    type: "text-delta",
    choice: 0,
    text: one,
    logprobs: [token(one)],
  }));
  const { events } = read([[start, ...deltas, finish(), end]], false);
  const choice = accumulate(events).choices[0];
  expect(choice?.text).toBe('{"a":1}');
  expect(choice?.textLogprobs?.map((one) => one.token)).toEqual(["{", '"a"', ":1", "}"]);
});

test("what demands JSON, in every API", () => {
  const schema = { type: "object" };
  expect(bodyDemandsJson({ response_format: { type: "json_object" } })).toBe(true);
  expect(bodyDemandsJson({ response_format: { type: "json_schema", json_schema: { name: "s", schema } } })).toBe(true);
  expect(bodyDemandsJson({ text: { format: { type: "json_schema", name: "s", schema } } })).toBe(true);
  expect(bodyDemandsJson({ output_config: { format: { type: "json_schema", schema } } })).toBe(true);
  expect(bodyDemandsJson({ output_format: { type: "json_schema", schema } })).toBe(true);
  for (const body of [undefined, {}, { response_format: { type: "text" } }, { text: { verbosity: "low" } }])
    expect(bodyDemandsJson(body)).toBe(false);
  expect(demandsJson({ output: { type: "json-object" } })).toBe(true);
  expect(demandsJson({ output: { type: "text" } })).toBe(false);
  expect(demandsJson({})).toBe(false);
  // The client wants the reasoning in the text, which is then not JSON.
  expect(demandsJson({ output: { type: "json-object" }, reasoning: { inText: true } })).toBe(false);
});

test("a capture is repaired by the same rule, if its request demands JSON", () => {
  const envelope = { id: "c", created: 1700000000, model: "m" };
  const body = JSON.stringify({
    ...envelope,
    object: "chat.completion",
    choices: [
      { index: 0, message: { role: "assistant", content: `\`\`\`json\n${json}\n\`\`\`` }, finish_reason: "stop" },
    ],
  });
  const chunk = (delta: object, reason: string | null): string =>
    `data: ${JSON.stringify({ ...envelope, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
  const stream = [
    chunk({ role: "assistant", content: "```" }, null),
    chunk({ content: `json\n${json}\n\`\`` }, null),
    chunk({ content: "`" }, null),
    chunk({}, "stop"),
    "data: [DONE]\n\n",
  ].join("");
  const options = { profile: lean, from: "chat", random: () => 0, now: 1700000000 } as const;
  const request = { response_format: { type: "json_object" } };
  for (const capture of [body, stream]) {
    const repaired = rewrittenCapture(capture, { ...options, request });
    expect(repaired.repairs.map(({ id }) => id)).toEqual(["json-fence"]);
    expect(repaired.body).toContain(JSON.stringify(json));
    expect(repaired.body).not.toContain("```");
    expect(rewrittenCapture(capture, options).body).toContain("```");
  }
});
