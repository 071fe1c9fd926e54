import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { modelOfTarget, withScheme } from "../config/target.ts";
import { isObject } from "../../wire/core/json.ts";
import { nearest } from "../../wire/core/nearest.ts";
import { agents, chooseModel, comfortableContext, contextProblem } from "./agents.ts";
import type { Agent, AgentSetup, ChatModel } from "./agents.ts";

export interface LaunchOptions {
  readonly url?: string;
  readonly model?: string;
  readonly apiKey?: string;
  readonly print?: true;
}

/** A server that an agent can use. */
interface AgentServer {
  readonly url: string;
  readonly models: readonly ChatModel[];
  /** The key that the agent sends; undefined: the server needs none. */
  readonly key: string | undefined;
  /** Ends a server that was started for the agent. `keepLog`: the agent failed, perhaps because of the server. */
  stop?(keepLog: boolean): Promise<void>;
}

const usualUrl = "http://127.0.0.1:8080";

/**
 * Starts an agent with settings of its own against a Truewire, and ends as the agent ends: with its exit code, or by its signal. `serveArgs`:
 * targets and options of `truewire serve`; if there are any, or no server runs, one is started and stopped afterwards. Throws an error of
 * one sentence.
 */
export async function launch(
  name: string,
  serveArgs: readonly string[],
  agentArgs: readonly string[],
  options: LaunchOptions,
): Promise<void> {
  const agent = Object.hasOwn(agents, name) ? agents[name] : undefined;
  if (agent === undefined) throw unknownAgent(name);
  const command = options.print ? agent.command : commandOf(agent);
  const givenKey = options.apiKey ?? process.env.TRUEWIRE_API_KEY?.split(",").find((each) => each !== "");
  const server = await findServer(serveArgs, givenKey, options);
  let ended: AgentEnd | undefined;
  try {
    const model = chooseModel(server.models, options.model);
    const cure = largerContext(name, serveArgs, server.stop !== undefined);
    const problem = cure === undefined ? undefined : contextProblem(agent, model, cure);
    if (problem?.isFatal && !options.print) throw new Error(problem.message);
    if (problem !== undefined) console.error(`truewire: ${problem.message}`);
    const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "truewire", "launch", name);
    const setupFor = (ownKey: string): AgentSetup => agent.setup({ ...server, key: ownKey, model, folder });
    const { key } = server;
    if (options.print) {
      // Not the key itself: what is printed may be kept.
      const lines = shellLines(folder, setupFor(key === undefined ? "none" : keyVariable), [command, ...agentArgs]);
      const note = key === undefined ? [] : ["# TRUEWIRE_API_KEY must hold the server's key."];
      console.log([`# ${agent.title} with the model ${model.slug} of ${server.url}`, ...note, ...lines].join("\n"));
      return;
    }
    const setup = setupFor(key ?? "none");
    writeFiles(folder, setup);
    ended = await runAgent(command, [...(setup.args ?? []), ...agentArgs], setup.env);
  } finally {
    await server.stop?.(ended !== undefined && ended.code !== 0);
  }
  // As if the agent had been started without this command.
  if (ended.signal !== null) process.kill(process.pid, ended.signal);
  process.exitCode = ended.code ?? 1;
}

/**
 * What gives an agent a larger context; undefined: programs have none. `isStarted`: the server was started for the agent, with
 * `serveArgs`.
 */
function largerContext(name: string, [target = "-"]: readonly string[], isStarted: boolean): string | undefined {
  const size = `--context-size ${comfortableContext}`;
  const upstream = `give it that context on its own server (Ollama: OLLAMA_CONTEXT_LENGTH=${comfortableContext})`;
  if (!isStarted) return `start the server with ${size}, or ${upstream}`;
  if (target.startsWith("-")) return `serve a model file, truewire launch ${name} model.gguf ${size}, or ${upstream}`;
  const { kind } = modelOfTarget(target);
  if (kind === "program") return undefined;
  return kind === "local" ? `truewire launch ${name} ${target} ${size}` : upstream;
}

function unknownAgent(name: string): Error {
  const meant = nearest(name, Object.keys(agents));
  const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
  return new Error(`launch does not know the agent ${name}.${hint} It knows ${Object.keys(agents).join(", ")}.`);
}

/** Returns the agent's file on the PATH. Throws with the command that installs it. */
function commandOf({ title, command, install }: Agent): string {
  const found = findCommand(command, (process.env.PATH ?? "").split(delimiter), process.platform);
  if (found !== undefined) return found;
  throw new Error(`${title} is not installed: there is no ${command} on the PATH. Install it with ${install}`);
}

/** Finds a command in folders: on Windows a program, or the script for cmd.exe that npm writes. */
export function findCommand(
  command: string,
  folders: readonly string[],
  platform: NodeJS.Platform,
): string | undefined {
  const endings = platform === "win32" ? [".exe", ".cmd"] : [""];
  return folders
    .filter((folder) => folder !== "")
    .flatMap((folder) => endings.map((ending) => join(folder, command + ending)))
    .find((file) => isExecutable(file));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

async function findServer(
  serveArgs: readonly string[],
  key: string | undefined,
  { url: given = process.env.TRUEWIRE_URL, apiKey, print }: LaunchOptions,
): Promise<AgentServer> {
  const startFirst = "--print starts nothing: start the server first, with truewire serve, and name it with --url.";
  if (serveArgs.length > 0) {
    if (given !== undefined)
      throw new Error(`Expected either a running server (--url ${given}) or what to serve, not both.`);
    if (print) throw new Error(startFirst);
    return startServer(serveArgs, key, apiKey);
  }
  const url = withScheme(given ?? usualUrl)
    .replace(/\/+$/, "")
    .replace(/\/v1$/, "");
  if (!URL.canParse(url)) throw new Error(`--url must be the address of a server, such as ${usualUrl}, not ${url}.`);
  // What answers on the usual port may be another program, or another user's: it is asked without the key.
  const sentKey = given === undefined ? undefined : key;
  try {
    return { url, key: sentKey, models: await chatModels(url, sentKey) };
  } catch (error) {
    if (given === undefined && key !== undefined && error instanceof KeyRequired)
      throw new KeyRequired(
        `${url} requires a key. A key is sent only to a server that you name: --url ${url}, or TRUEWIRE_URL=${url}.`,
        { cause: error },
      );
    if (given !== undefined || error instanceof KeyRequired) throw error;
    if (print) throw new Error(startFirst, { cause: error });
    return startServer([], key, apiKey);
  }
}

class KeyRequired extends Error {}

/** Asks for the models in Codex's form, which has the context sizes in each of the server's forms of answers. */
async function chatModels(url: string, key: string | undefined): Promise<readonly ChatModel[]> {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const signal = AbortSignal.timeout(10_000);
  const response = await fetch(`${url}/v1/models?client_version=0`, { headers, signal }).catch((cause: unknown) => {
    throw new Error(`${url} does not answer. Is truewire serve running there? (--url)`, { cause });
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (response.status === 401 || response.status === 403)
    throw new KeyRequired(
      `${url} requires ${key === undefined ? "a key" : "another key"}: --api-key, or TRUEWIRE_API_KEY.`,
    );
  const models = isObject(body) && Array.isArray(body["models"]) ? body["models"].filter(isObject) : [];
  const isTruewire =
    isObject(body) && Array.isArray(body["models"]) && models.every(({ slug }) => typeof slug === "string");
  if (!response.ok || !isTruewire)
    throw new Error(
      `${url} is not a Truewire of this version. To use another server, name it: truewire launch AGENT ${url}/v1`,
    );
  return models as unknown as readonly ChatModel[];
}

/**
 * Runs `truewire serve` on a free port, with its log in a file. It is in a process group of its own, so that Ctrl+C in the agent does not
 * stop it; it ends when this process does.
 */
async function startServer(args: readonly string[], key?: string, givenKey?: string): Promise<AgentServer> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-launch-"));
  const log = join(folder, "server.log");
  const file = openSync(log, "wx", 0o600);
  console.error(`truewire: Starting a server. Its log: ${log}`);
  const env = { ...process.env, TRUEWIRE_LAUNCH: "1", ...(givenKey !== undefined && { TRUEWIRE_API_KEY: givenKey }) };
  const child = spawn(process.execPath, [process.argv[1] ?? "", "serve", "--port", "0", ...args], {
    env,
    stdio: ["ignore", file, file, "ipc"],
    detached: true,
  });
  closeSync(file);
  const exited = once(child, "exit");
  const stop = async (keepLog: boolean): Promise<void> => {
    // The server ends when the channel does; on Windows, a signal would end it in the middle of its answers.
    if (child.connected) child.disconnect();
    else child.kill("SIGTERM");
    await exited;
    if (!keepLog) rmSync(folder, { recursive: true, force: true });
  };
  const [said] = await Promise.race([once(child, "message"), exited]);
  if (typeof said !== "string") {
    const shown = readFileSync(log, "utf8").trim().split("\n").slice(-10).join("\n");
    rmSync(folder, { recursive: true, force: true });
    const hint = args.some((argument) => argument.startsWith("-")) ? " Arguments of the agent follow a --." : "";
    throw new Error(`The server did not start.${hint}\n${shown}`);
  }
  try {
    return { url: said, key, models: await chatModels(said, key), stop };
  } catch (error) {
    await stop(true);
    throw error;
  }
}

function writeFiles(folder: string, { files = {}, firstFiles = {} }: AgentSetup): void {
  for (const path of foldersOf(folder, { files, firstFiles })) mkdirSync(path, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
  for (const [name, text] of Object.entries(firstFiles)) {
    if (!existsSync(join(folder, name))) writeFileSync(join(folder, name), text, { mode: 0o600 });
  }
}

/** The folder of an agent, and those of its files. */
function foldersOf(folder: string, { files, firstFiles }: Pick<AgentSetup, "files" | "firstFiles">): readonly string[] {
  const names = Object.keys({ ...files, ...firstFiles });
  return [...new Set([folder, ...names.map((name) => dirname(join(folder, name)))])];
}

interface AgentEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Runs the agent in this terminal, and passes signals on to it. */
async function runAgent(command: string, args: readonly string[], changes: AgentSetup["env"]): Promise<AgentEnd> {
  // A terminal sends SIGINT to the agent as well.
  const passed = ["SIGTERM", "SIGHUP", "SIGINT"] as const;
  const pass = (signal: NodeJS.Signals): void => {
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  };
  // The package starts scripts of Windows through cmd.exe, and quotes their arguments.
  const { default: crossSpawn } = await import("cross-spawn");
  // Before the agent is started: a signal that came between the two ended this process, and left the agent alone.
  for (const signal of passed) process.on(signal, pass);
  const child = crossSpawn(command, args, { stdio: "inherit", env: changedEnvironment(changes) });
  try {
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    return { code, signal };
  } finally {
    for (const signal of passed) process.off(signal, pass);
  }
}

function changedEnvironment(changes: AgentSetup["env"]): NodeJS.ProcessEnv {
  const env = { ...process.env, ...changes };
  for (const name of Object.keys(env)) if (env[name] === undefined) delete env[name];
  // Agents heed proxies, for this machine as well.
  const proxied = Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name));
  const direct = [env["NO_PROXY"] ?? env["no_proxy"], "127.0.0.1", "localhost"].filter(Boolean).join(",");
  return proxied ? { ...env, NO_PROXY: direct, no_proxy: direct } : env;
}

/** The variable that contains the key in shell lines. */
const keyVariable = "$TRUEWIRE_API_KEY";

/** The lines of a POSIX shell that do what `launch` does. */
export function shellLines(folder: string, setup: AgentSetup, command: readonly string[]): string[] {
  const { env, files = {}, firstFiles = {}, args = [] } = setup;
  const write = ([name, text]: readonly [string, string], always: boolean): string => {
    const file = quoted(join(folder, name));
    return `${always ? "" : `[ -e ${file} ] || `}printf '%s' ${quoted(text)} > ${file}`;
  };
  const [program = "", ...own] = command;
  return [
    ...foldersOf(folder, { files, firstFiles }).map((path) => `mkdir -p -m 700 ${quoted(path)}`),
    ...Object.entries(files).map((file) => write(file, true)),
    ...Object.entries(firstFiles).map((file) => write(file, false)),
    ...Object.entries(env).map(([name, value]) =>
      value === undefined ? `unset ${name}` : `export ${name}=${quoted(value)}`,
    ),
    [program, ...args, ...own].map(quoted).join(" "),
  ];
}

function quoted(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`).replaceAll(keyVariable, `'"${keyVariable}"'`)}'`;
}
