import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type SealedReasoning, turnSeal } from "./turn-seal.ts";

const key = Uint8Array.from({ length: 32 }, (_, at) => at);
const ours = turnSeal(key, "ann");

const states: fc.Arbitrary<NonNullable<SealedReasoning["state"]>> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("signature", "redacted", "encrypted"),
    value: fc.oneof(fc.string(), fc.base64String()),
  }),
  fc.record({ kind: fc.constant("call" as const), value: fc.dictionary(fc.string(), fc.jsonValue()).map(plain) }),
);

const contents: fc.Arbitrary<SealedReasoning> = fc
  .record(
    {
      text: fc.string({ unit: "grapheme" }),
      summary: fc.array(fc.string()),
      id: fc.string(),
      state: states,
      callId: fc.string(),
    },
    { requiredKeys: [] },
  )
  .map(plain);

function plain<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

test("what was sealed is opened as it was, by every server with the same key", () => {
  fc.assert(
    fc.property(contents, (content) => {
      const sealed = ours.seal(content);
      expect(sealed).toMatch(/^truewire\./);
      expect(turnSeal(key.slice(), "ann").open(sealed)).toEqual(content);
    }),
  );
});

test("a value in base 64 is not encoded twice", () => {
  const value = "A".repeat(4000);
  expect(ours.seal({ state: { kind: "signature", value, source: "s" } }).length).toBeLessThan(4150);
});

describe("nothing is accepted that was not sealed here for this owner", () => {
  const content: SealedReasoning = { text: "secret", state: { kind: "encrypted", value: "QUJD", source: "s" } };
  const sealed = ours.seal(content);

  test("of another owner, of another installation, of an earlier version", () => {
    expect(turnSeal(key, "bob").open(sealed)).toEqual({});
    expect(turnSeal(new Uint8Array(32).fill(9), "ann").open(sealed)).toEqual({});
    expect(ours.open("truewire.1.e30=")).toEqual({});
  });

  test("an owner cannot move the limit between its name and a value", () => {
    const [, , code = "", body = ""] = sealed.split(".");
    expect(turnSeal(key, `ann\0${body}`).open(`truewire.2.${code}.`)).toEqual({});
  });

  test("a value that was changed anywhere, cut, or extended", () => {
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.string({ minLength: 0, maxLength: 3 }), (at, other) => {
        const changed = sealed.slice(0, at) + other + sealed.slice(at + 1);
        if (changed === sealed) return;
        expect(ours.open(changed)).toEqual(changed.startsWith("truewire.") ? {} : undefined);
      }),
    );
    expect(ours.open(`${sealed}.QUJD`)).toEqual({});
  });

  test("a vendor's own value is not taken for one", () => {
    expect(ours.open("")).toBeUndefined();
    expect(ours.open("gAAAAABo")).toBeUndefined();
  });
});

test("a value that would hold up other requests is not opened", () => {
  expect(ours.open(ours.seal({ text: "x".repeat(2_000_000) }))).toMatchObject({ text: expect.any(String) as string });
  expect(ours.open(ours.seal({ text: "x".repeat(4_000_000) }))).toEqual({});
});
