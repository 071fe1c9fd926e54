import { describe, expect, test } from "vitest";
import type { EngineHealth } from "../../src/wire/core/engine.ts";
import { ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import type { Batch } from "../support/scripted-engine.ts";
import { chat, serving, transports } from "../support/transports.ts";

function* flood(): Generator<Batch> {
  yield [{ type: "start", choice: 0 }];
  for (;;) yield [{ type: "text-delta", choice: 0, text: "x".repeat(65_536) }];
}

/** An engine whose slots others wait for. */
class CrowdedEngine extends ScriptedEngine {
  queued = 0;

  override health(): EngineHealth {
    return { ...super.health(), queued: this.queued };
  }
}

/** Four clients that did not read held all four slots for five minutes; one that read a little now and then held its slot for ever. */
describe.each(transports)("readers that hold a slot, through $name", ({ open }) => {
  test("are waited for while nobody else waits, and give their slot up to those who do", async () => {
    const engine = new CrowdedEngine(flood);
    const api = await open(serving(engine, { readerPatience: "200ms" }));
    const responses = await Promise.all(
      Array.from({ length: 4 }, () => api.fetch("/v1/chat/completions", chat("x", { stream: true }))),
    );
    await sleep(1000);
    expect(engine.running).toBe(4);
    engine.queued = 1;
    await until(() => engine.running === 0, "the slots are free");
    for (const { body } of responses) await body?.cancel().catch(() => {});
    const health = async (): Promise<unknown> => (await api.fetch("/health")).json();
    await expect.poll(health).toMatchObject({ requests: { cancelled: 4 } });
    await api.close();
  });

  test("may not keep it by reading a little now and then", async () => {
    const engine = new CrowdedEngine(flood);
    engine.queued = 1;
    const api = await open(serving(engine, { readerPatience: "400ms" }));
    const response = await api.fetch("/v1/chat/completions", chat("x", { stream: true }));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const over = new AbortController();
    const drip = (async () => {
      while (!over.signal.aborted) {
        await sleep(60);
        // A read may be enough for one more piece, so no single wait is as long as the patience.
        for (let i = 0; i < 40; i++) if ((await reader.read()).done) return;
      }
    })().catch(() => {});
    await until(() => engine.running === 0, "its slot is free");
    over.abort();
    await reader.cancel().catch(() => {});
    await drip;
    await api.close();
  });
});

test("a reader is given up in the end though nobody waits", async () => {
  const engine = new CrowdedEngine(flood);
  const transport = transports[0] as (typeof transports)[number];
  const api = await transport.open(serving(engine, { readerPatience: "50ms" }));
  const { body } = await api.fetch("/v1/chat/completions", chat("x", { stream: true }));
  await until(() => engine.running === 0, "it is given up");
  await body?.cancel().catch(() => {});
  await api.close();
});
