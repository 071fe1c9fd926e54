import { execFileSync } from "node:child_process";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { copyAs } from "./copy-as.ts";

const target = { baseUrl: "http://127.0.0.1:8080/v1", keyNeeded: false, table: [] };
const bodyWith = (content: string): Parameters<typeof copyAs>[1] => ({
  model: "m",
  messages: [{ role: "user", content }],
});

test("for every text: a shell reads the body as it was", () => {
  // Texts that a command line can hold: no NUL.
  const text = fc.string({ unit: "grapheme", maxLength: 40 }).map((text) => text.replaceAll("\0", ""));
  const texts = fc.sample(fc.oneof(text, fc.constantFrom("it's", "''", "$HOME", "`id`", "a\\'b", "\\", "!!", '"')), 40);
  for (const content of texts) {
    const code = copyAs("curl", bodyWith(content), target).replace(/^curl .*?-d /s, "printf %s ");
    expect(JSON.parse(execFileSync("sh", ["-c", code], { encoding: "utf8" }))).toEqual(bodyWith(content));
  }
});

test("Python has Python's words, and what its library does not know goes as extra_body", () => {
  const table = [{ name: "top_k", treatment: "honoured", origin: "extension", note: "" }] as const;
  const code = copyAs(
    "Python",
    { ...bodyWith("x"), top_k: 5, stream: true, stop: null, tools: [] },
    { ...target, table },
  );
  expect(code).toContain(
    '    stream=True,\n    stop=None,\n    tools=[],\n    extra_body={\n        "top_k": 5,\n    },\n)',
  );
});

test("a key is taken from the environment", () => {
  for (const language of ["curl", "Node", "Python"] as const) {
    expect(copyAs(language, bodyWith("x"), target)).not.toContain("_API_KEY");
    expect(copyAs(language, bodyWith("x"), { ...target, keyNeeded: true })).toContain("OPENAI_API_KEY");
    // A server reads TRUEWIRE_API_KEY as a key without limits: no client is to put its own key there.
    expect(copyAs(language, bodyWith("x"), { ...target, keyNeeded: true })).not.toContain("TRUEWIRE_API_KEY");
  }
});
