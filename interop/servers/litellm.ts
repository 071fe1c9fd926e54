import { writeFileSync } from "node:fs";
import { inPlace, pythonPackages, startServer } from "../place.ts";
import type { RealServer } from "./server.ts";

const packages = pythonPackages("litellm");

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
    const url = `http://127.0.0.1:${port}`;
    const config = inPlace("litellm", "config.yaml");
    if (!upstream) throw new Error("LiteLLM serves the model of another server.");
    const { url: base, model, contextSize } = upstream;
    const parameters = { model: `openai/${model}`, api_base: `${base}/v1`, api_key: "none" };
    const models = [{ model_name: "m", litellm_params: parameters }];
    // One wrong request of a client, such as one with an unknown model, makes it refuse everybody's for seconds ("No deployments available").
    const router = { disable_cooldowns: true };
    // JSON is YAML.
    writeFileSync(config, JSON.stringify({ model_list: models, router_settings: router }));
    const args = ["--config", config, "--host", "127.0.0.1", "--port", String(port)];
    const env = {
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true",
    };
    const ready = `${url}/health/liveliness`;
    const running = await startServer(packages.program("litellm"), args, { env, ready, log: "litellm.log" });
    return { url, model: "m", contextSize, stop: running.stop };
  },
};
