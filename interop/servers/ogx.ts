import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { inPlace, pythonPackages, startServer } from "../place.ts";
import type { RealServer, StartedServer } from "./server.ts";

/** It needs Python 3.12. */
const packages = pythonPackages("ogx", "python3.12");

function configOf({ url }: StartedServer): unknown {
  const file = (name: string): string => inPlace("ogx", name);
  const table = (name: string, more: object = {}): object => ({ table_name: name, backend: "sql", ...more });
  const builtin = (config: object): object[] => [{ provider_id: "builtin", provider_type: "inline::builtin", config }];
  const queue = { max_write_queue_size: 1000, num_writers: 1 };
  return {
    version: 2,
    distro_name: "interop",
    apis: ["inference", "responses", "messages", "files", "tool_runtime", "vector_io"],
    providers: {
      inference: [
        {
          provider_id: "vllm",
          provider_type: "remote::vllm",
          config: { base_url: `${url}/v1`, max_tokens: 512, api_token: "none" },
        },
      ],
      responses: builtin({ persistence: { responses: table("responses", queue) } }),
      messages: builtin({ kvstore: { namespace: "batches", backend: "kv" } }),
      files: [
        {
          provider_id: "files",
          provider_type: "inline::localfs",
          config: { storage_dir: file("files"), metadata_store: table("files") },
        },
      ],
      tool_runtime: [{ provider_id: "mcp", provider_type: "remote::model-context-protocol" }],
      vector_io: [
        {
          provider_id: "sqlite-vec",
          provider_type: "inline::sqlite-vec",
          config: { db_path: file("vectors.db"), persistence: { namespace: "vectors", backend: "kv" } },
        },
      ],
    },
    storage: {
      backends: {
        kv: { type: "kv_sqlite", db_path: file("kv.db") },
        sql: { type: "sql_sqlite", db_path: file("sql.db") },
      },
      stores: {
        metadata: { namespace: "registry", backend: "kv" },
        inference: table("inference", { ...queue, enabled: true }),
        conversations: table("conversations"),
        prompts: table("prompts"),
        connectors: table("connectors"),
      },
    },
    registered_resources: { models: [], vector_stores: [] },
  };
}

export const ogx: RealServer = {
  id: "ogx",
  name: "OGX",
  from: "pip ogx",
  over: "llama-server",
  apis: ["chat", "responses", "messages"],
  version: () => packages.version("ogx"),
  async install() {
    await packages.install(
      "ogx==1.5.0",
      "sqlite-vec",
      "aiosqlite",
      "sqlalchemy[asyncio]",
      "mcp",
      "openai",
      "chardet",
      "pypdf",
    );
    // It has the encoding of tiktoken that OGX loads from the internet at its start.
    await packages.install("--no-deps", "litellm==1.110.2");
  },
  async start(port, upstream) {
    if (!upstream) throw new Error("OGX serves the model of another server.");
    const url = `http://127.0.0.1:${port}`;
    const config = inPlace("ogx", "config.yaml");
    // JSON is YAML.
    writeFileSync(config, JSON.stringify(configOf(upstream)));
    const args = ["run", "--insecure", "--port", String(port), config];
    const encodings = "lib/python3.12/site-packages/litellm/litellm_core_utils/tokenizers";
    const env = {
      OTEL_SDK_DISABLED: "true",
      DO_NOT_TRACK: "1",
      TIKTOKEN_CACHE_DIR: join(packages.folder, encodings),
    };
    const ready = `${url}/v1/models`;
    const running = await startServer(packages.program("ogx"), args, { env, ready, log: "ogx.log" });
    return { url, model: `vllm/${upstream.model}`, contextSize: upstream.contextSize, stop: running.stop };
  },
};
