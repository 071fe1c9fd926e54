import fc from "fast-check";
import { expect, test } from "vitest";
import { FailureError } from "../../core/failure.ts";
import type { JsonObject } from "../../core/json.ts";
import { capturedRequest } from "./captured-request.ts";
import { readResponsesRequest } from "./request.ts";

/** Values that a response may repeat of its request, right ones and wrong ones. */
const string = fc.oneof(fc.string(), fc.constant("x".repeat(65)));
const number = fc.oneof(fc.integer({ min: -1, max: 130 }), fc.double({ min: -1, max: 3, noNaN: true }));
const odd = fc.oneof(fc.constant(null), fc.boolean(), string, number, fc.constant([]), fc.constant({}));
const tool = fc.oneof(
  fc.record({
    type: fc.constantFrom("function", "custom", "web_search"),
    name: fc.constantFrom("f", "g", "not a name", 7),
    description: fc.constantFrom(null, "It does."),
    parameters: fc.constantFrom(null, { type: "object" }, { type: "array" }),
    strict: fc.constantFrom(null, true, "yes"),
  }),
  fc.record({
    type: fc.constant("namespace"),
    name: fc.constantFrom("n", null),
    tools: fc.constant([{ type: "function", name: "inner" }]),
  }),
  fc.constant({ type: "tool_search", execution: "client" }),
  odd,
);
const choice = fc.oneof(
  fc.constantFrom<unknown>("auto", "none", "required", "any"),
  fc.record({
    type: fc.constantFrom("function", "custom", "web_search", "allowed_tools"),
    name: fc.constantFrom("f", "h"),
  }),
  fc.constant({ type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] }),
  odd,
);
const reasoning = fc.record(
  {
    effort: fc.constantFrom("low", "xhigh", "huge", null),
    summary: fc.constantFrom("auto", "long", null),
    generate_summary: fc.constantFrom("detailed", 1, null),
    context: odd,
  },
  { requiredKeys: [] },
);
const format = fc.record(
  {
    type: fc.constantFrom("text", "json_object", "json_schema", "xml"),
    name: fc.constantFrom("n", "not a name", null, 1),
    description: fc.constantFrom("d", null, 1),
    schema: fc.constantFrom({ type: "object" }, true, null, "s"),
    strict: fc.constantFrom(true, false, null, 1),
  },
  { requiredKeys: ["type"] },
);
const text = fc.record(
  { format: fc.oneof(format, odd), verbosity: fc.oneof(fc.constantFrom("low", "medium", "loud"), odd) },
  { requiredKeys: [] },
);
const response = fc.record(
  {
    instructions: odd,
    max_output_tokens: odd,
    max_tool_calls: odd,
    metadata: fc.oneof(fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer()), { maxKeys: 18 }), odd),
    parallel_tool_calls: odd,
    prompt_cache_key: odd,
    reasoning: fc.oneof(reasoning, odd),
    safety_identifier: odd,
    store: odd,
    temperature: odd,
    text: fc.oneof(text, odd),
    tools: fc.oneof(fc.array(tool, { maxLength: 3 }), odd),
    tool_choice: choice,
    top_logprobs: odd,
    top_p: odd,
    truncation: fc.oneof(fc.constantFrom("auto", "disabled"), odd),
    user: odd,
  },
  { requiredKeys: [] },
);

test("for every response: what it repeats counts where a request with it would be taken", () => {
  fc.assert(
    fc.property(response, (repeated) => {
      const { echo, grouped, searches } = capturedRequest(repeated as JsonObject, []);
      const expected = asRead(repeated);
      expect(echo).toEqual(expected.echo);
      expect([grouped, searches]).toEqual([expected.grouped, expected.searches]);
    }),
    { numRuns: 300 },
  );
});

/** The slow and obvious way: each member is added to a request, and stays where the request can then be read. */
function asRead(
  repeated: Readonly<Record<string, unknown>>,
): ReturnType<typeof readResponsesRequest>["responseOptions"] {
  const body: Record<string, unknown> = { model: "unknown", input: "" };
  for (const name of ["tools", ...Object.keys(repeated).filter((name) => name !== "tools")]) {
    const value = repeated[name];
    if (value !== undefined && isTaken({ ...body, [name]: value })) body[name] = value;
  }
  return readResponsesRequest(body, "").responseOptions;
}

function isTaken(body: unknown): boolean {
  try {
    readResponsesRequest(body, "");
    return true;
  } catch (error) {
    if (error instanceof FailureError) return false;
    throw error;
  }
}
