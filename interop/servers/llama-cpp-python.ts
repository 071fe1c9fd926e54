import { resolve } from "node:path";
import { pythonPackages, startServer } from "../place.ts";
import type { RealServer } from "./server.ts";

const packages = pythonPackages("llama-cpp-python");
const model = "demo";

/** The server of llama-cpp-python, which has no wheel for Linux in the Python package index: llama.cpp is compiled. */
export const llamaCppPython: RealServer = {
  id: "llama-cpp-python",
  name: "llama-cpp-python",
  from: "pip llama-cpp-python[server]",
  apis: ["chat"],
  version: () => packages.version("llama-cpp-python"),
  install: () => packages.install("llama-cpp-python[server]==0.3.36"),
  async start(port) {
    const url = `http://127.0.0.1:${port}`;
    const args = ["-m", "llama_cpp.server", "--model", resolve("models/demo/demo.gguf"), "--model_alias", model];
    args.push("--host", "127.0.0.1", "--port", String(port), "--n_ctx", "2048", "--n_threads", "1");
    const ready = `${url}/v1/models`;
    const running = await startServer(packages.program("python"), args, { ready, log: "llama-cpp-python.log" });
    return { url, model, contextSize: 2048, stop: running.stop };
  },
};
