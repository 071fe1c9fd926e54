import { expect, test } from "vitest";
import { formatNamed } from "./known.ts";
import { parseMessage } from "./parse-job.ts";
import { plainText } from "./format.ts";

const call = '{"name": "f", "arguments": {"a": 1}}';
const nested = '{"id": "call_9", "type": "function", "function": {"name": "f", "arguments": "{\\"a\\": 1}"}}';
const tags = "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>";

test.each([
  ["json", call],
  ["json", `[${call}]`],
  ["json", nested],
  ["json", `[${nested}]`],
  ["json", `\`\`\`json\n[${call}]\n\`\`\``],
  ["json", `\`\`\`json\n${call}\n\`\`\``],
  ["json", `Let me see. ${call}`],
  ["xml", tags],
  ["xml", `<tool_call>\n${tags}\n</tool_call>`],
  ["xml", "<function=f>\n<parameter=a>\n1\n</function>"],
  ["xml", '<function=f>{"a": 1}</function>'],
  ["auto", call],
  ["auto", `<tool_call>${call}</tool_call>`],
  ["auto", `<|python_tag|>${call}`],
  ["auto", `<tool_call>\n${tags}\n</tool_call>`],
  ["auto", '<function=f>{"a": 1}</function>'],
  ["auto", `[${nested}]`],
])("%s reads %s", (name, text) => {
  const format = formatNamed(name) ?? plainText;
  for (const chunks of [[text], text.split("")]) {
    const message = parseMessage({ format, text, chunks });
    expect(message.calls.map(({ name, arguments: json }) => [name, JSON.parse(json) as unknown])).toEqual([
      ["f", { a: 1 }],
    ]);
    expect(message.content.replace("Let me see.", "").trim()).toBe("");
  }
});

test.each(["A list: [1, 2].", '{"answer": 42}', '{"name": "Ada", "age": 36}', "See [link](url) and {braces}.", "[]"])(
  "%s is text",
  (text) => {
    for (const name of ["json", "xml", "auto"]) {
      const format = formatNamed(name) ?? plainText;
      expect(parseMessage({ format, text })).toEqual({ content: text, reasoning: "", calls: [] });
    }
  },
);
