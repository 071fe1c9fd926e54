import { expect, test } from "vitest";
import { requestedChoices, expectationsOf } from "./expectations.ts";

const tools = [{ type: "function", function: { name: "get_time" } }];
const named = (name: string) => ({ type: "function", function: { name } });

test.each([
  [{ max_tokens: 5 }, { limit: 5 }],
  [{ max_tokens: 0, echo: true }, { limit: 0 }],
  [
    { tools, tool_choice: "required" },
    { forced: true, named: undefined },
  ],
  [
    { tools, tool_choice: named("get_time") },
    { forced: true, named: "get_time" },
  ],
  [{ tool_choice: "none", tools }, { silent: true }],
])("%j demands %j", (body, demands) => {
  expect(expectationsOf(body)).toMatchObject(demands);
});

// A server that answers these was accused twice: of not refusing them, and of not doing what cannot be done.
test.each([
  [{ max_tokens: -1 }, { limit: undefined }],
  [{ max_completion_tokens: "5" }, { limit: undefined }],
  [{ tool_choice: "required" }, { forced: false }],
  [{ tools: [], tool_choice: "required" }, { forced: false }],
  [
    { tools, tool_choice: named("no_such_tool") },
    { forced: false, named: undefined },
  ],
])("%j may be refused, so it demands nothing", (body, demands) => {
  expect(expectationsOf(body)).toMatchObject(demands);
});

test.each([
  [{}, 1],
  [{ n: 2 }, 2],
  [{ n: 0 }, 1],
  [{ n: -1 }, 1],
  [{ n: 2, prompt: ["a", "b", "c"] }, 6],
  [{ prompt: [1, 2, 3] }, 1],
  [{ prompt: [] }, 1],
])("%j asks for %i choices", (body, count) => {
  expect(requestedChoices(body)).toBe(count);
});
