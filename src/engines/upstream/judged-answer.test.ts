import { EventEmitter, once } from "node:events";
import { expect, test } from "vitest";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { judgeJson } from "../../text/formats/check-json.ts";
import type { Background } from "./background/background.ts";
import { judgedAnswer } from "./judged-answer.ts";

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

/** Judges in this process. */
const background = {
  judge: (json: string, of: object) => Promise.resolve(judgeJson(json, of as Readonly<Record<string, unknown>>)),
} as Background;

const start: GenerationEvent = { type: "start", choice: 0 };
const end: GenerationEvent = { type: "end", end: { kind: "done" } };
const finish: GenerationEvent = { type: "finish", choice: 0, reason: "tool-calls" };
const open = (index: number, name: string): GenerationEvent => ({
  type: "tool-call-start",
  choice: 0,
  index,
  id: `c${index}`,
  name,
});
const piece = (index: number, text: string): GenerationEvent => ({
  type: "tool-call-delta",
  choice: 0,
  index,
  arguments: text,
});
const close = (index: number): GenerationEvent => ({ type: "tool-call-end", choice: 0, index, status: "succeeded" });
const say = (text: string): GenerationEvent => ({ type: "text-delta", choice: 0, text });

async function judge(
  answers: readonly (readonly (readonly GenerationEvent[])[])[],
  { isWhole = false, output = false }: { readonly isWhole?: boolean; readonly output?: boolean } = {},
): Promise<{ readonly batches: readonly (readonly GenerationEvent[])[]; readonly reports: readonly string[] }> {
  const reports: string[] = [];
  const batches: (readonly GenerationEvent[])[] = [];
  let started = 0;
  const answer = judgedAnswer({
    schemas: { tools: new Map([["loose", schema]]), ...(output && { output: schema }) },
    background,
    async *start() {
      yield* answers[started++] ?? [];
    },
    report: (id, subject) => reports.push(`${id}: ${subject}`),
    isWhole,
  });
  for await (const batch of answer) batches.push(batch);
  return { batches, reports };
}

test("only the calls of looser schemas are held back, and nothing overtakes them", async () => {
  const { batches, reports } = await judge([
    [
      [start],
      [say("A")],
      [open(0, "exact"), piece(0, "{")],
      [piece(0, "}"), close(0)],
      [open(1, "loose"), piece(1, '{"n":')],
      [piece(1, '"4"}')],
      [close(1), open(2, "exact")],
      [close(2), finish],
      [end],
    ],
  ]);
  expect(batches).toEqual([
    [start],
    [say("A")],
    [open(0, "exact"), piece(0, "{")],
    [piece(0, "}"), close(0)],
    [open(1, "loose"), piece(1, '{"n":4}'), close(1), open(2, "exact")],
    [close(2), finish],
    [end],
  ]);
  expect(reports).toEqual(["schema-repaired: tool loose"]);
});

test("after text was shown, a call that does not fit is sent and reported", async () => {
  const answer = [[start], [say("A")], [open(0, "loose"), piece(0, "{}"), close(0), finish, end]];
  const { batches, reports } = await judge([answer, []]);
  expect(batches.flat()).toEqual(answer.flat());
  expect(reports).toEqual(["schema-violation: tool loose"]);
});

test("a second answer continues the first one, which nobody has seen", async () => {
  const wrong = [[start], [open(0, "loose"), piece(0, "{}"), close(0), finish, end]];
  const right = [[start], [open(0, "loose"), piece(0, '{"n":1}'), close(0), finish, end]];
  const { batches, reports } = await judge([wrong, right]);
  expect(batches.flat()).toEqual(right.flat());
  expect(reports).toEqual(["schema-repeated: tool loose"]);
});

test("arguments that were cut, and those of failed answers, are not judged", async () => {
  const failure = { kind: "bad-answer", status: 502, message: "broken" } as const;
  const broken: GenerationEvent = { type: "end", end: { kind: "truncated", failure } };
  for (const last of [[close(0), finish, end], [broken]]) {
    const answer = [[start], [open(0, "loose"), piece(0, '{"n":'), ...last]];
    const { batches, reports } = await judge([answer]);
    expect(batches.flat()).toEqual(answer.flat());
    expect(reports).toEqual([]);
  }
});

test("the text of a whole answer is corrected, that of a stream is only reported", async () => {
  const stop: GenerationEvent = { type: "finish", choice: 0, reason: "stop" };
  const answer = [[start], [say('{"n":')], [say('"4"}'), stop, end]];
  const whole = await judge([answer], { isWhole: true, output: true });
  expect(whole.batches.flat()).toEqual([start, say('{"n":4}'), stop, end]);
  const streamed = await judge([answer], { output: true });
  expect(streamed.batches).toEqual(answer);
  expect(streamed.reports).toEqual(["schema-violation: answer"]);
});

// A client that left while an answer was judged caused a second request, whose answer nobody wanted.
test("an answer that is abandoned while it is judged is not requested again", async () => {
  const begun = new EventEmitter<{ judging: [finish: () => void] }>();
  const judging = once(begun, "judging") as Promise<[() => void]>;
  let started = 0;
  const answer = judgedAnswer({
    schemas: { tools: new Map([["loose", schema]]) },
    background: {
      judge: async () => {
        await new Promise<void>((resolve) => begun.emit("judging", resolve));
        return { errors: "n is missing" };
      },
    } as unknown as Background,
    async *start() {
      started++;
      yield [start, open(0, "loose"), piece(0, "{}"), close(0), finish, end];
    },
    report: () => {},
    isWhole: true,
  })[Symbol.asyncIterator]();
  const next = answer.next();
  const [release] = await judging;
  await answer.return?.();
  release();
  await next;
  await new Promise((resolve) => setImmediate(resolve));
  expect(started).toBe(1);
});

// A call that never ended held back everything after it, without a limit.
test("what is held back behind an open call is limited", async () => {
  const text = "x".repeat(1024 * 1024);
  const { batches } = await judge([
    [
      [start],
      [open(0, "loose"), piece(0, "{")],
      ...Array.from({ length: 20 }, () => [say(text)]),
      [close(0), finish, end],
    ],
  ]);
  const said = batches.map((batch) => batch.filter(({ type }) => type === "text-delta").length);
  expect(said.reduce((sum, count) => sum + count, 0)).toBe(20);
  expect(Math.max(...said)).toBeLessThanOrEqual(9);
});
