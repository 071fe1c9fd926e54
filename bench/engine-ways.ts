import { resolve } from "node:path";
import { Agent, request } from "undici";
import { openLlamaEngine } from "../src/engines/llama/llama-engine.ts";
import { startTruewire } from "../test/support/serve.ts";
import { startLlamaServer } from "./llama-server.ts";
import { childOf } from "./process-cpu.ts";

export interface Generated {
  readonly tokens: number;
  readonly firstTokenMs: number;
}

/** One way to generate text, open on a model. */
export interface Way {
  /** Completes greedily, unless `more` of the request's body says otherwise; tells how many tokens came and when the first did. */
  generate(prompt: string, tokens: number, more?: object): Promise<Generated>;
  /** All that work for it. */
  readonly processes: readonly number[];
  close(): Promise<void>;
}

export interface HttpWay extends Way {
  readonly url: string;
}

export interface WayOptions {
  readonly model: string;
  readonly slots: number;
  readonly contextSize: number;
  readonly threads: number;
}

/** Truewire's engine, without server. */
export async function directWay({ model, slots, contextSize, threads }: WayOptions): Promise<Way> {
  const engine = await openLlamaEngine({ model, slots, contextSize, threads, gpu: "off" });
  let requests = 0;
  return {
    processes: [(engine as unknown as { readonly processId: number }).processId],
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

/** The command line's server, in a process of its own, over HTTP. `more`: further arguments. */
export async function httpWay(
  { model, slots, contextSize, threads }: WayOptions,
  main = ".cache/tools/src/serve/cli/main.js",
  more: readonly string[] = [],
): Promise<HttpWay> {
  const numbers = ["--slots", slots, "--context-size", contextSize, "--threads", threads];
  const server = await startTruewire(
    [`bench=${model}`, "--gpu", "off", "--log-level", "silent", ...numbers.map(String), ...more],
    { main: resolve(main) },
  );
  const kill = (): void => void server.process.kill("SIGKILL");
  process.once("exit", kill);
  const pid = server.process.pid ?? 0;
  return overHttp(server.url, [pid, childOf(pid)], async () => {
    await server.stop();
    process.off("exit", kill);
  });
}

/** llama.cpp's own server; null: it is not there. */
export async function llamaServerWay(
  options: WayOptions & { readonly more?: readonly string[] },
): Promise<HttpWay | null> {
  const server = await startLlamaServer(options);
  return server && overHttp(server.url, [server.pid], () => server.stop());
}

function overHttp(url: string, processes: readonly number[], stop: () => Promise<void>): HttpWay {
  const dispatcher = new Agent({ connections: 64 });
  return {
    url,
    processes,
    async generate(prompt, maxTokens, more = {}) {
      const started = performance.now();
      const chat = "messages" in more;
      const { body, statusCode } = await request(`${url}/v1/${chat ? "chat/completions" : "completions"}`, {
        method: "POST",
        dispatcher,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          model: "bench",
          ...(!chat && { prompt }),
          max_tokens: maxTokens,
          temperature: 0,
          stream: true,
          stream_options: { include_usage: true },
          ...more,
        }),
      });
      let firstTokenMs = Number.NaN;
      let last = "";
      for await (const chunk of body) {
        const text = String(chunk);
        // Comments keep the connection alive during a long prompt.
        if (Number.isNaN(firstTokenMs) && text.includes("data:")) firstTokenMs = performance.now() - started;
        last = (last + text).slice(-4000);
      }
      const count = /"completion_tokens":(\d+)/.exec(last)?.[1];
      if (statusCode !== 200 || count === undefined) throw new Error(`The server answered ${statusCode}: ${last}`);
      return { tokens: Number(count), firstTokenMs };
    },
    async close() {
      await dispatcher.close();
      await stop();
    },
  };
}
