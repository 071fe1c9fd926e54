import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { openLlamaEngine as OpenLlamaEngine } from "../../src/engines/llama/llama-engine.ts";
import type { LlamaEngineOptions } from "../../src/engines/llama/options.ts";
import { accumulate, type Generation } from "../../src/wire/core/accumulate.ts";
import type { Engine } from "../../src/wire/core/engine.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { waitMs } from "../support/hang.ts";
import {
  writeProgrammedModel,
  type ProgrammedModel,
  type ProgrammedModelOptions,
} from "../fixtures/programmed-model.ts";

/** The built engine (its process is a compiled module); `TRUEWIRE_DIST` names another build than `npm run build`'s. */
const built = resolve(process.env.TRUEWIRE_DIST ?? "dist", "engines/llama/llama-engine.js");
const { openLlamaEngine } = (await import(pathToFileURL(built).href)) as {
  readonly openLlamaEngine: typeof OpenLlamaEngine;
};

/** Opens as the built package does, with one thread: tests share small machines. */
export function openBuilt(options: LlamaEngineOptions): Promise<Engine> {
  return openLlamaEngine({ threads: 1, gpu: "off", contextSize: 1024, ...options });
}

export interface TestEngine {
  readonly engine: Engine;
  readonly model: ProgrammedModel;
  /** Generates and gathers. */
  ask(request: Partial<GenerationRequest>): Promise<Generation>;
  /** Generates and keeps every event, batch by batch. */
  batches(request: Partial<GenerationRequest>, signal?: AbortSignal): AsyncIterable<readonly GenerationEvent[]>;
  /** Asks `user` in a chat. */
  chat(user: string, request?: Partial<GenerationRequest>): Promise<Generation>;
  /** Completes a prompt. */
  complete(prompt: string, request?: Partial<GenerationRequest>): Promise<Generation>;
  counters(): Readonly<Record<string, number>>;
  /** Resolves when no slot is busy and nothing waits. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

let requests = 0;

/** A request with what the waist requires; the rest as given. */
export function request(over: Partial<GenerationRequest>): GenerationRequest {
  return {
    id: `req_${++requests}`,
    model: "programmed",
    prompt: { kind: "chat", messages: [{ role: "user", content: "Hi" }], template: {} },
    sampling: { temperature: 0 },
    limits: {},
    wantsUsage: true,
    stream: true,
    extra: {},
    ...over,
  };
}

export function chatPrompt(user: string): GenerationRequest["prompt"] {
  return { kind: "chat", messages: [{ role: "user", content: user }], template: {} };
}

/** Opens a programmed model of its own; close it after the test. */
export async function openProgrammed(
  options: Partial<LlamaEngineOptions> = {},
  modelOptions: ProgrammedModelOptions = {},
): Promise<TestEngine> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  const path = join(folder, "programmed.gguf");
  const model = writeProgrammedModel(path, modelOptions);
  const engine = await openBuilt({ model: path, ...options });
  return {
    ...drive(engine),
    model,
    async close() {
      await engine.close(0);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function drive(engine: Engine): Omit<TestEngine, "model" | "close"> {
  const batches = (over: Partial<GenerationRequest>, signal?: AbortSignal) => {
    const generation = engine.generate(request(over))[Symbol.asyncIterator]();
    const leave = (): void => void generation.return?.();
    if (signal?.aborted) leave();
    signal?.addEventListener("abort", leave, { once: true });
    return { [Symbol.asyncIterator]: () => generation };
  };
  const ask = async (over: Partial<GenerationRequest>): Promise<Generation> => {
    const events: GenerationEvent[] = [];
    for await (const batch of batches(over)) events.push(...batch);
    return accumulate(events);
  };
  const counters = (): Readonly<Record<string, number>> => engine.health().counters ?? {};
  return {
    engine,
    batches,
    ask,
    counters,
    chat: (user, over = {}) => ask({ prompt: chatPrompt(user), ...over }),
    complete: (prompt, over = {}) => ask({ prompt: { kind: "text", prompts: [prompt] }, ...over }),
    async idle() {
      await until(() => engine.health().slots?.busy === 0 && engine.health().queued === 0);
    },
  };
}

/** Resolves once `condition` holds; rejects when it hangs. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`Never came true: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
