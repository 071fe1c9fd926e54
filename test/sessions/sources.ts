import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { knownServer } from "../../src/wire/apis/adapt/known-servers.ts";
import { modelFamily } from "../../src/wire/core/turn-state.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { startChat } from "../doubles/chat-server.ts";
import type { Double, Json } from "../doubles/chat-server.ts";
import { deepseek } from "../doubles/deepseek.ts";
import { gemini } from "../doubles/gemini.ts";
import { startGeminiNative } from "../doubles/gemini-native.ts";
import { kimi } from "../doubles/kimi.ts";
import { litellm } from "../doubles/litellm.ts";
import { mistral } from "../doubles/mistral.ts";
import { ollamaNative } from "../doubles/ollama.ts";
import { openrouter } from "../doubles/openrouter.ts";
import { vllm } from "../doubles/vllm.ts";
import { startAnthropicSession, startOpenAiSession } from "../doubles/sessions.ts";

/** A kind of server that sessions run over. */
export interface Source {
  readonly name: string;
  start(): Promise<Double>;
  readonly model: string;
  /** The URL of the real server, or the owner or creation time of its models: what is known of it is known of its double, too. */
  readonly knownAs?: string | number;
  /** Further settings of the upstream. */
  readonly settings?: Json;
}

export const sources: readonly Source[] = [
  {
    name: "Gemini 3",
    start: () => startChat(gemini()),
    model: "gemini-3-pro-preview",
    knownAs: "https://generativelanguage.googleapis.com",
  },
  {
    name: "Gemini 3, its own API",
    start: () => startGeminiNative(),
    model: "gemini-3-pro-preview",
    knownAs: "https://generativelanguage.googleapis.com",
    settings: { api: "gemini" },
  },
  {
    name: "OpenRouter, Gemini 3",
    start: () => startChat(openrouter("google")),
    model: "google/gemini-3-pro-preview",
    knownAs: "https://openrouter.ai",
  },
  {
    name: "OpenRouter, Claude",
    start: () => startChat(openrouter("anthropic")),
    model: "anthropic/claude-sonnet-5",
    knownAs: "https://openrouter.ai",
  },
  { name: "DeepSeek", start: () => startChat(deepseek), model: "deepseek-v4", knownAs: "https://api.deepseek.com" },
  { name: "Kimi", start: () => startChat(kimi), model: "kimi-k2-thinking", knownAs: "https://api.moonshot.ai" },
  { name: "LiteLLM, Claude", start: () => startChat(litellm()), model: "claude-by-litellm", knownAs: 1_677_610_602 },
  {
    name: "Mistral",
    start: () => startChat(mistral),
    model: "magistral-medium-latest",
    knownAs: "https://api.mistral.ai",
  },
  { name: "vLLM", start: () => startChat(vllm), model: "qwen3.5", knownAs: "vllm" },
  { name: "Ollama", start: () => startChat(ollamaNative), model: "qwen3", settings: { api: "ollama" } },
  ...(["A", "B"] as const).flatMap((account): Source[] => [
    {
      name: `OpenAI, account ${account}`,
      start: () => startOpenAiSession(account),
      model: "gpt-5",
      settings: { api: "responses", key: `sk-${account}` },
    },
    {
      name: `Anthropic, account ${account}`,
      start: () => startAnthropicSession(`sk-ant-${account}`),
      model: "claude-opus-4-6",
      settings: { api: "messages", key: `sk-ant-${account}` },
    },
  ]),
];

export interface Running {
  readonly server: RunningTruewire;
  readonly doubles: ReadonlyMap<string, Double>;
  close(): Promise<void>;
}

/** The entry of an upstream in a configuration, with the name of the source as the name of its model. */
export function upstreamEntry({ name, model, knownAs, settings }: Source, url: string | readonly string[]): Json {
  const known = typeof knownAs === "string" ? knownAs : "";
  const profile = knownServer(known, { ownedBy: known, created: Number(knownAs) })?.profile;
  // A configuration says yes or no; the profile names the families of models.
  const { automaticCache: families, ...members } = profile ?? {};
  const automaticCache = Array.isArray(families) ? families.includes(modelFamily(model)) : families;
  const requests = { ...members, ...(automaticCache !== undefined && { automaticCache }) };
  return {
    kind: "upstream",
    name,
    url,
    models: { [name]: model },
    api: "chat",
    requests,
    ...settings,
  };
}

/** `truewire serve` with a configuration. */
export async function serveConfig(config: Json, args: readonly string[] = []): Promise<RunningTruewire> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-sessions-"));
  const file = join(folder, "truewire.yaml");
  writeFileSync(file, stringify({ port: 0, logLevel: "error", ...config }));
  const server = await startTruewire(["--config", file, ...args]);
  return {
    ...server,
    async stop(signal) {
      const code = await server.stop(signal);
      rmSync(folder, { recursive: true, force: true });
      return code;
    },
  };
}

/** Starts a double of each source, and Truewire before them. */
export async function serveSources(chosen: readonly Source[] = sources): Promise<Running> {
  const doubles = new Map<string, Double>();
  for (const source of chosen) doubles.set(source.name, await source.start());
  const models = chosen.map((source) => upstreamEntry(source, doubles.get(source.name)?.url ?? ""));
  const server = await serveConfig({ models });
  return {
    server,
    doubles,
    async close() {
      await server.stop("SIGKILL");
      for (const double of doubles.values()) await double.close();
    },
  };
}
