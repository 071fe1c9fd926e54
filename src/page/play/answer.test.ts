import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Answer } from "./answer.ts";
import { TextLog } from "./text-log.ts";

const token = (text: string): { token: string; logprob: number; bytes: null; top: [] } => ({
  token: text,
  logprob: -1,
  bytes: null,
  top: [],
});

test("for every way in which a text comes, its chunks are the text, each shows some, and no token is lost", () => {
  const delta = fc.tuple(
    fc.string({ maxLength: 3 }),
    fc.array(fc.string({ maxLength: 3 }).map(token), { maxLength: 3 }),
  );
  fc.assert(
    fc.property(fc.array(delta), (deltas) => {
      const log = new TextLog();
      for (const [text, tokens] of deltas) log.push(text, tokens);
      // What ends the text makes the last, undecided character's tokens show, too. It is longer than what random tokens spell: "|" was one of them.
      const end = "the end of the text";
      log.push(end);
      expect(log.toString()).toBe(deltas.map(([text]) => text).join("") + end);
      expect(log.chunks.flatMap(({ tokens }) => tokens)).toEqual(deltas.flatMap(([, tokens]) => tokens));
      expect(log.chunks.every(({ text }) => text !== "")).toBe(true);
    }),
    { numRuns: 1000 },
  );
});

// A token without text had a chunk of its own, which nobody could see or point at.
test("a token without text is shown with the next that has text", () => {
  const log = new TextLog();
  const [none, quote, end] = [token(""), token("'"), token("!")];
  log.push("'!", [none, quote, none, end, none]);
  log.push("?", [token("?")]);
  expect(log.chunks).toEqual([
    { text: "'", tokens: [none, quote] },
    { text: "!", tokens: [none, end] },
    { text: "?", tokens: [none, token("?")] },
  ]);
});

test("times are counted from the first token to the last", () => {
  const answer = new Answer(1000);
  answer.take({ type: "start", choice: 0 }, 1400);
  expect(answer.firstAfterMs).toBeUndefined();
  for (let at = 0; at <= 10; at++) answer.take({ type: "text-delta", choice: 0, text: "x" }, 1500 + at * 100);
  answer.take({ type: "usage", usage: { promptTokens: 3, completionTokens: 11 } }, 2600);
  answer.take({ type: "end", end: { kind: "done" } }, 2700);
  expect([answer.firstAfterMs, answer.tokensPerSecond, answer.state]).toEqual([500, 10, "done"]);
});

test("an answer that comes all at once has no rate", () => {
  const answer = new Answer(0);
  answer.take({ type: "text-delta", choice: 0, text: "all" }, 10);
  answer.take({ type: "usage", usage: { promptTokens: 1, completionTokens: 500 } }, 10);
  expect(answer.tokensPerSecond).toBeUndefined();
});

test("choices are told apart, and a choice that comes first by a later number leaves room", () => {
  const answer = new Answer(0);
  answer.take({ type: "text-delta", choice: 1, text: "b" }, 1);
  answer.take({ type: "text-delta", choice: 0, text: "a" }, 2);
  expect(answer.choices.map(({ text }) => text.toString())).toEqual(["a", "b"]);
});

test("a hosted call is shown from when it runs, also before the first text", () => {
  const answer = new Answer(0);
  const chunk = (call: object): void =>
    answer.take({ type: "extra", place: "chunk", dialect: "chat", value: { hosted_call: call } }, 20);
  const of = { id: "c1", kind: "web_search", tool: "web_search", name: "web_search" };
  chunk({ ...of, status: "running", arguments: '{"query":"rain"}' });
  expect(answer.choices[0]?.hostedCalls).toMatchObject([{ name: "web_search", status: "running", ms: undefined }]);
  answer.take(
    {
      type: "extra",
      place: "chunk",
      dialect: "chat",
      value: { hosted_call: { ...of, status: "failed", output: "Error" } },
    },
    50,
  );
  expect(answer.choices[0]?.hostedCalls).toMatchObject([{ status: "failed", output: "Error", ms: 30 }]);
  const cite = (url: string): void => {
    const annotations = [{ type: "url_citation", url_citation: { url, title: "A" } }];
    answer.take({ type: "extra", place: "delta", choice: 0, dialect: "chat", value: { annotations } }, 60);
  };
  cite("https://a.example/");
  cite("javascript:alert(1)");
  expect([...(answer.choices[0]?.sources.values() ?? [])]).toEqual([{ url: "https://a.example/", title: "A" }]);
});
