import { expect, test } from "vitest";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { OneCall } from "./event-stages.ts";

// `truewire check` found it in a real llama.cpp's server: `parallel_tool_calls: false` gave an agent two calls. Our double made one.
test("of several calls of a choice, the first one is left, and the repair is said", () => {
  const call = (choice: number, index: number): GenerationEvent[] => [
    { type: "tool-call-start", choice, index, id: `call_${index}`, name: "f" },
    { type: "tool-call-delta", choice, index, arguments: "{}" },
    { type: "tool-call-end", choice, index, status: "succeeded" },
  ];
  const noted: string[] = [];
  const { transform } = new OneCall((repair) => noted.push(repair));
  expect(transform([...call(0, 0), ...call(1, 0)])).toEqual([...call(0, 0), ...call(1, 0)]);
  expect(noted).toEqual([]);
  expect(transform([...call(0, 1), { type: "text-delta", choice: 0, text: "Hi" }, ...call(1, 2)])).toEqual([
    { type: "text-delta", choice: 0, text: "Hi" },
  ]);
  expect(noted).toContain("second-call");
});
