import type { Config } from "../config/schema.ts";
import type {
  HostedProgramConfig,
  McpServerConfig,
  WebFetchConfig,
  WebSearchConfig,
} from "../config/hosted-tools-schema.ts";
import { isFailed } from "../../wire/core/hosted-result.ts";
import { checkHostedTools } from "../config/hosted-tools-schema.ts";
import { invalidRequest } from "../../wire/core/failure.ts";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import { singleKinds } from "../../wire/core/hosted-tool.ts";
import type { HostedTool, HostedToolExecutors, HostedToolKind } from "../../wire/core/hosted-tool.ts";
import type { ExecutorSetup, OpenExecutor } from "./executor.ts";

/** Called when a call has ended. `name`: of the executor. */
export type HostedCallObserver = (name: string, outcome: "succeeded" | "failed", ms: number) => void;

/** The executors of a configuration that is not in use yet. */
export interface PreparedHostedTools {
  /** Absent: none is configured. */
  readonly executors: HostedToolExecutors | undefined;
  /** Uses them from now on, and closes what only the configuration before had. */
  commit(): void;
  /** Closes what was opened for them. */
  discard(): Promise<void>;
}

const defaultTimeoutMs = 30_000;
const defaultMaxCalls = 20;
const defaultMaxOutput = 100 * 1024;
/** PDFs are passed on whole, and images of MCP servers and programs, too. */
const documentOutput = 4 * 1024 * 1024;
const defaultMaxSize = 10 * 1024 * 1024;
const maxResults = 15;

type Entry = WebSearchConfig | WebFetchConfig | McpServerConfig | HostedProgramConfig;

interface Opened {
  readonly executor: OpenExecutor;
  /** Of an MCP server. */
  readonly server: McpServerConfig | undefined;
}

/**
 * Opens what a configuration has for hosted tools, and keeps what the next one has in common with it: an MCP server that both have goes on.
 * What an executor needs is imported when it is opened.
 */
export class HostedToolPool {
  readonly #log: LogListener;
  readonly #observe: HostedCallObserver;
  #open = new Map<unknown, Opened>();

  constructor(log: LogListener, observe: HostedCallObserver) {
    this.#log = log;
    this.#observe = observe;
  }

  /** Rejects with `ConfigError`, or an Error of one sentence if a program cannot be loaded, and then nothing has changed. */
  async prepare({ hostedTools }: Pick<Config, "hostedTools">): Promise<PreparedHostedTools> {
    checkHostedTools(hostedTools);
    const { webSearch, webFetch, mcp, programs } = hostedTools;
    const next = new Map<unknown, Opened>();
    const fresh: OpenExecutor[] = [];
    const discard = async (): Promise<void> => void (await Promise.all(fresh.map((executor) => executor.close())));
    const add = async (
      name: string,
      config: Entry,
      open: (setup: ExecutorSetup) => Promise<OpenExecutor>,
      server?: McpServerConfig,
    ): Promise<void> => {
      const key = keyOf(name, config);
      let opened = this.#open.get(key);
      if (!opened) {
        const executor = observed(await open(setupOf(name, config, this.#log)), this.#observe);
        fresh.push(executor);
        opened = { executor, server };
      }
      next.set(key, opened);
    };
    try {
      if (webSearch) await add("web_search", webSearch, (setup) => openSearch(webSearch, setup));
      if (webFetch) await add("web_fetch", webFetch, (setup) => openFetch(webFetch, setup));
      for (const [type, entry] of Object.entries(programs))
        await add(type, entry, (setup) => openTool(type, entry, setup));
      for (const [name, server] of Object.entries(mcp))
        await add(name, server, (setup) => openMcpServer(server, setup), server);
    } catch (error) {
      await discard();
      throw error;
    }
    const all = [...next.values()];
    const commit = (): void => {
      const gone = [...this.#open].flatMap(([key, { executor }]) => (next.has(key) ? [] : [executor]));
      this.#open = next;
      for (const executor of gone)
        executor
          .close()
          .catch((error: unknown) => this.#log(`${executor.name} did not close: ${String(error)}`, "warn"));
    };
    const names = all.map(({ executor }) => executor.name);
    return { executors: all.length === 0 ? undefined : { names, find: (tool) => find(all, tool) }, commit, discard };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ executor }) => executor.close()));
  }
}

function observed(executor: OpenExecutor, observe: HostedCallObserver): OpenExecutor {
  return {
    ...executor,
    async run(call, signal) {
      const began = performance.now();
      const result = await executor.run(call, signal);
      observe(executor.name, isFailed(result) ? "failed" : "succeeded", performance.now() - began);
      return result;
    },
  };
}

function setupOf(name: string, { timeout, maxCalls, maxOutput }: Entry, log: LogListener): ExecutorSetup {
  return {
    name,
    timeoutMs: timeout ?? defaultTimeoutMs,
    maxCalls: maxCalls ?? defaultMaxCalls,
    maxOutput: maxOutput ?? defaultMaxOutput,
    log,
  };
}

/** Entries with equal keys share what they have opened. A function equals only itself. */
function keyOf(name: string, config: Entry): unknown {
  const program = "program" in config ? config.program : undefined;
  return typeof program === "function" ? program : JSON.stringify([name, config]);
}

async function openSearch(config: WebSearchConfig, setup: ExecutorSetup): Promise<OpenExecutor> {
  const { engine = "searxng", url, key, program, allowedDomains, blockedDomains } = config;
  const { openWebSearch, engineSearch } = await import("./web-search.ts");
  const own = { ...setup, maxResults: config.maxResults ?? maxResults, allowedDomains, blockedDomains };
  if (program === undefined) return openWebSearch({ ...own, search: engineSearch(engine, { url, key }) });
  const { openProgram, programSearch } = await import("./program/program-executor.ts");
  const opened = await openProgram(program);
  return { ...openWebSearch({ ...own, search: programSearch(opened) }), close: () => opened.close() };
}

async function openFetch(config: WebFetchConfig, setup: ExecutorSetup): Promise<OpenExecutor> {
  const { privateHosts, anyUrl, maxSize = defaultMaxSize, allowedDomains, blockedDomains, maxOutput } = config;
  const { openWebFetch } = await import("./web-fetch.ts");
  const { openBackground } = await import("../../engines/upstream/background/background.ts");
  const limits = { maxSize, maxDocument: maxOutput ?? documentOutput };
  return openWebFetch({
    ...setup,
    ...limits,
    allowedDomains,
    blockedDomains,
    privateHosts,
    anyUrl,
    background: openBackground(),
  });
}

async function openMcpServer(config: McpServerConfig, setup: ExecutorSetup): Promise<OpenExecutor> {
  const { command, args, env, folder, url, headers, functions, maxOutput = documentOutput } = config;
  const { openMcp } = await import("./mcp/mcp-executor.ts");
  const server = url === undefined ? { command: command ?? "", args, env, folder } : { url, headers };
  return openMcp({ ...setup, maxOutput, server, functions });
}

async function openTool(
  type: string,
  { program, maxOutput }: HostedProgramConfig,
  setup: ExecutorSetup,
): Promise<OpenExecutor> {
  const { openProgram, openProgramTool } = await import("./program/program-executor.ts");
  const kind = kindOf(type);
  const own = kind === "image_generation" ? { ...setup, maxOutput: maxOutput ?? documentOutput } : setup;
  return openProgramTool(kind, await openProgram(program ?? ""), own);
}

function kindOf(type: string): HostedToolKind {
  return singleKinds.find((kind) => kind === type) ?? "other";
}

function find(all: readonly Opened[], tool: HostedTool): OpenExecutor | undefined {
  if (tool.kind === "mcp") return findServer(all, tool);
  const { executor } =
    all.find((one) => one.server === undefined && one.executor.name === tool.kind) ??
    all.find((one) => one.server === undefined && one.executor.name === tool.type) ??
    {};
  return executor;
}

/**
 * The server that a client means: by its URL or its connector, if it names one, or by its label. The URL `mcp:NAME` is the server of this name,
 * as the APIs require a URL. Throws `FailureError` for another one.
 */
function findServer(all: readonly Opened[], { options: { server }, path }: HostedTool): OpenExecutor | undefined {
  const servers = all.filter((one) => one.server !== undefined);
  const { label, url, connector } = server ?? {};
  const name = url === undefined ? label : /^mcp:([\w-]+)$/.exec(url)?.[1];
  const found =
    url !== undefined && name === undefined
      ? servers.find((one) => one.server?.url !== undefined && sameUrl(one.server.url, url))
      : url === undefined && connector !== undefined
        ? servers.find((one) => one.server?.connector === connector)
        : servers.find(({ executor }) => executor.name === name);
  if (found) return found.executor;
  const asked = url !== undefined ? `the server_url ${url.slice(0, 200)}` : (connector ?? `the MCP server ${label}`);
  throw invalidRequest(
    `This server connects only to MCP servers of its own configuration, and ${asked} is not one of them. Add it to hostedTools.mcp, or name a configured one by the URL mcp:NAME.`,
    path,
  );
}

function sameUrl(one: string, other: string): boolean {
  const whole = (url: string): string => (URL.canParse(url) ? new URL(url).href.replace(/\/$/, "") : url);
  return whole(one) === whole(other);
}
