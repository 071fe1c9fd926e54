import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { until } from "../support/scripted-engine.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { chat, json } from "../support/transports.ts";
import { keyOf, withKey } from "./support.ts";

/** So many requests of one key wait. */
const crowd = 50;
const [alice, bob] = [keyOf("alice"), keyOf("bob")];

/** A server with two keys whose local model has two slots and a queue of fifty, and whose program has one thread. */
describe("one key cannot starve the others", () => {
  let folder: string;
  let gate: string;
  let server: RunningTruewire;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "truewire-fair-"));
    writeProgrammedModel(join(folder, "local.gguf"));
    gate = join(folder, "open");
    // A run keeps its thread until the file is there.
    writeFileSync(
      join(folder, "waits.mjs"),
      `import { existsSync } from "node:fs";
       const still = new Int32Array(new SharedArrayBuffer(4));
       export default function ({ messages }) {
         while (messages.at(-1).content === "wait" && !existsSync(${JSON.stringify(gate)})) Atomics.wait(still, 0, 0, 5);
         return "Hi";
       }`,
    );
    writeFileSync(
      join(folder, "truewire.yaml"),
      stringify({
        port: 0,
        logLevel: "silent",
        keys: [alice.entry, bob.entry],
        models: [
          { kind: "local", path: "local.gguf", slots: 2, queueLimit: crowd, threads: 1, gpu: "off" },
          { kind: "program", program: "waits.mjs", threads: 1 },
        ],
      }),
    );
    server = await startTruewire(["--config", join(folder, "truewire.yaml")]);
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const queued = async (): Promise<number> =>
    ((await (await fetch(`${server.url}/health`)).json()) as { queued: number }).queued;

  /** Asks; `begun` is called with the first piece of the answer. */
  async function ask(path: string, key: string, init: RequestInit, begun: () => void): Promise<number> {
    const response = await fetch(`${server.url}${path}`, withKey(key, init));
    const reader = response.body?.getReader();
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) begun();
    return response.status;
  }

  test("slots of a local model: behind fifty of one key, another key's request begins after one of them a slot", async () => {
    const endless = (maxTokens: number): RequestInit =>
      json({ model: "local", prompt: "<|script:endless|>", max_tokens: maxTokens, stream: true });
    const leaving = new AbortController();
    let busy = 0;
    for (let i = 0; i < 2; i++) {
      const init = { ...endless(4000), signal: leaving.signal };
      let isFirst = true;
      void ask("/v1/completions", alice.key, init, () => {
        if (isFirst) busy++;
        isFirst = false;
      }).catch(() => {});
    }
    await until(() => busy === 2, "both slots are busy");
    const order: string[] = [];
    const asked = (key: string, name: string): Promise<number> =>
      ask("/v1/completions", key, endless(20), () => {
        if (!order.includes(name)) order.push(name);
      });
    const answers = Array.from({ length: crowd }, (_, at) => asked(alice.key, `alice ${at}`));
    await until(async () => (await queued()) === crowd, "they wait");
    // The key's queue is full, for the key.
    expect(await asked(alice.key, "alice, one more")).toBe(429);
    const other = asked(bob.key, "bob");
    await until(async () => (await queued()) === crowd + 1, "the other one waits, too");
    order.length = 0;
    leaving.abort();
    expect(await Promise.all([other, ...answers])).toEqual(Array(crowd + 1).fill(200));
    expect(order).toHaveLength(crowd + 1);
    expect(order.indexOf("bob")).toBeLessThanOrEqual(2);
  });

  test("threads of a program: the same", async () => {
    const order: string[] = [];
    const asked = (key: string, name: string, content: string): Promise<number> =>
      ask("/v1/chat/completions", key, chat(content, { model: "waits" }), () => void order.push(name));
    const first = asked(alice.key, "first", "wait");
    const answers = Array.from({ length: crowd }, (_, at) => asked(alice.key, `alice ${at}`, "Hello"));
    await until(async () => (await queued()) === crowd, "they wait");
    const other = asked(bob.key, "bob", "Hello");
    await until(async () => (await queued()) === crowd + 1, "the other one waits, too");
    writeFileSync(gate, "");
    await Promise.all([first, other, ...answers]);
    // Answers of one moment may be read in any order, so a few are allowed.
    expect(order.indexOf("bob")).toBeLessThan(10);
  });
});
