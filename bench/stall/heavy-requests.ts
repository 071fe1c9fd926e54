/** The members of a chat request without the model. They are new in each round, so no cache of an earlier round helps. */
export type MakeRequest = (round: number) => Readonly<Record<string, unknown>>;

export const heavyRequests: Readonly<Record<string, MakeRequest>> = {
  "nothing special": (round) => ({ messages: user(`Hi ${round}`) }),
  "30 strict tools": (round) => ({ messages: user("Hi"), tools: Array.from({ length: 30 }, (_, i) => tool(round, i)) }),
  "30 strict tools, again": () => ({ messages: user("Hi"), tools: Array.from({ length: 30 }, (_, i) => tool(-1, i)) }),
  "200 KiB schema": (round) => ({
    messages: user("Hi"),
    response_format: { type: "json_schema", json_schema: { name: "large", schema: largeSchema(round, 200 * 1024) } },
  }),
  "1 MiB conversation": (round) => ({ messages: conversation(round, 2 ** 20, 500) }),
  "1 MiB, short messages": (round) => ({ messages: conversation(round, 2 ** 20, 40) }),
};

function user(content: string): readonly unknown[] {
  return [{ role: "user", content }];
}

function tool(round: number, i: number): unknown {
  const properties = {
    city: { type: "string", description: "Where." },
    days: { type: "integer", minimum: 1, maximum: 14 },
    unit: { type: "string", enum: ["celsius", "fahrenheit", "kelvin"] },
    places: {
      type: "array",
      items: {
        type: "object",
        properties: { name: { type: "string" }, height: { type: "number" } },
        required: ["name", "height"],
        additionalProperties: false,
      },
    },
    note: { type: "string" },
    urgent: { type: "boolean" },
  };
  return {
    type: "function",
    function: {
      name: `tool_${round + 1}_${i}`,
      description: "Does one thing.",
      parameters: { type: "object", properties, required: Object.keys(properties), additionalProperties: false },
      strict: true,
    },
  };
}

function largeSchema(round: number, bytes: number): unknown {
  const properties: Record<string, unknown> = {};
  for (let size = 0, i = 0; size < bytes; i++) {
    const group = {
      type: "object",
      description: `Group ${i} of round ${round}: ${"what it is for. ".repeat(10)}`,
      properties: Object.fromEntries(
        Array.from({ length: 10 }, (_, j) => [
          `value_${j}`,
          { type: j % 2 === 0 ? "string" : "integer", description: "One of the values." },
        ]),
      ),
      required: ["value_0", "value_1"],
    };
    properties[`group_${i}`] = group;
    size += JSON.stringify(group).length + 12;
  }
  return { type: "object", properties, required: Object.keys(properties) };
}

function conversation(round: number, bytes: number, each: number): readonly unknown[] {
  const count = Math.ceil(bytes / (each + 40));
  return Array.from({ length: count }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${round} ${i} `.padEnd(each, "and so on "),
  })).concat({ role: "user", content: "Hi" });
}
