import { afterEach, beforeEach, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { loseConnections } from "../support/rough-clients.ts";
import { ScriptedEngine, sleep, until } from "../support/scripted-engine.ts";
import type { Batch } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";

/** A stream that fills every buffer on its way at once, and never ends. */
async function* flood(): AsyncGenerator<Batch> {
  yield [{ type: "start", choice: 0 }];
  for (;;) {
    yield [{ type: "text-delta", choice: 0, text: "x".repeat(16_384) }];
    await sleep(1);
  }
}

let server: TruewireServer;
let engine: ScriptedEngine;
beforeEach(async () => {
  engine = new ScriptedEngine(flood);
  server = await createServer({ ...serving(engine), port: 0, logLevel: "silent" });
});
afterEach(() => server.close(0));

/**
 * Of pipelined requests only the first response has the socket; the others waited for its "drain" or "close" for ever when the
 * connection was lost: 150 of 27,500 disconnects were open an hour later.
 */
test("after two thousand connections lost in every way nothing is open", async () => {
  await loseConnections(server.url, 2000, { model: "scripted", messages: [{ role: "user", content: "x" }] });
  await until(() => engine.running === 0, "no generation runs");
  await until(async () => {
    const health = (await (await fetch(`${server.url}/health`)).json()) as { requests: { open: number } };
    // The one that asks is open itself.
    return health.requests.open === 1;
  }, "no request is open");
  expect(engine.requests.length).toBeGreaterThan(500);
});
