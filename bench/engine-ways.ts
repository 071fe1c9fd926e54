import { resolve } from "node:path";
import { Agent, request } from "undici";
import { freePort } from "../interop/place.ts";
import { startLlamaCppPython, llamaCppPython } from "../interop/servers/llama-cpp-python.ts";
import { ollama, startOllama } from "../interop/servers/ollama.ts";
import { openLlamaEngine } from "../src/engines/llama/llama-engine.ts";
import { startTruewire } from "../test/support/serve.ts";
import { withChildren } from "./gateway/process-usage.ts";
import { startLlamaServer } from "./llama-server.ts";

export interface Generated {
  readonly tokens: number;
  readonly promptTokens: number;
  readonly firstTokenMs: number;
}

let prompts = 0;

/** Returns a prompt of about `length` tokens, which begins like no other: digits are a token each for most models. */
export function newPrompt(length: number): string {
  return String(++prompts).padEnd(length, "31415926535897932384626433832795028841971");
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

interface PeerOptions extends WayOptions {
  /** Further arguments of llama-server. */
  readonly more?: readonly string[];
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
      let [count, promptTokens] = [0, 0];
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
        for (const event of batch)
          if (event.type === "usage") ({ completionTokens: count, promptTokens } = event.usage);
      }
      return { tokens: count, promptTokens, firstTokenMs };
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
  return overHttp(server.url, server.process.pid ?? 0, async () => {
    await server.stop();
    process.off("exit", kill);
  });
}

/** Servers of others, by the names of `npm run interop -- install`, which installs all but llama-server. */
export const peers: Readonly<Record<string, (options: PeerOptions) => Promise<HttpWay | null>>> = {
  "llama-server": llamaServerWay,
  async ollama({ model, slots, contextSize, threads }) {
    if (ollama.version() === undefined) return null;
    const server = await startOllama(await freePort(), {
      file: resolve(model),
      model: "bench",
      slots,
      contextSize,
      threads,
    });
    return overHttp(server.url, server.pid, server.stop);
  },
  async "llama-cpp-python"({ model, contextSize, threads }) {
    if (llamaCppPython.version() === undefined) return null;
    const server = await startLlamaCppPython(await freePort(), {
      file: resolve(model),
      model: "bench",
      contextSize,
      threads,
    });
    return overHttp(server.url, server.pid, server.stop);
  },
};

/** llama.cpp's own server; null: it is not there. */
export async function llamaServerWay(options: PeerOptions): Promise<HttpWay | null> {
  const server = await startLlamaServer(options);
  return server && overHttp(server.url, server.pid, () => server.stop());
}

function overHttp(url: string, pid: number, stop: () => Promise<void>): HttpWay {
  const dispatcher = new Agent({ connections: 64 });
  return {
    url,
    get processes() {
      return withChildren(pid);
    },
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
      let chunks = 0;
      for await (const chunk of body) {
        const text = String(chunk);
        // Comments keep the connection alive during a long prompt.
        if (Number.isNaN(firstTokenMs) && text.includes("data:")) firstTokenMs = performance.now() - started;
        last = (last + text).slice(-4000);
        chunks += text.split("data: {").length - 1;
      }
      // Ollama's chunk before the last one has counts of zero.
      const counted = (name: string): number => Number(last.slice(last.lastIndexOf(`"${name}"`)).match(/\d+/)?.[0]);
      // llama-cpp-python counts nothing in a stream, and Ollama not always: a chunk for each token, and one for the finish reason.
      const reported = last.includes('"completion_tokens"') ? counted("completion_tokens") : 0;
      const count = reported > 0 ? reported : chunks - 1;
      if (statusCode !== 200 || count < 1) throw new Error(`The server answered ${statusCode}: ${last}`);
      const promptTokens = last.includes('"prompt_tokens"') ? counted("prompt_tokens") : 0;
      return { tokens: count, promptTokens, firstTokenMs };
    },
    async close() {
      await dispatcher.close();
      await stop();
    },
  };
}
