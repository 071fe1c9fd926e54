import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NativeContext } from "../../src/engines/llama/process/c-api/native-context.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { memoryOf } from "../support/processes.ts";
import { openProgrammed } from "./local-engine.ts";
import { openNativeModel } from "./native-model.ts";
import { isNightly, times } from "../support/runs.ts";

/** How many requests are made. */
const count = times(600);

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
const path = join(folder, "programmed.gguf");
beforeAll(() => {
  writeProgrammedModel(path);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isLinux = process.platform === "linux";
if (!isLinux) console.log("skipped: what a process holds is read from /proc");

/** What a process holds, in MiB: native memory with JavaScript's. */
function held(pid: number): number {
  return memoryOf(pid).now;
}

test.skipIf(!isLinux)("a model that is opened and closed fifty times leaves no memory taken", () => {
  const openAndClose = (): void => {
    const model = openNativeModel(path);
    // From larger ones the C library keeps pieces of what is given back: aligned blocks leave gaps in its heap.
    const shape = { capacity: 256, sequences: 1, batchSize: 64, maxOutputs: 4, threads: 1, unifiedKv: true } as const;
    const context = new NativeContext(model, { ...shape, flashAttention: "auto" });
    context.batch.add(65, 0, 0, true);
    context.decode();
    context.logits(0);
    context.free();
    model.free();
  };
  for (let warm = 0; warm < 10; warm++) openAndClose();
  const before = held(process.pid);
  for (let round = 0; round < 50; round++) openAndClose();
  const grown = held(process.pid) - before;
  if (isNightly) console.log(`50 openings: ${grown.toFixed(1)} MiB more than after 10`);
  // Fifty models would be 100. What JavaScript has not collected yet is among it.
  expect(grown).toBeLessThan(60);
});

/** What makes and frees something of its own in llama.cpp. */
const kinds: readonly ((number: number) => Partial<GenerationRequest>)[] = [
  () => ({ sampling: { temperature: 1, topP: 0.9, minP: 0.05, presencePenalty: 0.5, seed: 7 } }),
  () => ({ logprobs: { top: 5 }, sampling: { temperature: 0 } }),
  () => ({ sampling: { temperature: 0, logitBias: { 65: -5 } }, n: 3 }),
  () => ({ output: { type: "regex", pattern: "[a-z ]{3,12}", path: "guided_regex" } }),
  // Each is another grammar.
  (number) => ({ output: { type: "choice", options: [`first ${number}`, `second ${number}`], path: "guided_choice" } }),
  () => ({ output: { type: "json-object" } }),
];

test.skipIf(!isLinux)("requests with grammars, samplers and logprobs leave no memory taken", async () => {
  const local = await openProgrammed({ slots: 8, queueLimit: 100 });
  try {
    const { processId: pid } = local.engine as unknown as { readonly processId: number };
    let made = 0;
    const ask = async (): Promise<void> => {
      const number = made++;
      const kind = kinds[number % kinds.length];
      const { end } = await local.chat(`#plain ${number}`, { limits: { maxTokens: 16 }, ...kind?.(number) });
      expect(end).toEqual({ kind: "done" });
    };
    const run = async (until: number): Promise<void> => {
      const clients = Array.from({ length: 8 }, async () => {
        for (;;) {
          if (made >= until) return;
          await ask();
        }
      });
      await Promise.all(clients);
    };
    const seen: string[] = [];
    await run(count / 2);
    const before = held(pid);
    for (let part = 6; part <= 10; part++) {
      await run((count * part) / 10);
      seen.push(held(pid).toFixed());
    }
    if (isNightly)
      console.log(`${count} requests: ${before.toFixed()} MiB after half of them, then ${seen.join(", ")}`);
    expect(held(pid)).toBeLessThan(before + 48);
  } finally {
    await local.close();
  }
});
