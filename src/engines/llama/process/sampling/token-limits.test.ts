import fc from "fast-check";
import { expect, test, describe } from "vitest";
import { ReasoningBudget, reasoningBans, StringBudget } from "./token-limits.ts";
import type { PlainFormat, Reasoning } from "../../../../text/formats/format.ts";
import { TextReader } from "../../../../text/formats/text-reader.ts";

describe("the reasoning budget", () => {
  const close = [901, 902];

  /** A model that reasons forever unless it is forced to stop. Reasoning ends after both tokens of the closing marker. */
  function tokensOf(tokens: number, { startsInReasoning = true, max = 200 } = {}): number[] {
    const budget = new ReasoningBudget({ tokens, closings: [close], startsInReasoning });
    const sampled: number[] = [];
    let isReasoning = startsInReasoning;
    while (sampled.length < max) {
      const forced = budget.forced;
      const token = forced ?? (isReasoning ? 1 : sampled.length === 0 ? 900 : 2);
      sampled.push(token);
      if (token === 900) isReasoning = true;
      if (token === 902) isReasoning = false;
      budget.read(token, isReasoning ? "reasoning" : "content");
      if (token === 2) break;
    }
    return sampled;
  }

  test("reasoning that the prompt opened has as many tokens as the budget", () => {
    fc.assert(
      fc.property(fc.nat(50), (tokens) => {
        expect(tokensOf(tokens)).toEqual([...Array<number>(tokens).fill(1), ...close, 2]);
      }),
    );
  });

  test("so has reasoning that the model opened, after its marker", () => {
    expect(tokensOf(3, { startsInReasoning: false })).toEqual([900, 1, 1, 1, ...close, 2]);
    expect(tokensOf(0, { startsInReasoning: false })).toEqual([900, ...close, 2]);
  });

  test("a closing marker that a grammar forbids is forced again, and nothing is forced once reasoning is closed", () => {
    const budget = new ReasoningBudget({ tokens: 0, closings: [close], startsInReasoning: true });
    budget.read(5, "reasoning");
    expect(budget.forced).toBeUndefined();
    budget.read(6, "reasoning");
    expect(budget.forced).toBe(901);
    budget.read(901, "reasoning");
    // The reader may notice the end of reasoning only later.
    budget.read(902, "reasoning");
    expect(budget.forced).toBeUndefined();
    budget.read(7, "content");
    expect(budget.forced).toBeUndefined();
  });

  test("further reasoning is closed immediately, with the marker for that", () => {
    const again = [903];
    const budget = new ReasoningBudget({ tokens: 1, closings: [close, again], startsInReasoning: true });
    budget.read(1, "reasoning");
    for (const token of close) budget.read(token, token === 902 ? "content" : "reasoning");
    budget.read(900, "reasoning");
    expect(budget.forced).toBe(903);
  });
});

describe("the reasoning ban", () => {
  const texts = [
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
    bytes: (token: number): Uint8Array => utf8.encode(texts[token]),
    tokensThat: (matches: (token: number) => boolean): readonly number[] => texts.map((_, at) => at).filter(matches),
  };
  const reasoning: Reasoning = { open: ["<think>"], close: ["</think>"], assume: "outside" };
  const format: PlainFormat = { id: "test", kind: "plain", calls: [], reasoning };
  const ban = reasoningBans(tokens);
  const textOf = (banned: readonly number[] | undefined): unknown => banned?.map((token) => texts[token]);

  describe("while reasoning is off", () => {
    test("bans the marker's token, and the token that would complete a marker of several tokens", () => {
      const banned = ban(format, "");
      expect(textOf(banned?.banned)).toEqual(["<think>", "\n<think>"]);
      banned?.read(utf8.encode(" <"));
      banned?.read(utf8.encode("th"));
      expect(textOf(banned?.banned)).toEqual(["ink", "<think>", "\n<think>"]);
    });

    test("ends with the first words, unless reasoning may follow them", () => {
      for (const anywhere of [false, true]) {
        const banned = reasoningBans(tokens)({ ...format, reasoning: { ...reasoning, anywhere } }, "");
        banned?.read(utf8.encode("a "));
        expect(textOf(banned?.banned)).toEqual(anywhere ? ["<think>", "\n<think>"] : []);
      }
    });

    test("does not exist where the prompt opens reasoning, or the format has none", () => {
      expect(ban(format, "<|im_start|>assistant\n<think>\n")).toBeUndefined();
      expect(ban(format, "<think>\n\n</think>\n\n")).toBeDefined();
      expect(ban({ id: "test", kind: "plain", calls: [] }, "")).toBeUndefined();
    });

    test("whichever of the other tokens a model samples, no reasoning is read", () => {
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
            const left = texts.map((_, at) => at).filter((token) => !banned?.banned.includes(token));
            const token = left[choice % left.length] ?? 0;
            banned?.read(tokens.bytes(token));
            return reader.push(texts[token] ?? "");
          });
          events.push(...reader.end());
          expect(events.filter(({ type }) => type === "reasoning-delta")).toEqual([]);
        }),
        { numRuns: 1000 },
      );
    });
  });
});

describe("the string budget", () => {
  const quote = 7;

  test("for every JSON, a quote is forced only within strings, once they have reached the limit", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(9), (json, limit) => {
        const budget = new StringBudget(limit, quote);
        let open = -1;
        let escaped = false;
        // Each character is a token.
        for (const character of json) {
          budget.read(character, true);
          if (escaped) escaped = false;
          else if (character === '"') open = open < 0 ? 0 : -1;
          else if (character === "\\") escaped = true;
          if (open >= 0) open++;
          expect(budget.forced).toBe(open >= 0 && !escaped && open >= limit ? quote : undefined);
        }
        expect(budget.forced).toBeUndefined();
      }),
    );
  });

  test("quotes in reasoning do not open a string", () => {
    const budget = new StringBudget(1, quote);
    budget.read('He said "', false);
    budget.read("no", false);
    expect(budget.forced).toBeUndefined();
    budget.read('{"', true);
    expect(budget.forced).toBe(quote);
  });
});
