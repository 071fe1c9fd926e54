import colors from "picocolors";
import { existsSync, readdirSync } from "node:fs";
import { ConfigError } from "../config/config-error.ts";
import type { LocalModel, ModelEntry, TruewireConfig } from "../config/config.ts";
import { noModels, readConfigFile } from "../config/read-config-file.ts";
import { parseConfig } from "../config/schema.ts";
import { modelOfTarget } from "../config/target.ts";
import { createServer, type ServerOptions, type TruewireServer } from "../app/create-server.ts";
import { outliveReaders, reportRejections, workerCount } from "../app/processes.ts";
import { openProgressLine } from "./progress-line.ts";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { ModelInfo } from "../core/engine.ts";
import { spawn } from "node:child_process";

type Options = Readonly<Record<string, unknown>>;

/** Which options belong to the models, and to which kinds of them; all others are the server's. */
const modelOptions: Readonly<Record<string, readonly ModelEntry["kind"][]>> = {
  contextSize: ["local"],
  slots: ["local"],
  threads: ["local", "program"],
  gpu: ["local"],
  splitMode: ["local"],
  tensorSplit: ["local"],
  mainGpu: ["local"],
  flashAttention: ["local"],
  cacheTypeK: ["local"],
  cacheTypeV: ["local"],
  cacheMemory: ["local"],
  keepCache: ["local"],
  lora: ["local"],
  batchSize: ["local"],
  queueLimit: ["local"],
  pooling: ["local"],
  load: ["local"],
  idleUnload: ["local"],
  speculation: ["local"],
  constrainCalls: ["local"],
  chatTemplate: ["local"],
  toolFormat: ["local", "upstream", "program"],
  key: ["upstream"],
  model: ["upstream"],
  watch: ["program"],
  showErrors: ["program"],
};

/** A setting of a model from its option: those that may be given several times have other names there. */
function settingOf([name, value]: readonly [string, unknown]): readonly [string, unknown] {
  if (name === "model") return ["models", value];
  return name === "lora" ? ["adapters", (value as readonly string[]).map((path) => ({ path }))] : [name, value];
}

/** Serves until a signal stops it. Throws an error of one sentence when it cannot start. */
export async function serve(targets: readonly string[], options: Options): Promise<void> {
  const file = configFile(targets, options);
  const config = await configuration(targets, options, file);
  const bar = process.stderr.isTTY ? openProgressLine(process.stderr) : undefined;
  let server: TruewireServer;
  try {
    server = await openServer(config, {
      ...(bar && {
        onProgress: (name, { phase, fraction }) =>
          bar.show({ text: `${phase === "load" ? "loading" : "downloading"} ${name}`, fraction }),
      }),
      ...(file !== undefined && { readConfig: () => configuration(targets, options, file) }),
    });
  } catch (error) {
    throw listenError(error, config) ?? withOptionNames(error, options);
  } finally {
    bar?.close();
  }
  const readAgain = async (): Promise<void> => {
    notifySystemd("reloading", "Reading the configuration again");
    try {
      await server.reload(await configuration(targets, options, file));
    } catch (error) {
      console.error(
        `truewire: ${messageOf(error)}\ntruewire: The configuration was not reloaded; nothing has changed.`,
      );
    }
    notifySystemd("ready", statusOf(server));
  };
  reportRejections();
  outliveReaders();
  stopOnSignals(server);
  // Without a listener, the signal would end the process.
  process.on("SIGHUP", () => {
    const { keysFile, tlsCert } = options;
    if (file !== undefined || keysFile !== undefined || tlsCert !== undefined) void readAgain();
    else console.error("truewire: There is no configuration file to read again; nothing has changed.");
  });
  // Last, since a supervisor that reads it may send a signal immediately.
  printReady(server, config, targets.length === 0 && file === undefined);
  notifySystemd("ready", statusOf(server));
}

/** Names the options of the command line, where a configuration is invalid because of their values. */
function withOptionNames(error: unknown, options: Options): unknown {
  if (!(error instanceof ConfigError)) return error;
  const lines = error.problems.map(({ path, message, line }) => {
    const setting = path[0] === "models" ? path[2] : path[0];
    const given = Object.entries(options).find((option) => setting !== undefined && settingOf(option)[0] === setting);
    if (line !== undefined || given === undefined) return undefined;
    return `--${given[0].replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ${String(given[1])}: ${message}`;
  });
  return lines.includes(undefined) ? error : new Error([...new Set(lines)].join("\n"), { cause: error });
}

/** One process, or several that share its port. */
async function openServer(config: TruewireConfig, options: ServerOptions): Promise<TruewireServer> {
  const count = workerCount(parseConfig(config));
  if (count === 1) return createServer(config, options);
  const { createClusteredServer } = await import("../app/clustered-server.ts");
  return createClusteredServer(config, count, options);
}

/** What `systemctl status` shows. */
function statusOf(server: TruewireServer): string {
  const count = server.models().length;
  return `Serving ${count === 1 ? "1 model" : `${count} models`} on ${server.url}`;
}

function configFile(targets: readonly string[], { config }: Options): string | undefined {
  if (typeof config === "string") return config;
  return targets.length === 0 && existsSync("truewire.yaml") ? "truewire.yaml" : undefined;
}

/** The file's configuration, then the options, which win, and the targets, which are added. */
async function configuration(targets: readonly string[], options: Options, file?: string): Promise<TruewireConfig> {
  const fromFile: TruewireConfig = file === undefined ? {} : await readConfigFile(file, process.env);
  const own: TruewireConfig = Object.fromEntries(
    Object.entries(options).filter(([name]) => name !== "config" && !(name in modelOptions)),
  );
  refuseMixedKeys(fromFile, own);
  const models: (string | ModelEntry)[] = [...(fromFile.models ?? [])];
  for (const target of targets) models.push(withOptions(modelOfTarget(target), options));
  if (models.length === 0 && file === undefined) models.push(withOptions(bundledModel(), options));
  if (models.length === 0) throw noModels(file);
  return { ...fromEnvironment(), ...fromFile, ...own, models };
}

/**
 * Throws if the server has keys with limits and the environment holds a key without any. Clients export their key under such a name, too:
 * a server started from that shell would accept the client's key without its limits.
 */
function refuseMixedKeys(fromFile: TruewireConfig, own: TruewireConfig): void {
  const keysFile = own.keysFile ?? fromFile.keysFile;
  if (!process.env.TRUEWIRE_API_KEY || (keysFile === undefined && !fromFile.keys?.length)) return;
  throw new Error(
    `TRUEWIRE_API_KEY is set together with ${keysFile === undefined ? "keys" : "keysFile"}, and would be a key without limits. Unset it (unset TRUEWIRE_API_KEY); clients read their key from OPENAI_API_KEY or ANTHROPIC_API_KEY. For a key without limits, add an entry without limits to the file of keys, or set apiKey in the configuration.`,
  );
}

function fromEnvironment(): TruewireConfig {
  const { TRUEWIRE_API_KEY, TRUEWIRE_ADMIN_KEY, TRUEWIRE_METRICS_KEY } = process.env;
  return {
    ...(TRUEWIRE_API_KEY !== undefined && { apiKey: listed(TRUEWIRE_API_KEY) }),
    ...(TRUEWIRE_ADMIN_KEY !== undefined && { adminKey: listed(TRUEWIRE_ADMIN_KEY) }),
    ...(TRUEWIRE_METRICS_KEY !== undefined && { metricsKey: listed(TRUEWIRE_METRICS_KEY) }),
  };
}

function listed(keys: string): string[] {
  return keys.split(",").filter((key) => key !== "");
}

function withOptions(model: ModelEntry, options: Options): ModelEntry {
  const own = Object.entries(options)
    .filter(([name]) => modelOptions[name]?.includes(model.kind))
    .map(settingOf);
  return { ...model, ...Object.fromEntries(own) };
}

/** The first signal lets running answers finish; the second exits at once. */
function stopOnSignals(server: TruewireServer): void {
  let stopping = false;
  const stop = (): void => {
    if (stopping) process.exit(1);
    stopping = true;
    notifySystemd("stopping", "Waiting for running answers");
    server.close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(`truewire: ${messageOf(error)}`);
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", stop).on("SIGINT", stop);
}

/** A sentence for an error of the system when it cannot listen; undefined for other errors. */
function listenError(error: unknown, { host = "127.0.0.1", port = 8080 }: TruewireConfig): Error | undefined {
  // A worker's address is bound by its primary process.
  const isListening = ["listen", "bind"].includes((error as NodeJS.ErrnoException).syscall ?? "");
  if (!(error instanceof Error) || !isListening) return undefined;
  const sentences: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} on ${host} is in use by another program; choose another one with --port.`,
    EACCES: `Listening on port ${port} is not permitted; choose one from 1024 on with --port.`,
    EADDRNOTAVAIL: `This machine has no address ${host}; choose another one with --host.`,
  };
  const sentence = sentences[(error as NodeJS.ErrnoException).code ?? ""];
  return sentence === undefined ? undefined : new Error(sentence, { cause: error });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The demo model that comes with the package. Throws when this installation has none. */
export function bundledModel(): LocalModel {
  const folder = join(dirname(createRequire(import.meta.url).resolve("truewire/package.json")), "models/demo");
  const file = existsSync(folder) ? readdirSync(folder).find((name) => name.endsWith(".gguf")) : undefined;
  if (file === undefined) {
    throw new Error("This installation has no demo model. Name what to serve, for example: truewire serve model.gguf");
  }
  // A model of this size often does not end its strings or its reasoning.
  return {
    kind: "local",
    path: join(folder, file),
    name: "demo",
    defaults: { maxStringTokens: 100, maxReasoningTokens: 200 },
  };
}

/** The most names that are printed; an upstream may have hundreds. */
const maxNames = 8;

/** Prints the address of the API, the served models and a curl line to try. */
export function printReady(server: TruewireServer, config: TruewireConfig, demo: boolean): void {
  const models = server.models();
  const [first] = models;
  const names = models.slice(0, maxNames).map(({ id }) => id);
  if (models.length > maxNames) names.push(`and ${models.length - maxNames} more`);
  // The key itself is not printed: what is printed may be kept.
  const { apiKey = [], keys = [], keysFile } = config;
  const withKey = apiKey.length > 0 || keys.length > 0 || keysFile !== undefined;
  const key = withKey ? ' -H "Authorization: Bearer $OPENAI_API_KEY"' : "";
  const lines = [
    ...(demo ? ["No model was named, so this serves the bundled demo model, a small one for trying things out."] : []),
    `${colors.bold(`${server.url}/v1`)} serves the OpenAI API. ${first ? `${models.length === 1 ? "Model" : "Models"}: ${names.join(", ")}` : "No upstream answers yet; their models are taken in when they do."}`,
  ];
  if (first) {
    const [path, body] = exampleOf(first);
    lines.push(
      withKey ? "Try it, with your key in OPENAI_API_KEY:" : "Try it:",
      `  curl -N ${server.url}/v1/${path}${key} -H "Content-Type: application/json" -d ${shellQuoted(JSON.stringify(body))}`,
    );
  }
  console.log(lines.join("\n"));
}

/** A request that the model answers: its path, and its body. */
function exampleOf({ id: model, endpoints }: ModelInfo): readonly [path: string, body: object] {
  if (endpoints.includes("chat"))
    return ["chat/completions", { model, stream: true, messages: [{ role: "user", content: "Hello!" }] }];
  if (endpoints.includes("completions")) return ["completions", { model, stream: true, prompt: "Hello" }];
  if (endpoints.includes("embeddings")) return ["embeddings", { model, input: "Hello" }];
  return ["rerank", { model, query: "What is it?", documents: ["A cat.", "A stone."] }];
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Reports the server's state to systemd if it asks for it (`Type=notify`). Node cannot open datagram sockets of the file system, so this
 * runs `systemd-notify`; where that is missing, the start ends with systemd's time-out. Source: sd_notify(3), systemd-notify(1).
 */
export function notifySystemd(state: "ready" | "reloading" | "stopping", status: string): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  const command = spawn("systemd-notify", [`${state.toUpperCase()}=1`, `MAINPID=${process.pid}`, `STATUS=${status}`], {
    stdio: "ignore",
  });
  command.on("error", (error) => console.error(`truewire: systemd-notify cannot be run: ${error.message}`));
  command.unref();
}
