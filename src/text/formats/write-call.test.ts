import { expect, test } from "vitest";
import { formatNamed, knownFormats } from "./known.ts";
import { parseMessage } from "./parse-job.ts";
import { writeCall } from "./write-call.ts";

const call = { name: "get_weather", arguments: { city: "Paris", days: 3 } };
const tool = {
  name: "get_weather",
  parameters: { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } } },
};

test.each(knownFormats.map((format) => [format.id, format] as const))("%s reads what it writes", (_id, format) => {
  const text = writeCall(format, call);
  if (text === null) return expect("calls" in format && format.calls.length === 0).toBe(true);
  for (const tools of [[tool], undefined]) {
    const message = parseMessage({ format, text, ...(tools && { tools }) });
    expect(message.content).toBe("");
    expect(
      message.calls.map(({ name, arguments: json }) => ({ name, arguments: JSON.parse(json) as unknown })),
    ).toEqual([call]);
  }
});

test("a name or alias names one format, and no two formats are the same", () => {
  const names = knownFormats.flatMap(({ id, aliases = [] }) => [id, ...aliases]);
  expect([...new Set(names)]).toEqual(names);
  expect(names.map((name) => formatNamed(name))).not.toContain(undefined);
  const descriptions = knownFormats.map((format) => JSON.stringify({ ...format, id: "", aliases: [] }));
  expect(new Set(descriptions).size).toBe(knownFormats.length);
});
