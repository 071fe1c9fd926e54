import { expect, test } from "vitest";
import { probes } from "./probes.ts";

// The probes sent tools, tool_choice, text and response_format as null and expected status 200: servers that follow the specification
// were reported. No test compared the probes themselves with the specification.
test.each([
  ["nulls", ["response_format", "tools", "tool_choice", "parallel_tool_calls", "top_logprobs", "user"]],
  ["responses/nulls", ["text", "tools", "tool_choice", "top_logprobs", "user"]],
])("%s sends null only where the specification allows it", (id, notNullable) => {
  for (const name of [id, `${id}/stream`]) {
    const body = probes.find((probe) => probe.id === name)?.body?.("m") ?? {};
    const nulls = Object.keys(body).filter((member) => body[member] === null);
    expect(nulls.length).toBeGreaterThan(4);
    expect(nulls.filter((member) => notNullable.includes(member))).toEqual([]);
  }
});
