import { expect, test } from "vitest";
import { parseMessage } from "../../formats/parse-job.ts";
import { templateMetadata } from "../../templates/template-metadata.ts";
import { formatInMetadata } from "./template-format.ts";

test("JSON between the markers that a template gives is a call", () => {
  const format = formatInMetadata(
    templateMetadata(`{% set tool_start = "<<call>>" %}{% set tool_end = "<</call>>" %}`),
  );
  if (!format) throw new Error("no format");
  const text = `So:<<call>>[{"name": "f", "arguments": {"x": 1}}]<</call>>`;
  expect(parseMessage({ format, text })).toMatchObject({
    content: "So:",
    calls: [{ name: "f", arguments: '{"x": 1}' }],
  });
});

test("a format is taken by its name, an unknown name is none", () => {
  expect(formatInMetadata(templateMetadata(`{% set tool_call_format = "hermes" %}`))?.id).toBe("hermes");
  expect(formatInMetadata(templateMetadata(`{% set tool_call_format = "nobody's" %}`))).toBeUndefined();
  expect(formatInMetadata({})).toBeUndefined();
});
