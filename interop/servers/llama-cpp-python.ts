import { resolve } from "node:path";
import { pythonPackages, startServer } from "../place.ts";
import type { RealServer, StartedServer } from "./server.ts";

const packages = pythonPackages("llama-cpp-python");

/** The server of llama-cpp-python, which has no wheel for Linux in the Python package index: llama.cpp is compiled. */
export const llamaCppPython: RealServer = {
  id: "llama-cpp-python",
  name: "llama-cpp-python",
  from: "pip llama-cpp-python[server]",
  apis: ["chat"],
  version: () => packages.version("llama-cpp-python"),
  install() {
    // For this processor's own instructions, GCC 12 compiles AMX so that the first request ends the server with a general protection fault.
    process.env["CMAKE_ARGS"] ??= "-DGGML_NATIVE=OFF";
    return packages.install("llama-cpp-python[server]==0.3.36");
  },
  start: (port) =>
    startLlamaCppPython(port, { file: resolve("models/demo/demo.gguf"), model: "demo", contextSize: 2048, threads: 1 }),
};

interface PythonModel {
  readonly file: string;
  readonly model: string;
  readonly contextSize: number;
  readonly threads: number;
}

/** Starts llama-cpp-python's server with the model of a file. */
export async function startLlamaCppPython(
  port: number,
  { file, model, contextSize, threads }: PythonModel,
): Promise<StartedServer & { readonly pid: number }> {
  const url = `http://127.0.0.1:${port}`;
  const args = ["-m", "llama_cpp.server", "--model", file, "--model_alias", model];
  args.push(
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--n_ctx",
    String(contextSize),
    "--n_threads",
    String(threads),
  );
  const ready = `${url}/v1/models`;
  const running = await startServer(packages.program("python"), args, { ready, log: "llama-cpp-python.log" });
  return { url, model, contextSize, ...running };
}
