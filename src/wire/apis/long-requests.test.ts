import { expect, test } from "vitest";
import { ports } from "./ports.ts";
import { lean } from "./profile.ts";

const user = { role: "user", content: "Hi" };
const text = { type: "text", text: "x" };
const call = (id: string): object => ({ type: "tool_use", id, name: "f", input: {} });

/** Long requests: many messages, and few of many parts. */
const bodies: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  chat: {
    "many messages": { messages: many(5000, () => user) },
    "many parts": { messages: many(5, () => ({ role: "user", content: many(2000, () => text) })) },
    "many calls": {
      messages: many(5, () => ({
        role: "assistant",
        tool_calls: many(2000, () => ({ id: "c", type: "function", function: { name: "f", arguments: "{}" } })),
      })),
    },
    "many tools": { messages: [user], tools: many(4000, () => ({ type: "function", function: { name: "f" } })) },
  },
  responses: {
    "many items": { input: many(5000, () => user) },
    "many tools": { input: "Hi", tools: many(4000, (at) => ({ type: "function", name: `f${at}` })) },
  },
  messages: {
    "many messages": { messages: many(5000, () => user) },
    "many parts": { messages: many(5, () => ({ role: "user", content: many(2000, () => text) })) },
    "many calls": {
      messages: many(5, (turn) => ({ role: "assistant", content: many(2000, (at) => call(`c${turn}_${at}`)) })),
    },
    "parts in many results": {
      messages: [
        {
          role: "user",
          content: many(100, (at) => ({ type: "tool_result", tool_use_id: `c${at}`, content: many(100, () => text) })),
        },
      ],
    },
    "many tools": { messages: [user], tools: many(4000, (at) => ({ name: `f${at}`, input_schema: {} })) },
  },
  gemini: {
    "many contents": { contents: many(5000, () => ({ role: "user", parts: [{ text: "x" }] })) },
    "many parts": { contents: many(5, () => ({ role: "user", parts: many(2000, () => ({ text: "x" })) })) },
    "many calls": {
      contents: many(5, (turn) => ({
        role: "model",
        parts: many(2000, (at) => ({ functionCall: { id: `c${turn}_${at}`, name: "f", args: {} } })),
      })),
    },
    "many tools": {
      contents: [{ parts: [{ text: "Hi" }] }],
      tools: [{ functionDeclarations: many(4000, (at) => ({ name: `f${at}`, parametersJsonSchema: {} })) }],
    },
  },
};

function many<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

const cases = ports.flatMap((port) =>
  Object.entries(bodies[port.name] ?? {}).map(([name, members]) => ({ port, name: `${port.name}: ${name}`, members })),
);

// A conversation of 23,000 blocks was read in one piece, in which the server did nothing else for 60 to 150 ms.
test.each(cases)("$name: read a little at a time", ({ port, members }) => {
  let looks = 0;
  const watched = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(watched);
    const copy = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, watched(member)]));
    return new Proxy(copy, {
      get(target, name) {
        looks++;
        return Reflect.get(target, name) as unknown;
      },
    });
  };
  const body = { model: "m", max_tokens: 4, ...(watched(members) as object) };
  const work = port.readRequest(body, "req_1", { profile: lean, header: () => "2023-06-01" });
  let [steps, stepsWithoutLook, most, all] = [0, 0, 0, 0];
  for (let step = work.next(); step.done !== true; step = work.next()) {
    steps++;
    if (looks === 0) stepsWithoutLook++;
    most = Math.max(most, looks);
    all += looks;
    looks = 0;
  }
  all += looks;
  expect(all).toBeGreaterThan(4000);
  expect(Math.max(most, looks)).toBeLessThan(all / 10);
  // What was checked is gone through once more, as it was copied.
  if (port.name !== "responses") expect(stepsWithoutLook).toBeGreaterThan(0);
  expect(steps).toBeGreaterThan(20);
});
