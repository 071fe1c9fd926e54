import fc from "fast-check";
import { expect, test } from "vitest";
import { ChoiceAssembler } from "./choice-assembler.ts";
import type { GenerationEvent } from "./events.ts";

test("a source that starts the choice itself is not started a second time", () => {
  const assembler = new ChoiceAssembler(1);
  assembler.add([{ type: "start", choice: 1, announced: "refusal" }]);
  assembler.add([{ type: "text-delta", choice: 1, text: "a" }]);
  expect(assembler.take().map(({ type }) => type)).toEqual(["start", "text-delta"]);
  expect(assembler.take()).toEqual([]);
});

test("an empty choice starts and finishes", () => {
  const assembler = new ChoiceAssembler(0);
  assembler.add([]);
  expect(assembler.take()).toEqual([]);
  assembler.finish("stop", "END");
  expect(assembler.take()).toEqual([
    { type: "start", choice: 0 },
    { type: "finish", choice: 0, reason: "stop", stop: "END" },
  ]);
});

test.each([
  ["stop", "tool-calls"],
  ["length", "length"],
  ["content-filter", "content-filter"],
  ["function-call", "function-call"],
] as const)("with a call, %s is told as %s", (reason, told) => {
  const assembler = new ChoiceAssembler(0);
  assembler.add(call(0, "a"));
  assembler.finish(reason);
  expect(assembler.take().at(-1)).toMatchObject({ type: "finish", reason: told });
});

function call(index: number, id: string): GenerationEvent[] {
  return [
    { type: "tool-call-start", choice: 0, index, id, name: "f" },
    { type: "tool-call-delta", choice: 0, index, arguments: id },
    { type: "tool-call-end", choice: 0, index, status: "succeeded" },
  ];
}

test("for every mixture of sources: one start, first; calls numbered without gaps, each keeping its own arguments", () => {
  const found = fc.record({
    source: fc.constantFrom("source", "text"),
    what: fc.constantFrom("call", "text", "restart"),
    takes: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(found), (steps) => {
      const assembler = new ChoiceAssembler(0);
      const next = { source: 0, text: 0 };
      const events: GenerationEvent[] = [];
      let calls = 0;
      for (const { source, what, takes } of steps) {
        const key = source as keyof typeof next;
        if (what === "restart") next[key] = 0;
        else if (what === "text") assembler.add([{ type: "text-delta", choice: 0, text: "." }], source);
        else for (const event of call(next[key]++, String(calls++))) assembler.add([event], source);
        if (takes) events.push(...assembler.take());
      }
      assembler.finish("stop");
      events.push(...assembler.take());
      expect(events.filter(({ type }) => type === "start")).toHaveLength(1);
      expect(events[0]?.type).toBe("start");
      expect(events.at(-1)).toMatchObject({ type: "finish", reason: calls > 0 ? "tool-calls" : "stop" });
      const told = events.flatMap((event) => {
        if (event.type === "tool-call-start") return [[event.index, event.id]];
        if (event.type === "tool-call-delta") return [[event.index, event.arguments]];
        return event.type === "tool-call-end" ? [[event.index, "end"]] : [];
      });
      const expected = Array.from({ length: calls }, (_, i) => [
        [i, String(i)],
        [i, String(i)],
        [i, "end"],
      ]);
      expect(told).toEqual(expected.flat());
    }),
  );
});
