import { resolve } from "node:path";
import { getLlama, type LlamaContextSequence } from "node-llama-cpp";
import { Agent, request } from "undici";
import { openLlamaEngine } from "../src/engines/llama/open-llama-engine.ts";
import { startTruewire } from "../test/support/serve.ts";
import { childOf } from "./process-cpu.ts";

/** One way to generate text, open on a model. */
export interface Way {
  /** Completes greedily; tells how many tokens came and when the first did. */
  generate(prompt: string, tokens: number): Promise<{ tokens: number; firstTokenMs: number }>;
  /** The process that runs llama.cpp. */
  readonly decodingProcess: number;
  close(): Promise<void>;
}

export interface WayOptions {
  readonly model: string;
  readonly slots: number;
  readonly contextSize: number;
}

/** What the library's documentation shows: each request iterates its own `evaluate()`, batches form as they may. */
export async function naiveWay({ model: modelPath, slots, contextSize }: WayOptions): Promise<Way> {
  const llama = await getLlama({ gpu: false, build: "never", maxThreads: 1, progressLogs: false });
  const model = await llama.loadModel({ modelPath });
  const context = await model.createContext({ sequences: slots, contextSize, batchSize: 512, threads: 1 });
  const free: LlamaContextSequence[] = Array.from({ length: slots }, () => context.getSequence());
  return {
    decodingProcess: process.pid,
    async generate(prompt, tokens) {
      const sequence = free.shift();
      if (!sequence) throw new Error("More streams than slots.");
      await sequence.clearHistory();
      const started = performance.now();
      let count = 0;
      let firstTokenMs = Number.NaN;
      const options = { temperature: 0, yieldEogToken: true };
      for await (const _ of sequence.evaluate(model.tokenize(prompt, true), options)) {
        if (++count === 1) firstTokenMs = performance.now() - started;
        if (count === tokens) break;
      }
      free.push(sequence);
      return { tokens: count, firstTokenMs };
    },
    async close() {
      await context.dispose();
      await model.dispose();
    },
  };
}

/** Truewire's engine, without server. */
export async function directWay({ model, slots, contextSize }: WayOptions): Promise<Way> {
  const engine = await openLlamaEngine({ model, slots, contextSize, threads: 1, gpu: false, batchSize: 512 });
  let requests = 0;
  return {
    decodingProcess: (engine as unknown as { readonly processId: number }).processId,
    async generate(prompt, maxTokens) {
      const started = performance.now();
      let firstTokenMs = Number.NaN;
      let count = 0;
      const generation = engine.generate({
        id: `bench_${++requests}`,
        model: "bench",
        prompt: { kind: "text", prompts: [prompt] },
        sampling: { temperature: 0 },
        limits: { maxTokens },
        wantsUsage: true,
        stream: true,
        extra: {},
      });
      for await (const batch of generation) {
        if (Number.isNaN(firstTokenMs)) firstTokenMs = performance.now() - started;
        for (const event of batch) if (event.type === "usage") count = event.usage.completionTokens;
      }
      return { tokens: count, firstTokenMs };
    },
    close: () => engine.close(0),
  };
}

/**
 * The command line's server, in a process of its own, over HTTP. `warmUp` is a quick model that it serves, too, and has written some
 * thousands of tokens with before this returns: a server's first seconds are spent on compiling its code.
 */
export async function httpWay({
  model,
  slots,
  contextSize,
  warmUp,
}: WayOptions & { readonly warmUp?: string }): Promise<Way & { readonly serverProcess: number }> {
  const numbers = [
    "--slots",
    String(slots),
    "--context-size",
    String(contextSize),
    "--threads",
    "1",
    "--batch-size",
    "512",
  ];
  const models = [`bench=${model}`, ...(warmUp === undefined ? [] : [`quick=${warmUp}`])];
  const server = await startTruewire([...models, "--gpu", "off", "--log-level", "silent", ...numbers], {
    main: resolve(".cache/tools/src/cli/main.js"),
  });
  const dispatcher = new Agent({ connections: slots });
  const serverProcess = server.process.pid ?? 0;
  const generate =
    (name: string): Way["generate"] =>
    async (prompt, maxTokens) => {
      const started = performance.now();
      const { body, statusCode } = await request(`${server.url}/v1/completions`, {
        method: "POST",
        dispatcher,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          model: name,
          prompt,
          max_tokens: maxTokens,
          temperature: 0,
          stream: true,
          stream_options: { include_usage: true },
        }),
      });
      let firstTokenMs = Number.NaN;
      let last = "";
      for await (const chunk of body) {
        if (Number.isNaN(firstTokenMs)) firstTokenMs = performance.now() - started;
        last = (last + String(chunk)).slice(-2000);
      }
      const count = /"completion_tokens":(\d+)/.exec(last)?.[1];
      if (statusCode !== 200 || count === undefined) throw new Error(`The server answered ${statusCode}: ${last}`);
      return { tokens: Number(count), firstTokenMs };
    };
  const warmUpRounds = warmUp === undefined ? 0 : 40;
  for (let round = 0; round < warmUpRounds; round++)
    await Promise.all(Array.from({ length: slots }, () => generate("quick")("<|script:endless|>", contextSize - 32)));
  return {
    serverProcess,
    decodingProcess: childOf(serverProcess),
    generate: generate("bench"),
    async close() {
      await dispatcher.close();
      await server.stop();
    },
  };
}
