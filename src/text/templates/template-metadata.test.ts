import { expect, test } from "vitest";
import { templateMetadata } from "./template-metadata.ts";

test("texts and lists of texts outside of blocks are read, whatever the rest of the template does", () => {
  const source = `{# Metadata #}
{% set stop_strings = ["<|end|>", '<|user|>'] %}
{%- set tool_start = "<tool>" -%}
{% set tool_end = "</" ~ "tool>" %}
{% set tool_call_format = "xml" %}
{% set other = "x" %}
{% for m in messages %}{% set stop_strings = ["no"] %}{{ m.content }}{% endfor %}`;
  expect(templateMetadata(source)).toEqual({
    stopStrings: ["<|end|>", "<|user|>"],
    toolStart: "<tool>",
    toolEnd: "</tool>",
    toolCallFormat: "xml",
  });
});

test.each([
  "{% set tool_start = messages[0].content.strip() %}",
  "{% set stop_strings = [] %}{% set tool_start = '' %}{% set tool_call_format = 7 %}",
  "{% set stop_strings %}block{% endset %}",
  "{% broken",
  "",
])("%j says nothing", (source) => {
  expect(templateMetadata(source)).toEqual({});
});
