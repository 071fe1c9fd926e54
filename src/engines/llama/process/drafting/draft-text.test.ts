import fc from "fast-check";
import { expect, test } from "vitest";
import { draftTexts, type TokenizedModel } from "./draft-text.ts";

type Model = TokenizedModel & { readonly vocabulary: { entry(token: number): string } };

/** A model whose tokens are the bytes and these pieces; it tokenizes greedily. `changes`: what the tokenizer does to a text before. */
function model(pieces: readonly string[], changes = (text: string): string => text): Model {
  const entries = [
    ...Array.from({ length: 256 }, (_, byte) => Buffer.of(byte)),
    ...pieces.map((piece) => Buffer.from(piece)),
  ];
  const byLength = entries.map((bytes, token) => ({ bytes, token })).sort((a, b) => b.bytes.length - a.bytes.length);
  return {
    model: {
      tokenizeContinuation(text) {
        const tokens: number[] = [];
        let rest: Uint8Array = Buffer.from(changes(text));
        while (rest.length > 0) {
          const next = byLength.find(({ bytes }) => bytes.equals(rest.subarray(0, bytes.length)));
          if (!next) throw new Error("There is no token.");
          tokens.push(next.token);
          rest = rest.subarray(next.bytes.length);
        }
        return tokens;
      },
    },
    vocabulary: {
      size: entries.length,
      bytes: (token) => entries[token] ?? Buffer.of(),
      entry: (token) => entries[token]?.toString("latin1") ?? "",
    },
  };
}

const textOf = ({ vocabulary }: Model, tokens: readonly number[]): string =>
  Buffer.concat(tokens.map((token) => vocabulary.bytes(token))).toString();

test("models with the same tokens share them, without those that only one has", () => {
  const text = draftTexts(model(["ab"]), model(["ab", "cd"]))();
  const tokens = [97, 256];
  expect(text.read(tokens)).toBe(tokens);
  const draft = [98, 257, 99].map((token) => ({ token, confidence: 0.5 }));
  expect(text.translate(draft)).toEqual([{ token: 98, confidence: 0.5 }]);
  // An image has tokens that no vocabulary has.
  expect(text.read([97, 256, -1])).toBeUndefined();
});

test("a tokenizer that changes texts is refused where the tokens differ", () => {
  expect(() =>
    draftTexts(
      model(["ab"]),
      model(["xy"], (text) => text.toLowerCase()),
    ),
  ).toThrow("its tokens differ from the model's, and text cannot be translated between them");
});

test("a draft is translated, and each token is as likely as the draft tokens that end in it", () => {
  const target = model(["abc", "é"]);
  const text = draftTexts(target, model(["ab", "cd"]))();
  text.read([120]);
  const drafted = [256, 99, 0xc3, 0xa9, 0xc3].map((token) => ({ token, confidence: 0.5 }));
  // The last byte begins a character that is not complete.
  expect(text.translate(drafted)).toEqual([
    { token: 256, confidence: 0.25 },
    { token: 257, confidence: 0.25 },
  ]);
});

// A drafted token with the first byte of a character was taken, and the rest of the character was then read as U+FFFD.
test("a character of which only the beginning was drafted is read as a whole", () => {
  const target = model(["th"]);
  const draft = model(["he"]);
  const text = draftTexts(target, draft)();
  const tokens = target.model.tokenizeContinuation("t界", false);
  expect(textOf(draft, text.read(tokens.slice(0, 1)) ?? [])).toBe("t");
  text.translate([{ token: 231, confidence: 0.9 }]);
  expect(text.read(tokens.slice(0, 2))).toBeUndefined();
  expect(textOf(draft, text.read(tokens) ?? [])).toBe("t界");
});

test("for every text, in whatever steps it is read, the draft model's tokens are the text", () => {
  const target = model(["the", " a", "é", "世", "界 "]);
  const draft = model(["th", "e a", "世界", "é "]);
  const character = fc.constantFrom("t", "h", "e", " ", "a", "é", "世", "界", "🙂");
  fc.assert(
    fc.property(
      fc.array(character, { maxLength: 40 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 }),
      fc.array(fc.nat({ max: 259 }), { maxLength: 4 }),
      (characters, steps, drafted) => {
        const whole = characters.join("");
        const tokens = target.model.tokenizeContinuation(whole, false);
        const text = draftTexts(target, draft)();
        let before: readonly number[] = [];
        for (let end = 0, step = 0; end < tokens.length; step++) {
          end = Math.min(tokens.length, end + (steps[step % steps.length] ?? 1));
          const read = text.read(tokens.slice(0, end));
          const sofar = textOf(target, tokens.slice(0, end));
          if (sofar.endsWith("\ufffd")) expect(read).toBeUndefined();
          else expect(textOf(draft, read ?? [])).toBe(sofar);
          // Tokens that were read do not change.
          if (read) expect(read.slice(0, before.length)).toEqual(before);
          before = [...(read ?? before)];
          const translated = text.translate(drafted.map((token) => ({ token, confidence: 0.9 })));
          expect(translated.every(({ confidence }) => confidence > 0 && confidence <= 1)).toBe(true);
        }
      },
    ),
  );
});
