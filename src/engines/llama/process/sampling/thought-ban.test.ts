import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PlainFormat, Reasoning } from "../../../../formats/format.ts";
import { TextReader } from "../../../../formats/text-reader.ts";
import { reasoningBans } from "./token-limits.ts";

const pieces = [
  "<",
  "th",
  "ink",
  ">",
  "<th",
  "<think>",
  "\n<think>",
  "</think>",
  " ",
  "a",
  "\n",
  "i",
  "t",
  "<t",
  "n",
  "k",
];
const utf8 = new TextEncoder();
const tokens = {
  bytes: (token: number): Uint8Array => utf8.encode(pieces[token]),
  tokensThat: (matches: (token: number) => boolean): readonly number[] => pieces.map((_, at) => at).filter(matches),
};
const reasoning: Reasoning = { open: ["<think>"], close: ["</think>"], assume: "outside" };
const format: PlainFormat = { id: "test", kind: "plain", calls: [], reasoning };
const ban = reasoningBans(tokens);
const textOf = (banned: readonly number[] | undefined): unknown => banned?.map((token) => pieces[token]);

describe("a ban of thoughts", () => {
  test("bans the marker's token, and the piece that would complete one that is spelled", () => {
    const banned = ban(format, "");
    expect(textOf(banned?.banned)).toEqual(["<think>", "\n<think>"]);
    banned?.read(utf8.encode(" <"));
    banned?.read(utf8.encode("th"));
    expect(textOf(banned?.banned)).toEqual(["ink", "<think>", "\n<think>"]);
  });

  test("ends with the first words, unless thoughts may follow them", () => {
    for (const anywhere of [false, true]) {
      const banned = reasoningBans(tokens)({ ...format, reasoning: { ...reasoning, anywhere } }, "");
      banned?.read(utf8.encode("a "));
      expect(textOf(banned?.banned)).toEqual(anywhere ? ["<think>", "\n<think>"] : []);
    }
  });

  test("is none where the prompt has opened the thought, or the format has none", () => {
    expect(ban(format, "<|im_start|>assistant\n<think>\n")).toBeUndefined();
    expect(ban(format, "<think>\n\n</think>\n\n")).toBeDefined();
    expect(ban({ id: "test", kind: "plain", calls: [] }, "")).toBeUndefined();
  });

  test("whatever a model writes of the tokens that are left, no thought is read", () => {
    const choices = fc.array(fc.nat(), { maxLength: 30 });
    fc.assert(
      fc.property(choices, fc.boolean(), (chosen, anywhere) => {
        const read: PlainFormat = { ...format, reasoning: { ...reasoning, anywhere } };
        const banned = reasoningBans(tokens)(read, "");
        const reader = new TextReader({
          format: read,
          prefix: "",
          choice: 0,
          newCallId: () => "call",
          callsAllowed: false,
        });
        const events = chosen.flatMap((choice) => {
          const left = pieces.map((_, at) => at).filter((token) => !banned?.banned.includes(token));
          const token = left[choice % left.length] ?? 0;
          banned?.read(tokens.bytes(token));
          return reader.push(pieces[token] ?? "");
        });
        events.push(...reader.end());
        expect(events.filter(({ type }) => type === "reasoning-delta")).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });
});
