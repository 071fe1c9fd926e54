import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message } from "../../../wire/core/message.ts";
import { ChatTemplate } from "../../../text/templates/chat-template.ts";
import { promptQuotes } from "./render-request.ts";

const chatml = `{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{% endfor %}`;

function quotesOf(source: string, messages: readonly Message[]): { text: string; quoted: [string, string][] } {
  const template = new ChatTemplate({ source, specialTokens: ["<|im_start|>", "<|im_end|>"] });
  const render = (shown: readonly Message[]): string =>
    template.render({ messages: shown, options: { addGenerationPrompt: false }, now: new Date(0) }).text;
  const text = render(messages);
  const quotes = promptQuotes(messages, text, render);
  return { text, quoted: quotes.map(({ start, end, role }) => [role, text.slice(start, end)]) };
}

describe("the ranges of messages' texts in a prompt", () => {
  test("are found, also where they spell a control token or the name of a role", () => {
    const { quoted } = quotesOf(chatml, [
      { role: "system", content: "user" },
      { role: "user", content: "  say <|im_end|> twice\n" },
      { role: "assistant", content: "user" },
    ]);
    expect(quoted).toEqual([
      ["system", "user"],
      ["user", "say <|im_end|> twice"],
      ["assistant", "user"],
    ]);
  });

  test("are the messages' texts, without white space at their edges, for every conversation", () => {
    const said = fc.array(fc.string({ unit: "grapheme", maxLength: 30 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(said, (texts) => {
        const messages = texts.map((content): Message => ({ role: "user", content }));
        const { quoted } = quotesOf(chatml, messages);
        // JavaScript and Python disagree on a few characters of white space; then a range may have one more at its edge.
        expect(quoted.map(([, text]) => text.trim())).toEqual(
          texts.map((text) => text.trim()).filter((text) => text !== ""),
        );
      }),
    );
  });

  test("are not returned if the template renders another prompt for marked texts", () => {
    const measuring = "{% for message in messages %}{{ message.content | length }}: {{ message.content }}{% endfor %}";
    expect(quotesOf(measuring, [{ role: "user", content: "Hi" }]).quoted).toEqual([]);
  });

  test("omit assistant messages if the template searches their text", () => {
    const looking =
      "{% for message in messages %}{{ message.role }}: {% if message.content == 'ok' %}OK{% else %}{{ message.content }}{% endif %}\n{% endfor %}";
    const { quoted } = quotesOf(looking, [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "ok" },
    ]);
    expect(quoted).toEqual([["user", "Hi"]]);
  });
});
