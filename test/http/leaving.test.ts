import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { answer, ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import type { Batch } from "../support/scripted-engine.ts";
import { chat, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

/** Speaks for ever, one word every few milliseconds; does not look at the signal, only at being left. */
async function* endless(): AsyncGenerator<Batch> {
  const [first] = answer(["word "]);
  if (first) yield first;
  for (;;) {
    await sleep(2);
    yield [{ type: "text-delta", choice: 0, text: "word " }];
  }
}

/** One client's stay; leaving is what it came for, so nothing of it is an error. */
async function visit(
  api: Api,
  { stream, afterMs, afterReads }: { stream: boolean; afterMs?: number; afterReads?: number },
): Promise<void> {
  const leaving = new AbortController();
  if (afterMs !== undefined) setTimeout(() => leaving.abort(), afterMs);
  try {
    const response = await api.fetch("/v1/chat/completions", { ...chat("x", { stream }), signal: leaving.signal });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let left = afterReads ?? Infinity;
    while (left-- > 0 && !(await reader.read()).done);
    leaving.abort();
  } catch {
    // It left.
  }
}

describe.each(transports)("clients that leave, through $name", ({ open }) => {
  test("mid-stream: the generation ends, and no further step is taken for it", async () => {
    const engine = new ScriptedEngine(endless);
    const api = await open(serving(engine));
    const leaving = new AbortController();
    const response = await api.fetch("/v1/chat/completions", {
      ...chat("x", { stream: true }),
      signal: leaving.signal,
    });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    leaving.abort();
    await reader.cancel().catch(() => {});
    await until(() => engine.running === 0, "the generation ended");
    const { pulled } = engine;
    await (await api.fetch("/v1/models")).text();
    expect(engine.pulled).toBe(pulled);
    await api.close();
  });

  test("not streamed: the generation ends as well", async () => {
    const engine = new ScriptedEngine(endless);
    const api = await open(serving(engine));
    const leaving = new AbortController();
    const response = api.fetch("/v1/chat/completions", { ...chat("x"), signal: leaving.signal });
    response.catch(() => {});
    await until(() => engine.pulled > 3, "it generates");
    leaving.abort();
    await until(() => engine.running === 0, "the generation ended");
    await api.close();
  });

  test("hundreds that leave at any moment leave nothing open, and the server serves on", async () => {
    const engine = new ScriptedEngine((request) => (request.id ? endless() : answer([])));
    const api = await open(serving(engine, { hold: "20ms" }));
    // Some leave after a time, whatever has happened by then; others in the middle of what they read.
    const client = fc.oneof(
      fc.record({ stream: fc.boolean(), afterMs: fc.integer({ min: 0, max: 200 }) }),
      fc.record({ stream: fc.constant(true), afterReads: fc.integer({ min: 1, max: 5 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(client, { minLength: 60, maxLength: 60 }), async (clients) => {
        await Promise.all(clients.map((one) => visit(api, one)));
        await until(() => engine.running === 0, "all generations ended");
      }),
      { numRuns: 6 },
    );
    expect(engine.requests.length).toBeGreaterThan(100);
    const health = (await (await api.fetch("/health")).json()) as { requests: { open: number; cancelled: number } };
    await until(async () => {
      const { requests } = (await (await api.fetch("/health")).json()) as typeof health;
      // The one that asks is open itself.
      return requests.open === 1;
    }, "no request is open");
    expect(health.requests.cancelled).toBeGreaterThan(100);
    await api.close();
  });
});
