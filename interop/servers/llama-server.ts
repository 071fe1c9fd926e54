import { existsSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { installModel, isInstalled } from "../models.ts";
import { inPlace, pythonPackages, startServer } from "../place.ts";
import type { RealServer, StartedServer } from "./server.ts";

const packages = pythonPackages("llama-server");

/** Starts llama.cpp's HTTP server, which the package has as a function. */
const program = `
import signal, sys
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, port, context, parameters.embedding = *sys.argv[1:4], sys.argv[4] == "embeddings"
parameters.port, parameters.n_ctx, parameters.n_parallel = int(port), int(context), 1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(parameters)
signal.pause()
`;

/** Starts llama.cpp's server with the model of a file, and one slot. */
export async function startLlamaServer(
  file: string,
  port: number,
  contextSize: number,
  { isForEmbeddings = false } = {},
): Promise<StartedServer> {
  const url = `http://127.0.0.1:${port}`;
  const script = inPlace("llama-server", "serve.py");
  writeFileSync(script, program);
  const args = [script, file, String(port), String(contextSize), isForEmbeddings ? "embeddings" : "texts"];
  const ready = `${url}/health`;
  const running = await startServer(packages.program("python"), args, { ready, log: "llama-server.log" });
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { readonly data: readonly { id: string }[] };
  return { url, model: data[0]?.id ?? "", contextSize, stop: running.stop };
}

/** The server of llama.cpp, from a wheel that has it compiled: its own build takes half an hour on two cores. */
export const llamaServer: RealServer = {
  id: "llama-server",
  name: "llama-server",
  from: "pip xllamacpp",
  isQuick: true,
  apis: ["chat", "responses", "messages"],
  // The last number is llama.cpp's build.
  version: () => packages.version("xllamacpp"),
  install: () => packages.install("xllamacpp==2026.10.11549"),
  async start(port) {
    // The model of the repository is enough for what is quick.
    const demo = resolve("models/demo/demo.gguf");
    const model = isInstalled("half") || !existsSync(demo) ? await installModel("half") : demo;
    return startLlamaServer(model, port, 2048);
  },
};
