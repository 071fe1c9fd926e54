import { expect, test } from "vitest";
import { FailureError } from "./failure.ts";
import type { Message } from "./message.ts";
import { requireReadable } from "./unreadable-part.ts";

function refusal(messages: readonly Message[]): FailureError | null {
  try {
    requireReadable(messages);
    return null;
  } catch (error) {
    if (error instanceof FailureError) return error;
    throw error;
  }
}

test.each([
  [{ type: "image", url: "data:," } as const, "an image"],
  [{ type: "audio", data: "", format: "wav" } as const, "audio"],
  [{ type: "file", id: "file-1" } as const, "a file"],
])("%j is refused by its path, and named", (part, name) => {
  const text = { type: "text", text: "a" } as const;
  const messages: Message[] = [
    { role: "user", content: "Hi" },
    { role: "user", content: [text, part] },
  ];
  expect(refusal(messages)?.failure).toEqual({
    kind: "invalid-request",
    status: 400,
    message: `Invalid content type: this model reads text only, and cannot take ${name}.`,
    param: "messages[1].content[1].type",
    code: "unsupported_value",
  });
  const [, last] = messages;
  expect(refusal([{ ...last, path: "input[7]" } as Message])?.failure.param).toBe("input[7].content[1].type");
});

// A document of text was refused as a file, though its text is all that a model needs.
test("a document's text is text", () => {
  const document = { type: "file", name: "Note", text: "Ada is 36." } as const;
  expect(refusal([{ role: "user", content: [document] }])).toBeNull();
});

// The local engine took the calls and thoughts of earlier turns for files, and refused every conversation that had one.
test("thoughts, calls and refusals are text", () => {
  const messages: Message[] = [
    { role: "user", content: [{ type: "text", text: "a" }] },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "b" },
        { type: "refusal", refusal: "c" },
        { type: "tool-call", id: "call_1", name: "f", arguments: "{}" },
      ],
    },
    { role: "assistant", content: null },
  ];
  expect(refusal(messages)).toBeNull();
});
