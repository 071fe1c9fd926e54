import { startTruewire } from "../../test/support/serve.ts";
import type { RealServer } from "./server.ts";

/** Truewire with the model of the repository: what gateways are put in front of where no other model is installed. */
export const demo: RealServer = {
  id: "demo",
  name: "Truewire",
  from: "this repository",
  apis: ["chat", "responses", "messages"],
  version: () => "this build",
  install: () => Promise.resolve(),
  async start() {
    const { url, stop } = await startTruewire(["models/demo/demo.gguf"]);
    return { url, model: "demo", contextSize: 2048, stop: async (signal) => void (await stop(signal)) };
  },
};
