import { describe, expect, test } from "vitest";
import { answer, done, ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import type { Batch } from "../support/scripted-engine.ts";
import { asked } from "../support/scripted-engine.ts";
import { chat, serving, transports } from "../support/transports.ts";

const piece = "x".repeat(16_384);
const pieces = 2000;

function* flood(): Generator<Batch> {
  yield [
    { type: "start", choice: 0 },
    { type: "text-delta", choice: 0, text: piece },
  ];
  for (let at = 1; at < pieces; at++) yield [{ type: "text-delta", choice: 0, text: piece }];
  yield [{ type: "finish", choice: 0, reason: "stop" }, done];
}

describe.each(transports)("slow readers through $name", ({ open }) => {
  test("hold back their own source only, and get everything in the end", async () => {
    const engine = new ScriptedEngine((request) => (asked(request) === "flood" ? flood() : answer(["quick"])));
    const api = await open(serving(engine));
    const response = await api.fetch("/v1/chat/completions", chat("flood", { stream: true }));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    // Nobody reads: what the sockets and the system take is taken, then the source stands still.
    let before = -1;
    await until(async () => {
      const still = engine.pulled === before;
      before = engine.pulled;
      await sleep(100);
      return still;
    }, "the source stands still");
    expect(engine.pulled).toBeLessThan(pieces);
    const other = await api.fetch("/v1/chat/completions", chat("quick"));
    expect(await other.json()).toMatchObject({ choices: [{ message: { content: "quick" } }] });
    let bytes = 0;
    for (;;) {
      const { value, done: all } = await reader.read();
      if (all) break;
      bytes += value.length;
    }
    expect(bytes).toBeGreaterThan(pieces * piece.length);
    await until(() => engine.running === 0, "the generation ended");
    await api.close();
  });
});
