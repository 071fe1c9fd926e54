import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { quotationLength, withoutQuotations } from "./without-texts.ts";

const secret = "The launch code is 0000, and nobody may know it.";

describe("a message for the log", () => {
  test("shows nothing that it quotes of a text, however deep the text is", () => {
    const body = { messages: [{ role: "user", content: [{ type: "text", text: `Listen. ${secret} Bye.` }] }] };
    expect(withoutQuotations(`Value error, input was: ${secret} (type=value_error)`, [body])).toBe(
      "Value error, input was:[text](type=value_error)",
    );
    expect(withoutQuotations(`cut in the middle: ${secret.slice(5, 40)}…`, [body])).toBe("cut in the middle: [text]…");
  });

  test("keeps short words, and what is in no text", () => {
    expect(withoutQuotations("Unsupported role: robot", ["robot"])).toBe("Unsupported role: robot");
    expect(withoutQuotations("The model is overloaded. Please try again.", [secret])).toBe(
      "The model is overloaded. Please try again.",
    );
    expect(withoutQuotations("", [secret])).toBe("");
  });

  // 30 MB of text held the server for 600 ms when its refusal was logged.
  test("is left out where there is too much to compare it with", () => {
    const hidden = "[not shown: it may quote the conversation, which is too long to be compared with it]";
    expect(withoutQuotations("The prompt is too long, by far.", ["x".repeat(600_000)])).toBe(hidden);
    expect(
      withoutQuotations(
        "The prompt is too long, by far.",
        Array.from({ length: 200_000 }, () => 1),
      ),
    ).toBe(hidden);
    expect(withoutQuotations("The prompt is too long, by far.", ["x".repeat(500_000)])).toBe(
      "The prompt is too long, by far.",
    );
  });

  // A prompt has the texts of the body that asked for it.
  test("is compared with each text once, so the same one may come again and again", () => {
    const text = "x".repeat(200_000);
    expect(withoutQuotations("The prompt is too long, by far.", [text, { text }, [[text]], text])).toBe(
      "The prompt is too long, by far.",
    );
  });

  test("is left out where the conversation is known to be too long", () => {
    expect(withoutQuotations("The prompt is too long, by far.", null)).toContain("not shown");
    expect(withoutQuotations("Too long.", null)).toBe("Too long.");
  });

  test("shows no run of 20 characters of any text, whatever stands around it", () => {
    const text = fc.string({ minLength: quotationLength, maxLength: 40, unit: "binary" });
    fc.assert(
      fc.property(text, fc.string(), fc.string(), fc.nat(60), (said, before, after, from) => {
        const message = before + said.slice(Math.min(from, said.length - quotationLength)) + after;
        const shown = withoutQuotations(message, [{ deep: [said] }]);
        for (let at = 0; at + quotationLength <= said.length; at++) {
          const run = said.slice(at, at + quotationLength);
          // The mask's own word may complete a run by chance.
          if (!run.includes("[text]")) expect(shown.includes(run)).toBe(false);
        }
      }),
    );
  });

  test("is the same where nothing of it is quoted", () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 200 }),
        fc.array(fc.string({ maxLength: quotationLength - 1 })),
        (message, texts) => {
          expect(withoutQuotations(message, texts)).toBe(message);
        },
      ),
    );
  });

  // Comparing every place of the message with every place of the text would take minutes, and the test's time-out would say so.
  test("is found in a long text that repeats it", () => {
    expect(withoutQuotations(`echo: ${"a".repeat(3000)}`, ["a".repeat(500_000)])).toBe("echo: [text]");
  });
});
