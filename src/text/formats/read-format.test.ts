import { expect, test } from "vitest";
import { knownFormats } from "./known.ts";
import { parseMessage } from "./parse-job.ts";
import { FormatError, readFormat } from "./read-format.ts";

test.each(knownFormats.map((format) => [format.id, format] as const))(
  "%s is a description of itself",
  (_id, format) => {
    expect(readFormat(JSON.parse(JSON.stringify(format)))).toEqual(format);
  },
);

test("a format of one's own is short, and reads", () => {
  const format = readFormat({
    kind: "plain",
    id: "mine",
    reasoning: { open: "<ponder>", close: "</ponder>" },
    calls: [{ form: "object", open: "<act>", close: "</act>", list: "one" }],
  });
  const text = '<ponder>hm</ponder>ok<act>{"name": "f", "arguments": {"a": 1}}</act>';
  expect(parseMessage({ format, text })).toEqual({
    content: "ok",
    reasoning: "hm",
    calls: [{ name: "f", arguments: '{"a": 1}' }],
  });
});

test.each([
  [{}, "kind"],
  [{ kind: "plain", id: "x", calls: [{ form: "object", open: "<a>", list: "two" }] }, "calls[0].list"],
  [{ kind: "plain", id: "x", calls: [{ form: "object", list: "one" }] }, "calls[0].open"],
  [{ kind: "plain", id: "x", calls: [], reasoning: { open: "<a>" } }, "reasoning.close"],
  [
    {
      kind: "plain",
      id: "x",
      calls: [{ form: "named", open: "<a>", head: "x", headEnd: ">", args: { kind: "json" } }],
    },
    "calls[0].head",
  ],
  [{ kind: "plain", id: "x", calls: [], colour: "red" }, "colour"],
  [
    { kind: "routed", id: "x", start: "<", headerEnd: ">", ends: [], routes: [{ header: "(", to: "drop" }] },
    "routes[0].header",
  ],
])("what is wrong is named with its place: %j", (value, place) => {
  expect(() => readFormat(value)).toThrow(FormatError);
  expect(() => readFormat(value)).toThrow(place);
});
