import fc from "fast-check";
import { expect, test } from "vitest";
import type { TokenLogprob } from "../../wire/core/events.ts";
import { readTokenLogprobs, writeTokenLogprobs } from "./token-logprobs.ts";

const logprob = fc.double({ min: -100, max: 0, noNaN: true }).map((value) => value + 0);
const token: fc.Arbitrary<TokenLogprob> = fc.record({
  token: fc.string(),
  logprob,
  bytes: fc.oneof(fc.constant(null), fc.array(fc.nat(255), { maxLength: 4 })),
  top: fc.array(fc.record({ token: fc.string(), logprob, bytes: fc.constant(null) }), { maxLength: 3 }),
});
const tokens = fc.array(token, { maxLength: 6 });

test("the chat shape loses nothing", () => {
  fc.assert(
    fc.property(tokens, (list) => {
      expect(readTokenLogprobs(writeTokenLogprobs(list, "chat"))).toEqual(list);
    }),
  );
});

test("the completions shape and Together's keep every token in its place, repeated ones too", () => {
  fc.assert(
    fc.property(tokens, (list) => {
      const bare = list.map((one) => ({ token: one.token, logprob: one.logprob, bytes: null }));
      const plain = list.map((one) => ({ ...one, bytes: null }));
      for (const shape of ["completions", "together"] as const) {
        const read = readTokenLogprobs(writeTokenLogprobs(plain, shape)) ?? [];
        expect(read.map(({ token, logprob, bytes }) => ({ token, logprob, bytes }))).toEqual(bare);
      }
    }),
  );
});

test("the completions shape keeps alternatives, the chosen token among them", () => {
  const list = [{ token: "a", logprob: -1, bytes: null, top: [{ token: "b", logprob: -0.5, bytes: null }] }];
  expect(readTokenLogprobs(writeTokenLogprobs(list, "completions"))?.[0]?.top).toEqual([
    { token: "b", logprob: -0.5, bytes: null },
    { token: "a", logprob: -1, bytes: null },
  ]);
});

test("a bare float is the logprob of the text", () => {
  const list = [{ token: "Hi", logprob: -0.25, bytes: null, top: [] }];
  expect(writeTokenLogprobs(list, "float")).toBe(-0.25);
  expect(readTokenLogprobs(-0.25, "Hi")).toEqual(list);
  expect(readTokenLogprobs(0, "Hi")?.[0]?.logprob).toBe(0);
});

test("none is none, and an impossible token has OpenAI's number", () => {
  expect(readTokenLogprobs(null)).toBeNull();
  expect(writeTokenLogprobs([], "float")).toBeNull();
  expect(writeTokenLogprobs([{ token: "a", logprob: -Infinity, bytes: null, top: [] }], "float")).toBe(-9999);
});
