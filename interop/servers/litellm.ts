import { writeFileSync } from "node:fs";
import { inPlace, pythonPackages, startServer } from "../place.ts";
import type { RunningProcess } from "../place.ts";
import type { RealServer } from "./server.ts";

const packages = pythonPackages("litellm");

/**
 * Starts the proxy in front of a server with the API of OpenAI. `name`: how clients call the model `model` of the server; `*` for both are
 * all models.
 */
export function startLitellm(
  port: number,
  {
    base,
    model,
    name,
    vendor = "openai",
  }: { readonly base: string; readonly model: string; readonly name: string; readonly vendor?: string },
): Promise<RunningProcess> {
  const config = inPlace("litellm", "config.yaml");
  const parameters = {
    model: `${vendor}/${model}`,
    api_base: vendor === "openai" ? `${base}/v1` : base,
    api_key: "none",
  };
  const models = [{ model_name: name, litellm_params: parameters }];
  // One wrong request of a client, such as one with an unknown model, makes it refuse everybody's for seconds ("No deployments available").
  const router = { disable_cooldowns: true };
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ model_list: models, router_settings: router }));
  const args = ["--config", config, "--host", "127.0.0.1", "--port", String(port)];
  const env = {
    LITELLM_LOCAL_MODEL_COST_MAP: "True",
    LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true",
  };
  const ready = `http://127.0.0.1:${port}/health/liveliness`;
  return startServer(packages.program("litellm"), args, { env, ready, log: "litellm.log" });
}

export const litellm: RealServer = {
  id: "litellm",
  name: "LiteLLM",
  from: "pip litellm[proxy]",
  over: "demo",
  isQuick: true,
  apis: ["chat", "responses", "messages"],
  version: () => packages.version("litellm"),
  install: () => packages.install("litellm[proxy]==1.108.7"),
  async start(port, upstream) {
    if (!upstream) throw new Error("LiteLLM serves the model of another server.");
    const { url: base, model, contextSize } = upstream;
    const url = `http://127.0.0.1:${port}`;
    const running = await startLitellm(port, { base, model, name: "m" });
    return { url, model: "m", contextSize, stop: running.stop };
  },
};
