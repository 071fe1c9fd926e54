import { existsSync } from "node:fs";
import { ConfigError } from "../config/config-error.ts";
import type { HostedToolsOptions } from "../config/hosted-tools-schema.ts";
import type { LocalModel, ModelEntry } from "../config/model-schema.ts";
import type { TruewireConfig } from "../config/schema.ts";
import { errorInFile, noModels, readConfigFile } from "../config/read-config-file.ts";
import { isServerSetting, parseConfig } from "../config/schema.ts";
import { modelKinds, settingsOfKinds } from "../config/model-schema.ts";
import { isFolder, modelsInFolder } from "../config/folder.ts";
import { modelOfTarget } from "../config/target.ts";
import { libraryFolders } from "../../engines/llama/libraries/library-folders.ts";
import { createServer, type ServerOptions, type TruewireServer } from "../app/create-server.ts";
import { outliveReaders, reportRejections } from "../app/processes.ts";
import { isLoopback } from "../server/origins.ts";
import { bannerOf, lateNoteOf, noteOfFiles, noteOfNode } from "./banner.ts";
import { entriesOf, findServers, usualPorts } from "./discovery.ts";
import type { FoundServer, LateServer } from "./discovery.ts";
import { stopSignals } from "./listen-until-signal.ts";
import { ggufFilesHere, mistakeOfTarget } from "./target-mistakes.ts";
import { openProgressLine } from "./progress-line.ts";
import { createRequire } from "node:module";
import { createServer as createTcpServer } from "node:net";
import { dirname, join } from "node:path";
import { spawn } from "node:child_process";

type Options = Readonly<Record<string, unknown>>;

/** Settings whose options have another name, that of one entry. */
const settingNames: Readonly<Record<string, string>> = {
  model: "models",
  lora: "adapters",
  hostedProgram: "programs",
};

function settingOf(option: string): string {
  return settingNames[option] ?? option;
}

/** Whether an option is a setting of a kind of model; all others are the server's. */
function isFor(kind: ModelEntry["kind"], option: string): boolean {
  return !isServerSetting(option) && settingsOfKinds[kind].has(settingOf(option));
}

/** Options that are no settings of the server. */
const otherOptions: ReadonlySet<string> = new Set([
  "config",
  "discovery",
  "webSearch",
  "webFetch",
  "mcp",
  "hostedProgram",
]);

/** What runs hosted tools, by the options; servers and programs are added to those of the file. Throws an Error for one without a name. */
function hostedToolsFrom(
  { webSearch, webFetch, mcp, hostedProgram }: Options,
  { mcp: servers, programs }: HostedToolsOptions = {},
): HostedToolsOptions {
  const named = (option: string, values: unknown, example: string): Readonly<Record<string, string>> =>
    Object.fromEntries(
      ((values ?? []) as readonly string[]).map((value) => {
        const at = value.indexOf("=");
        if (at < 1) throw new Error(`${option} ${value}: expected a name and what it means, such as ${example}.`);
        return [value.slice(0, at), value.slice(at + 1)];
      }),
    );
  const key = webSearch === "brave" || webSearch === "tavily" ? process.env[`${webSearch.toUpperCase()}_API_KEY`] : "";
  return {
    ...(typeof webSearch === "string" && {
      webSearch: key ? { engine: webSearch as "brave" | "tavily", key } : webSearch,
    }),
    ...(webFetch === true && { webFetch }),
    ...(mcp !== undefined && { mcp: { ...servers, ...named("--mcp", mcp, "docs=./server.js") } }),
    ...(hostedProgram !== undefined && {
      programs: { ...programs, ...named("--hosted-program", hostedProgram, "code_interpreter=./run.ts") },
    }),
  };
}

/** That of the configuration, where it names none. */
const usualPort = 8080;

/** How `serve` looks for the servers of this machine. */
export interface DiscoveryOptions {
  readonly ports?: readonly number[];
  /**
   * How much longer the start may take because of other servers, in milliseconds: half of it to find them, half of it to read their models.
   * Default 300.
   */
  readonly limitMs?: number;
  /** The port to listen on if the configuration names no port; default 8080. */
  readonly defaultPort?: number;
}

/** Serves until a signal stops it. Throws an error of one sentence when it cannot start. */
export async function serve(
  targets: readonly string[],
  options: Options,
  { ports = usualPorts, limitMs = 300, defaultPort = usualPort }: DiscoveryOptions = {},
): Promise<void> {
  const isLaunched = process.env.TRUEWIRE_LAUNCH !== undefined && process.send !== undefined;
  if (isLaunched) {
    // `truewire launch` has ended, perhaps without a chance to stop its server.
    // Windows has no signal that a process may handle; before there is a listener, nothing is to be finished.
    const end = (): void => void (process.emit("SIGTERM", "SIGTERM") || process.exit());
    process.once("disconnect", end).channel?.unref();
    if (!process.connected) end();
  }
  const file = configFile(targets, options);
  const looks = looksForServers(targets, options, file);
  const ofMachine = looks ? await findServers(limitMs / 2, ports) : { found: [], late: [] };
  const { late } = ofMachine;
  const found: FoundServer[] = [...ofMachine.found];
  let hasLibraries = true;
  const read = (): Promise<TruewireConfig> => configuration(targets, options, file, { found, hasLibraries });
  let config = await read();
  if (libraryFolders(false).length === 0 && config.models?.some(needsLibraries)) {
    const { offerLibraries } = await import("./libraries-action.ts");
    hasLibraries = await offerLibraries();
    config = await read();
  }
  let otherPort: Pick<TruewireConfig, "port"> = {};
  const bar = process.stderr.isTTY ? openProgressLine(process.stderr) : undefined;
  let server: TruewireServer;
  try {
    otherPort = await freePort([...found, ...late], config, defaultPort);
    config = { ...config, ...otherPort };
    const mistakes = targets.map(mistakeOfTarget).filter((mistake) => mistake !== undefined);
    // Options with wrong values are reported first.
    if (mistakes.length > 0 && parseConfig(config)) throw new Error(mistakes.join("\n"));
    server = await openServer(config, {
      ...(found.length + late.length > 0 && { upstreamPatienceMs: limitMs / 2 }),
      ...(bar && {
        onProgress: (name, { phase, fraction }) =>
          bar.show({ text: `${phase === "load" ? "loading" : "downloading"} ${name}`, fraction }),
      }),
      ...(file !== undefined && { readConfig: read }),
    });
  } catch (error) {
    throw listenError(error, config, found) ?? (await withPlaces(error, options, file));
  } finally {
    bar?.close();
  }
  const readAgain = async (): Promise<void> => {
    notifySystemd("reloading", "Reading the configuration again");
    try {
      await server.reload({ ...(await read()), ...otherPort });
    } catch (error) {
      console.error(
        `truewire: ${messageOf(await withPlaces(error, options, file))}\ntruewire: The configuration was not reloaded; nothing has changed.`,
      );
    }
    notifySystemd("ready", statusOf(server));
  };
  reportRejections();
  outliveReaders();
  stopOnSignals(server);
  // Without a listener, the signal would end the process.
  if (!stopSignals(process.platform).includes("SIGHUP"))
    process.on("SIGHUP", () => {
      const { keysFile, tlsCert } = options;
      if (file !== undefined || keysFile !== undefined || tlsCert !== undefined) void readAgain();
      else console.error("truewire: There is no configuration file to read again; nothing has changed.");
    });
  // Last, since a supervisor that reads it may send a signal immediately.
  console.log(
    bannerOf(server, config, targets.length === 0 && file === undefined, found, late, [
      ...noteOfPort(found, otherPort, defaultPort),
      ...(looks ? noteOfFiles(ggufFilesHere()) : []),
      ...noteOfNode(process.versions.node),
      ...(hasLibraries ? [] : ["Local models need llama.cpp's libraries: truewire libraries install"]),
    ]),
  );
  for (const one of late)
    void one.server.then(async (foundLate) => {
      if (!foundLate) return;
      found.push(foundLate);
      try {
        if (foundLate.state === "open") await server.reload({ ...(await read()), ...otherPort });
        console.log(lateNoteOf(foundLate, server.models()).join("\n"));
      } catch (error) {
        console.error(`truewire: ${messageOf(error)}`);
      }
    });
  notifySystemd("ready", statusOf(server));
  if (isLaunched) process.send?.(server.url);
}

function needsLibraries(model: string | ModelEntry): boolean {
  const entry = typeof model === "string" ? modelOfTarget(model) : model;
  return entry.kind === "local" && entry.llamaLibraries === undefined;
}

/** Options whose values are, or contain, secrets: they are not printed. */
const secretOptions: ReadonlySet<string> = new Set([
  "apiKey",
  "adminKey",
  "metricsKey",
  "key",
  "store",
  "sharedLimits",
  "mcp",
]);

/**
 * Whether the servers of this machine are served: where nothing else was named. Not if other machines may connect, as they are for this
 * machine only, too.
 */
function looksForServers(targets: readonly string[], { discovery, host }: Options, file: string | undefined): boolean {
  const isForThisMachine = typeof host !== "string" || isLoopback(host);
  return targets.length === 0 && file === undefined && discovery !== false && isForThisMachine;
}

/** The next free port, if the default one is that of a server that was found; nothing if it is not. */
async function freePort(
  servers: readonly (FoundServer | LateServer)[],
  { host = "127.0.0.1", port }: TruewireConfig,
  defaultPort: number,
): Promise<TruewireConfig> {
  if (port !== undefined) return {};
  const holder = servers.find((server) => server.port === defaultPort);
  // A port that has neither refused nor answered may be free: no program may have it.
  const taken =
    holder !== undefined && ("state" in holder ? holder.state !== "truewire" : !(await isFree(defaultPort, host)));
  if (!taken) return defaultPort === usualPort ? {} : { port: defaultPort };
  for (let next = defaultPort + 1; next <= defaultPort + 20; next++)
    if (await isFree(next, host)) return { port: next };
  return { port: 0 };
}

function noteOfPort(
  found: readonly FoundServer[],
  { port }: Pick<TruewireConfig, "port">,
  defaultPort: number,
): readonly string[] {
  const holder = found.find((server) => server.port === defaultPort);
  if (!holder || port === undefined || port === defaultPort) return [];
  return [`Port ${defaultPort} is in use by ${holder.product}, so this is another one; choose it with --port.`];
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createTcpServer()
      .once("error", () => resolve(false))
      .listen(port, host, () => probe.close(() => resolve(true)));
  });
}

/** Names the options of the command line, or the lines of the file, if a configuration is invalid because of their values. */
async function withPlaces(error: unknown, options: Options, file: string | undefined): Promise<unknown> {
  if (!(error instanceof ConfigError)) return error;
  const lines = error.problems.map(({ path, message, line }) => {
    const setting = path[0] === "models" ? path[2] : path[0] === "hostedTools" ? path[1] : path[0];
    const given = Object.entries(options).find((option) => setting !== undefined && settingOf(option[0]) === setting);
    if (line !== undefined || given === undefined) return undefined;
    const [name, value] = given;
    const option = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return `${option}${secretOptions.has(name) ? "" : ` ${String(value)}`}: ${message}`;
  });
  if (!lines.includes(undefined)) return new Error([...new Set(lines)].join("\n"), { cause: error });
  const isPlaced = file === undefined || error.problems.some(({ line }) => line !== undefined);
  return isPlaced ? error : errorInFile(error, file, process.env);
}

/** One process, or several that share its port. */
async function openServer(config: TruewireConfig, options: ServerOptions): Promise<TruewireServer> {
  if (parseConfig(config).workers === 1) return createServer(config, options);
  const { createWorkers } = await import("../app/workers.ts");
  return createWorkers(config, options);
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
async function configuration(
  targets: readonly string[],
  options: Options,
  file: string | undefined,
  { found, hasLibraries }: { readonly found: readonly FoundServer[]; readonly hasLibraries: boolean },
): Promise<TruewireConfig> {
  const fromFile: TruewireConfig = file === undefined ? {} : await readConfigFile(file, process.env);
  const own: TruewireConfig = Object.fromEntries(
    Object.entries(options).filter(
      ([name]) => !otherOptions.has(name) && !modelKinds.some((kind) => isFor(kind, name)),
    ),
  );
  refuseMixedKeys(fromFile, own);
  const models: (string | ModelEntry)[] = [...(fromFile.models ?? [])];
  for (const target of targets) {
    const named = isFolder(target) ? modelsInFolder(target) : [modelOfTarget(target)];
    models.push(...named.map((model) => withOptions(model, options)));
  }
  // Options for upstreams, such as a key, are not meant for servers that were found.
  if (models.length === 0 && file === undefined) {
    // The first model is the one that the page begins with.
    models.push(...entriesOf(found));
    if (hasLibraries || models.length === 0) models.push(withOptions(bundledModel(), options));
  }
  if (models.length === 0) throw noModels(file);
  const hostedTools = { ...fromFile.hostedTools, ...hostedToolsFrom(options, fromFile.hostedTools) };
  return { ...fromEnvironment(), ...fromFile, ...own, hostedTools, models };
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
  const { TRUEWIRE_API_KEY, TRUEWIRE_ADMIN_KEY, TRUEWIRE_METRICS_KEY, TRUEWIRE_SESSION_KEY } = process.env;
  return {
    ...(TRUEWIRE_API_KEY !== undefined && { apiKey: listed(TRUEWIRE_API_KEY) }),
    ...(TRUEWIRE_ADMIN_KEY !== undefined && { adminKey: listed(TRUEWIRE_ADMIN_KEY) }),
    ...(TRUEWIRE_METRICS_KEY !== undefined && { metricsKey: listed(TRUEWIRE_METRICS_KEY) }),
    ...(TRUEWIRE_SESSION_KEY !== undefined && { sessionKey: TRUEWIRE_SESSION_KEY }),
  };
}

function listed(keys: string): string[] {
  return keys.split(",").filter((key) => key !== "");
}

function withOptions(model: ModelEntry, options: Options): ModelEntry {
  const own = Object.entries(options)
    .filter(([name]) => isFor(model.kind, name))
    .map(([name, value]) => [
      settingOf(name),
      name === "lora" ? (value as readonly string[]).map((path) => ({ path })) : value,
    ]);
  return { ...model, ...Object.fromEntries(own) };
}

/** The first signal lets running answers finish; the second exits immediately. */
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
  for (const signal of stopSignals(process.platform)) process.on(signal, stop);
}

/** A sentence for an error of the system when it cannot listen; undefined for other errors. */
function listenError(
  error: unknown,
  { host = "127.0.0.1", port = usualPort }: TruewireConfig,
  found: readonly FoundServer[],
): Error | undefined {
  // A worker's address is bound by its parent process.
  const isListening = ["listen", "bind"].includes((error as NodeJS.ErrnoException).syscall ?? "");
  if (!(error instanceof Error) || !isListening) return undefined;
  const sentences: Readonly<Record<string, string>> = {
    EADDRINUSE: found.some((server) => server.state === "truewire" && server.port === Number(port))
      ? `Truewire is already running on http://127.0.0.1:${port}. Start another one with --port.`
      : `Port ${port} on ${host} is in use by another program; choose another one with --port.`,
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
  const path = join(dirname(createRequire(import.meta.url).resolve("truewire/package.json")), "models/demo/demo.gguf");
  if (!existsSync(path)) {
    throw new Error("This installation has no demo model. Name what to serve, for example: truewire serve model.gguf");
  }
  // A model of this size often does not end its strings or its reasoning.
  return {
    kind: "local",
    path,
    name: "demo",
    defaults: { maxStringTokens: 100, maxReasoningTokens: 200 },
  };
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
