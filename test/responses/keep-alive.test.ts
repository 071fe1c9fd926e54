import { EventEmitter, once } from "node:events";
import { expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

/** The types of the events of an answer. `heard` is called with their number after each. */
async function listen(url: string, heard: (count: number) => unknown): Promise<string[]> {
  const types: string[] = [];
  const response = await fetch(`${url}/v1/responses`, json({ model: "scripted", input: "x", stream: true }));
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) throw new Error("the answer has no body");
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const type = /^event: (.*)$/m.exec(event)?.[1];
      if (type !== undefined) heard(types.push(type));
    }
  }
  return types;
}

// Comments do not count for Codex, which gives up when no event comes for too long.
test.each([
  ["lean", "response.in_progress"],
  ["exact", "keepalive"],
] as const)("events come while a long prompt is read; profile %s: %s", async (wire, type) => {
  const reading = new EventEmitter();
  const engine = new ScriptedEngine(async function* () {
    await once(reading, "end");
    yield* answer(["Hello"]);
  });
  const server = await createServer({
    port: 0,
    logLevel: "silent",
    ...serving(engine, { wire, hold: "20ms", keepAlive: "30ms" }),
  });
  closeAfterTest(() => server.close(0));
  // The prompt is read until the client has heard enough: two events of the beginning, and four others.
  const types = await listen(server.url, (count) => count === 6 && reading.emit("end"));
  const begun = types.indexOf("response.output_item.added");
  expect(types.slice(0, 2)).toEqual(["response.created", "response.in_progress"]);
  expect(begun).toBeGreaterThanOrEqual(6);
  expect(new Set(types.slice(2, begun))).toEqual(new Set([type]));
  expect(types.at(-1)).toBe("response.completed");
});
