import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/app/create-server.ts";
import type { TruewireServer } from "../../src/app/create-server.ts";
import type { TruewireConfig } from "../../src/config/config.ts";
import { answer, ScriptedEngine, sleep } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

/** How long the prompt is read, and how long the client waits for an event: it would give up several times over. */
const prefillMs = 4000;
const patienceMs = 1500;

/** A client that gives up when no event comes for too long; comments are none. As Codex does. */
async function impatient(url: string): Promise<string[]> {
  const leaving = new AbortController();
  const giveUp = (): void => leaving.abort(new Error("no event came in time"));
  let timer = setTimeout(giveUp, patienceMs);
  const request = json({ model: "scripted", input: "x", stream: true });
  const types: string[] = [];
  try {
    const response = await fetch(`${url}/v1/responses`, { ...request, signal: leaving.signal });
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
        if (type === undefined) continue;
        types.push(type);
        clearTimeout(timer);
        timer = setTimeout(giveUp, patienceMs);
      }
    }
  } finally {
    clearTimeout(timer);
  }
  return types;
}

describe("a client whose patience is shorter than the reading of the prompt", () => {
  let server: TruewireServer | undefined;
  const serve = async (config: TruewireConfig): Promise<string> => {
    const engine = new ScriptedEngine(async function* () {
      await sleep(prefillMs);
      yield* answer(["Hello"]);
    });
    server = await createServer({ port: 0, logLevel: "silent", ...serving(engine, config) });
    return server.url;
  };
  beforeEach(() => {
    server = undefined;
  });
  afterEach(() => server?.close(0));

  test.each([
    ["lean", "response.in_progress"],
    ["exact", "keepalive"],
  ] as const)("hears events in profile %s: %s", async (wire, type) => {
    const types = await impatient(await serve({ wire, hold: "200ms", keepAlive: "300ms" }));
    const begun = types.indexOf("response.output_item.added");
    expect(types.slice(0, 2)).toEqual(["response.created", "response.in_progress"]);
    expect(begun).toBeGreaterThan(4);
    expect(new Set(types.slice(2, begun))).toEqual(new Set([type]));
    expect(types.at(-1)).toBe("response.completed");
  });

  test("gives up where nothing is said for so long", async () => {
    await expect(impatient(await serve({ hold: "1m" }))).rejects.toThrow("no event came in time");
  });
});
