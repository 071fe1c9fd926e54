import { knownServer } from "../../wire/apis/adapt/known-servers.ts";
import type { ListedModel } from "../../wire/apis/models/models.ts";
import { isObject, nonEmpty, type JsonObject } from "../../wire/core/json.ts";

/** What a server's own API says about it. */
export interface ServerFacts {
  readonly version?: string;
  /** Tokens of prompt and answer together, as the model is loaded now. */
  readonly contextSize?: number;
}

/** Settings of a server that cure what `truewire doctor` finds. Each is a line that the user can act on. */
export interface Cures {
  /** Tools are refused, or calls stay in the text. */
  readonly tools?: string;
  /** The context is small, or prompts that do not fit are cut. */
  readonly context?: string;
  /** The second of two equal prompts is processed again. */
  readonly cache?: string;
  /** Usage does not say how much of a prompt was in the cache. */
  readonly cacheReport?: string;
  /** The list of models is empty. */
  readonly model?: string;
}

/** A server that people run themselves: how it is recognized, where it listens by default, and its settings. */
export interface KnownServer {
  readonly name: string;
  readonly port?: number;
  /**
   * `owned_by` in its list of models, which says more than the port. Servers with a profile have it there (`apis/adapt/known-servers.ts`).
   */
  readonly owners?: readonly string[];
  /** How the headers begin that it adds to each answer of another server. */
  readonly header?: string;
  /** The version that docs/compatibility.md has. */
  readonly tested?: string;
  /** Paths below the server's root, and what their JSON says; undefined if the answer is not this server's. */
  readonly about: readonly {
    readonly path: string;
    readonly read: (answer: JsonObject, model: string) => ServerFacts | undefined;
  }[];
  readonly cures: Cures;
}

/** Truewire itself. */
export const truewireServer: KnownServer = {
  name: "Truewire",
  owners: ["local", "truewire"],
  about: [{ path: "/health", read: (health) => (isTruewire(health) ? {} : undefined) }],
  cures: {
    tools: "choose a model whose chat template knows tools",
    context: "truewire serve MODEL --context-size 32768",
    model: "truewire serve MODEL.gguf",
  },
};

/** The servers that `truewire` looks for on this machine, and that `truewire doctor` knows. */
export const knownServers: readonly KnownServer[] = [
  {
    name: "Ollama",
    tested: "0.17.4",
    port: 11434,
    // https://docs.ollama.com/api: version, ps (`context_length` is what the model is loaded with).
    about: [
      {
        path: "/api/version",
        read: ({ version }) => (typeof version === "string" ? factsOf({ version }) : undefined),
      },
      {
        path: "/api/ps",
        read(answer, model) {
          const loaded = entryOf(answer["models"], "name", model);
          return loaded && factsOf({ contextSize: loaded["context_length"] });
        },
      },
    ],
    cures: {
      // https://ollama.com/search?c=tools: whether a model takes tools is decided by its template.
      tools: "choose a model that has the capability tools: ollama show MODEL lists it",
      // https://docs.ollama.com/context-length
      context: "OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
      // https://docs.ollama.com/cli
      model: "ollama pull MODEL",
    },
  },
  {
    name: "llama-server",
    tested: "2026.10.11549",
    port: 8080,
    // https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md: GET /props; the same page has the flags.
    about: [
      {
        path: "/props",
        read: ({ build_info: version, default_generation_settings: settings }) =>
          isObject(settings) ? factsOf({ version, contextSize: settings["n_ctx"] }) : undefined,
      },
    ],
    cures: {
      tools: "start llama-server with --jinja",
      context: "start llama-server with -c 32768 (with -np N, slots share it)",
      cache: "start llama-server without --no-cache-prompt, and with fewer slots: -np 1",
      cacheReport: "update llama-server: newer versions report cached tokens",
      model: "start llama-server with -m model.gguf",
    },
  },
  {
    name: "vLLM",
    tested: "0.32.0",
    port: 8000,
    about: [{ path: "/version", read: ({ version }) => factsOf({ version }) }],
    // https://docs.vllm.ai/en/latest/features/tool_calling and https://docs.vllm.ai/en/latest/configuration/serve_args
    cures: {
      tools:
        "start vLLM with --enable-auto-tool-choice --tool-call-parser PARSER (hermes for Qwen, llama3_json, mistral, …)",
      context: "start vLLM with --max-model-len 32768",
      cache: "start vLLM with --enable-prefix-caching",
      cacheReport: "start vLLM with --enable-prompt-tokens-details",
    },
  },
  {
    name: "SGLang",
    port: 30000,
    about: [],
    // https://docs.sglang.io/advanced_features/server_arguments.html
    cures: {
      tools: "start SGLang with --tool-call-parser PARSER (qwen25, llama3, mistral, …)",
      context: "start SGLang with --context-length 32768",
      cache: "start SGLang without --disable-radix-cache",
      cacheReport: "start SGLang with --enable-cache-report",
    },
  },
  {
    name: "LM Studio",
    port: 1234,
    // https://lmstudio.ai/docs/developer/rest/endpoints: GET /api/v0/models
    about: [
      {
        path: "/api/v0/models",
        read: (answer, model) => {
          const entry = entryOf(answer["data"], "id", model);
          return entry && factsOf({ contextSize: entry["loaded_context_length"] });
        },
      },
    ],
    cures: {
      // https://lmstudio.ai/docs/developer/openai-compat/tools
      tools: "choose a model with the badge for tool use, such as one of Qwen",
      // https://lmstudio.ai/docs/cli/local-models/load
      context: "lms unload MODEL && lms load MODEL --context-length 32768",
      model: "lms load MODEL",
    },
  },
  {
    name: "KoboldCpp",
    port: 5001,
    owners: ["koboldcpp"],
    // https://lite.koboldai.net/koboldcpp_api
    about: [
      {
        path: "/api/extra/version",
        read: ({ result, version }) => (result === "KoboldCpp" ? factsOf({ version }) : undefined),
      },
      { path: "/api/extra/true_max_context_length", read: ({ value }) => factsOf({ contextSize: value }) },
    ],
    // https://github.com/LostRuins/koboldcpp/wiki
    cures: {
      tools: "start KoboldCpp with --jinja_tools",
      context: "start KoboldCpp with --contextsize 32768",
    },
  },
  {
    name: "tabbyAPI",
    port: 5000,
    owners: ["tabbyAPI"],
    // https://github.com/theroyallab/tabbyAPI/wiki: GET /v1/model, and the options of config.yml
    about: [
      {
        path: "/v1/model",
        read: ({ parameters }) =>
          isObject(parameters) ? factsOf({ contextSize: parameters["max_seq_len"] }) : undefined,
      },
    ],
    cures: {
      tools: "set model.prompt_template to one that knows tools in tabbyAPI's config.yml",
      context: "set model.max_seq_len: 32768 in tabbyAPI's config.yml",
    },
  },
  // https://docs.litellm.ai/docs/proxy/health: without the gateway's key. Its models have the owner "openai", as those of many servers.
  {
    name: "LiteLLM",
    tested: "1.108.7",
    about: [],
    cures: { context: "set max_input_tokens in the model_info of LiteLLM's configuration, or serve another model" },
  },
  // https://github.com/ogx-ai/ogx: GET /v1/version. Another server runs its models.
  {
    name: "OGX",
    tested: "1.5.0",
    owners: ["ogx"],
    about: [{ path: "/v1/version", read: ({ version }) => factsOf({ version }) }],
    cures: {},
  },
  // https://github.com/Portkey-AI/gateway: RESPONSE_HEADER_KEYS. Its list of models is that of the server that it asks.
  { name: "Portkey", tested: "1.15.2", header: "x-portkey-", about: [], cures: {} },
  // https://github.com/generative-computing/mellea: cli/serve/app.py. It has no list of models; a program answers.
  {
    name: "mellea m serve",
    tested: "0.8.0",
    // Other servers answer with more members: https://datatracker.ietf.org/doc/html/draft-inadarei-api-health-check.
    about: [
      {
        path: "/health",
        read: (answer) => (answer["status"] === "pass" && Object.keys(answer).length === 1 ? {} : undefined),
      },
    ],
    cures: {},
  },
  // https://github.com/huggingface/transformers: src/transformers/cli/serving. It has no settings for these.
  { name: "Transformers serve", tested: "5.19.0", about: [], cures: {} },
  // https://github.com/abetlen/llama-cpp-python: llama_cpp/server/settings.py
  {
    name: "llama-cpp-python",
    tested: "0.3.36",
    about: [],
    cures: { context: "start llama_cpp.server with --n_ctx 32768 (its default is 2048)" },
  },
  // Services: what they can do is not a setting of the user.
  { name: "OpenAI", about: [], cures: {} },
  { name: "DeepSeek", about: [], cures: {} },
  { name: "Mistral", about: [], cures: {} },
  truewireServer,
];

/** Whether an answer to `GET /health` is Truewire's. Truewire also has Ollama's API. */
export function isTruewire(health: unknown): boolean {
  return isObject(health) && isObject(health["slots"]) && Array.isArray(health["engines"]);
}

/** The server at a URL with a model in its list: by its host, the owner of the model in any case of letters, and its time. */
export function serverListing(
  url: string,
  { id, ownedBy, created }: Pick<ListedModel, "id" | "ownedBy" | "created">,
): KnownServer | undefined {
  const wanted = ownedBy?.toLowerCase() ?? "";
  const withProfile = knownServer(url, { id: id.toLowerCase(), ownedBy: wanted, created })?.name;
  return knownServers.find(
    ({ name, owners = [] }) => name === withProfile || owners.some((one) => one.toLowerCase() === wanted),
  );
}

function factsOf({
  version,
  contextSize,
}: {
  readonly version?: unknown;
  readonly contextSize?: unknown;
}): ServerFacts {
  const named = nonEmpty(version)?.slice(0, 40);
  return {
    ...(named !== undefined && { version: named }),
    ...(typeof contextSize === "number" && contextSize > 0 && { contextSize }),
  };
}

/** The entry of a list whose member `name` is `value`. Ollama's names may lack the tag `:latest`. */
function entryOf(list: unknown, name: string, value: string): JsonObject | undefined {
  if (!Array.isArray(list)) return undefined;
  const entries = (list as unknown[]).filter(isObject);
  return entries.find((entry) => entry[name] === value || entry[name] === `${value}:latest`);
}
