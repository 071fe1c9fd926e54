import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, freemem, totalmem } from "node:os";
import { request } from "undici";
import { usableCores } from "../app/processes.ts";
import { ConfigError } from "../config/config-error.ts";
import { checkConfigFile, readConfigFile } from "../config/read-config-file.ts";
import { systemGpu } from "../../engines/llama/libraries/drivers.ts";
import { loadLibraries } from "../../engines/llama/libraries/load-libraries.ts";
import type { LoadedLibraries } from "../../engines/llama/process/libraries-main.ts";
import type { ControlledModels } from "../server/admin/model-control.ts";
import { agents } from "./agents.ts";
import { findServers, type FoundServer, usualPorts } from "./discovery.ts";
import type { DoctorFinding } from "./doctor-report.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What this machine is like. Sizes in bytes. */
export interface MachineFacts {
  readonly node: string;
  /** The oldest version of Node that Truewire runs on. */
  readonly neededNode: string;
  readonly cores: { readonly all: number; readonly usable: number };
  /** `limit`: of the container, absent without one. */
  readonly memory: { readonly total: number; readonly free: number; readonly limit?: number };
  /** Descriptors that a process may open; absent where it is not known. */
  readonly openFiles?: number;
  readonly libraries: LoadedLibraries;
  /** A GPU that the system has, whether the libraries use it or not. */
  readonly gpuOfSystem?: string;
  /** The servers on the usual ports of this machine. */
  readonly servers: readonly Pick<FoundServer, "product" | "port" | "state" | "models">[];
  /** Where the loaded local models of the Truewires among them compute, by name. */
  readonly devices?: Readonly<Record<string, string>>;
  /** Another program that has the default port: its header `server`, or what it does. */
  readonly otherProgram?: string;
  readonly config?: ConfigFacts;
  readonly environment: Environment;
}

export interface ConfigFacts {
  readonly file: string;
  readonly models: number;
  readonly mistakes: readonly string[];
  readonly hasKeys: boolean;
  readonly upstreams: readonly string[];
  /** Whether hostedTools has a web search. */
  readonly searchesWeb: boolean;
}

const configFile = "truewire.yaml";
const defaultPort = 8080;
/** The demo model takes a tenth of this; one gibibyte is the least for a small model. */
const minMemory = 2 ** 30;
/** An open request takes a descriptor, and one more if an upstream answers it. */
const minFiles = 4096;

/** Looks at this machine. `budget`: milliseconds for the servers that listen and the libraries. */
export async function lookAtMachine(environment: Environment, budget: number): Promise<MachineFacts> {
  const { engines } = createRequire(import.meta.url)("truewire/package.json") as { engines: { node: string } };
  const timeout = Math.min(budget, 1000);
  const [libraries, { found: servers }, listener, config] = await Promise.all([
    loadLibraries([], budget),
    findServers(timeout, usualPorts, timeout),
    listenerAt(defaultPort, timeout),
    configFacts(environment),
  ]);
  const own = servers.filter(({ state }) => state === "truewire");
  const devices = Object.assign({}, ...(await Promise.all(own.map(({ port }) => devicesAt(port, timeout))))) as Record<
    string,
    string
  >;
  const isOther = listener !== undefined && !servers.some(({ port }) => port === defaultPort);
  const limit = process.constrainedMemory();
  const total = totalmem();
  const openFiles = descriptorLimit();
  const gpuOfSystem = systemGpu();
  return {
    node: process.version,
    neededNode: engines.node,
    cores: { all: availableParallelism(), usable: usableCores() },
    memory: {
      total,
      free: process.availableMemory?.() ?? freemem(),
      ...(limit > 0 && limit < total && { limit }),
    },
    openFiles,
    libraries,
    gpuOfSystem,
    servers,
    devices,
    ...(isOther && { otherProgram: listener }),
    config,
    environment,
  };
}

/** What is wrong with a machine, and what is not. */
export function machineFindings(facts: MachineFacts): DoctorFinding[] {
  return [
    nodeFinding(facts),
    memoryFinding(facts),
    ...filesFinding(facts),
    librariesFinding(facts),
    gpuFinding(facts),
    ...deviceFindings(facts),
    ...portFindings(facts),
    ...configFindings(facts),
    searchFinding(facts),
    ...proxyFindings(facts),
    ...variableFindings(facts),
  ];
}

function nodeFinding({ node, neededNode }: MachineFacts): DoctorFinding {
  const [needed = []] = [neededNode.match(/\d+/g)?.map(Number) ?? []];
  const found = node.match(/\d+/g)?.map(Number) ?? [];
  const differs = needed.findIndex((part, at) => part !== (found[at] ?? 0));
  const isOld = differs !== -1 && (found[differs] ?? 0) < (needed[differs] ?? 0);
  return isOld
    ? {
        id: "node",
        status: "problem",
        text: `Node ${node} is too old: Truewire needs ${neededNode}`,
        cure: "install a newer Node: https://nodejs.org",
      }
    : { id: "node", status: "ok", text: `Node ${node}` };
}

function memoryFinding({ memory: { total, free, limit }, cores }: MachineFacts): DoctorFinding {
  const container = limit === undefined ? "" : `, of which its container may use ${gibibytes(limit)}`;
  const processors = cores.usable < cores.all ? `${cores.usable} of ${cores.all}` : String(cores.all);
  const text = `${gibibytes(free)} of memory are free of ${gibibytes(total)}${container}; ${processors} cores`;
  return free < minMemory
    ? {
        id: "memory",
        status: "problem",
        text,
        cure: "end other programs, raise the container's limit, or serve an upstream: truewire serve URL",
      }
    : { id: "memory", status: "ok", text };
}

function filesFinding({ openFiles }: MachineFacts): DoctorFinding[] {
  if (openFiles === undefined) return [];
  const text = `a process may open ${openFiles.toLocaleString("en-US")} files and connections`;
  return openFiles < minFiles
    ? [{ id: "files", status: "problem", text: `${text}: each open request takes one or two`, cure: "ulimit -n 65536" }]
    : [{ id: "files", status: "ok", text }];
}

function librariesFinding({ libraries: { variant, version, failure } }: MachineFacts): DoctorFinding {
  const id = "libraries";
  const cure = "truewire libraries install";
  if (variant === null)
    return {
      id,
      status: "problem",
      text: "local models cannot be served: llama.cpp's libraries are not installed",
      cure,
    };
  if (failure !== undefined)
    return { id, status: "problem", text: `the libraries of llama.cpp (${variant}) do not load: ${failure}`, cure };
  return { id, status: "ok", text: `llama.cpp ${version ?? ""} loads (${variant})` };
}

function gpuFinding({ libraries: { gpu, noGpu, drivers = {} }, gpuOfSystem }: MachineFacts): DoctorFinding {
  if (gpu !== undefined) return { id: "gpu", status: "ok", text: `local models use the GPU ${gpu}` };
  const [backend, driver] = Object.entries(drivers).find(([name, { fits }]) => name !== "cpu" && fits) ?? [];
  const found = driver?.why ?? gpuOfSystem;
  if (found === undefined)
    return { id: "gpu", status: "ok", text: `local models run on the processor: ${noGpu ?? "no GPU was found"}` };
  const text = `local models run on the processor, and not on ${found}`;
  const cure =
    backend === undefined
      ? "install the GPU's driver (CUDA or Vulkan), then its libraries: truewire libraries install"
      : `truewire libraries install ${backend}`;
  return { id: "gpu", status: "problem", text, cure };
}

function deviceFindings({ devices = {} }: MachineFacts): DoctorFinding[] {
  return Object.entries(devices).map(([name, device]) => ({
    id: `device-${name}`,
    status: "ok",
    text: `the model ${name} runs on ${device}`,
  }));
}

function portFindings({ servers, otherProgram }: MachineFacts): DoctorFinding[] {
  const own = servers.find(({ port }) => port === defaultPort);
  const port: Omit<DoctorFinding, "id"> =
    otherProgram !== undefined
      ? {
          status: "problem",
          text: `port ${defaultPort} is taken by another program (${otherProgram})`,
          cure: "truewire serve --port 8081",
        }
      : own === undefined
        ? { status: "ok", text: `port ${defaultPort} is free` }
        : own.state === "truewire"
          ? { status: "ok", text: `Truewire listens on port ${defaultPort} already` }
          : {
              status: "ok",
              text: `port ${defaultPort} is taken by ${own.product}: truewire takes the next one, or that of --port`,
            };
  return [
    { id: "port", ...port },
    ...servers
      .filter(({ state }) => state !== "truewire")
      .map(({ product, port: at, state, models }): DoctorFinding => {
        const count = models.length === 1 ? "1 model" : `${models.length} models`;
        const has = state === "locked" ? "a key" : count;
        const text = `${product} answers at http://localhost:${at}/v1 with ${has}: truewire doctor localhost:${at}/v1`;
        return { id: `server-${at}`, status: "ok", text };
      }),
  ];
}

function configFindings({ config, environment }: MachineFacts): DoctorFinding[] {
  const id = "config";
  if (config === undefined)
    return [
      {
        id,
        status: "ok",
        text: `there is no ${configFile} here: truewire serves the demo model and the servers of this machine`,
      },
    ];
  const { file, models, mistakes, hasKeys } = config;
  if (mistakes.length > 0)
    return [
      {
        id,
        status: "problem",
        text: `${mistakes.slice(0, 3).join("; ")}`,
        cure: `correct it, and check it: truewire config check ${file}`,
      },
    ];
  return [
    { id, status: "ok", text: `${file} is valid, with ${models} ${models === 1 ? "entry" : "entries"} in models` },
    ...(hasKeys && environment["TRUEWIRE_API_KEY"]
      ? [
          {
            id: "TRUEWIRE_API_KEY",
            status: "problem",
            text: `TRUEWIRE_API_KEY is set, and ${file} has keys: truewire serve refuses to start with a key without limits`,
            cure: "unset TRUEWIRE_API_KEY",
          } as const,
        ]
      : []),
  ];
}

/** Agents declare a web search as one that the API's vendor runs, and take an answer without it for one with it. */
function searchFinding({ config }: MachineFacts): DoctorFinding {
  const titles = Object.values(agents).flatMap(({ title, hostedTools = [] }) =>
    hostedTools.includes("web_search") ? [title] : [],
  );
  const who = titles.join(" and ");
  if (config?.searchesWeb === true) return { id: "web-search", status: "ok", text: `${who} can search the web` };
  return {
    id: "web-search",
    status: "unknown",
    text: `${who} declare a web search (web_search), and nothing here runs it: their searches fail`,
    cure: "truewire serve --web-search http://127.0.0.1:8888 (a SearXNG), or brave, or tavily; in truewire.yaml: hostedTools.webSearch",
  };
}

const loopback = ["localhost", "127.0.0.1"];

/** curl, Python's httpx (OpenAI's and Anthropic's libraries) and others read these variables, in both cases of letters. */
function proxyFindings({ environment, config }: MachineFacts): DoctorFinding[] {
  const read = (name: string): readonly [string, string] | undefined => {
    const found = [name, name.toLowerCase()].find((one) => environment[one]);
    return found === undefined ? undefined : [found, environment[found] ?? ""];
  };
  const proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => {
    const found = read(name);
    return found ? [found] : [];
  });
  const [[name, proxy] = []] = proxies;
  if (name === undefined || proxy === undefined) return [];
  const excepted = (read("NO_PROXY")?.[1] ?? "").split(/[\s,]+/).filter((entry) => entry !== "");
  const caught = loopback.filter((host) => !isExcepted(host, excepted));
  const shown = `${name} is set (${hostOf(proxy)})`;
  const upstreams = (config?.upstreams ?? []).filter((host) => !loopback.includes(host));
  const direct: DoctorFinding[] = upstreams.some((host) => !isExcepted(host, excepted))
    ? [
        {
          id: "proxy-upstreams",
          status: "unknown",
          text: `${shown}: Truewire sends requests to ${upstreams.join(", ")} directly, not through the proxy`,
          cure: "if there is no direct way, use the proxy's own address as the upstream's URL",
        },
      ]
    : [];
  return [
    caught.length > 0
      ? {
          id: "proxy",
          status: "problem",
          text: `${shown}: clients send requests to ${caught.join(" and ")} through it, where no local server is reached`,
          cure: `export NO_PROXY=${[...excepted, ...caught].join(",")}`,
        }
      : { id: "proxy", status: "ok", text: `${shown}; NO_PROXY excepts this machine` },
    ...direct,
  ];
}

/** Entries are host names, their ends with or without a leading dot or `*.`, and `*`; a port is ignored. */
function isExcepted(host: string, entries: readonly string[]): boolean {
  return entries.some((entry) => {
    const name = entry
      .replace(/:\d+$/, "")
      .replace(/^\*?\./, "")
      .toLowerCase();
    return name === "*" || host === name || host.endsWith(`.${name}`);
  });
}

/** The host of a URL: the rest may hold a password. */
function hostOf(url: string): string {
  return URL.canParse(url)
    ? new URL(url).host || "no host"
    : URL.canParse(`http://${url}`)
      ? new URL(`http://${url}`).host
      : "not a URL";
}

interface VendorVariables {
  readonly url: string;
  readonly keys: readonly string[];
  readonly readers: string;
}

/**
 * https://github.com/openai/openai-node#readme (OPENAI_BASE_URL, OPENAI_API_KEY), https://docs.claude.com/en/docs/claude-code/settings
 * (ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN).
 */
const vendors: readonly VendorVariables[] = [
  { url: "OPENAI_BASE_URL", keys: ["OPENAI_API_KEY"], readers: "OpenAI's libraries and programs that use them" },
  {
    url: "ANTHROPIC_BASE_URL",
    keys: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
    readers: "Claude Code and Anthropic's libraries",
  },
];

function variableFindings({ environment, config }: MachineFacts): DoctorFinding[] {
  const { TRUEWIRE_API_KEY: ownKey, TRUEWIRE_URL: ownUrl } = environment;
  const own: DoctorFinding[] = [];
  if (ownKey && config?.hasKeys !== true) {
    const text =
      "TRUEWIRE_API_KEY is set: truewire serve requires this key of its clients, and truewire launch sends it to a server that --url or TRUEWIRE_URL names";
    own.push({ id: "TRUEWIRE_API_KEY", status: "ok", text });
  }
  if (ownUrl) {
    const text = `TRUEWIRE_URL is set: truewire launch and truewire models use the server at ${hostOf(ownUrl)}`;
    own.push({ id: "TRUEWIRE_URL", status: "ok", text });
  }
  const ofVendors = vendors.flatMap(({ url, keys, readers }): DoctorFinding[] => {
    const base = environment[url];
    const key = keys.find((name) => environment[name]);
    if (base) {
      const sent = key === undefined ? "" : `, with the key of ${key}`;
      const text = `${url} is set: ${readers} send their requests to ${hostOf(base)}${sent}`;
      return [
        URL.canParse(base)
          ? { id: url, status: "ok", text }
          : { id: url, status: "problem", text: `${url} is not a URL`, cure: `unset ${url}` },
      ];
    }
    return key === undefined
      ? []
      : [
          {
            id: key,
            status: "ok",
            text: `${key} is set, and ${url} is not: ${readers} use the vendor's own server with it`,
          },
        ];
  });
  const findings = [...own, ...ofVendors];
  const options = environment["NODE_OPTIONS"];
  if (options === undefined || options.trim() === "") return findings;
  // Each process of Truewire (workers, models) starts with these options: a debugger's port is taken by the first.
  const foreign =
    /(?:^|\s)(--inspect\S*|--require|-r|--import|--(?:experimental-)?loader|--max-old-space-size)(?=[=\s]|$)/.exec(
      options,
    )?.[1];
  return [
    ...findings,
    foreign === undefined
      ? { id: "NODE_OPTIONS", status: "ok", text: "NODE_OPTIONS is set: every process of Truewire starts with it" }
      : {
          id: "NODE_OPTIONS",
          status: "problem",
          text: `NODE_OPTIONS contains ${foreign}: every process of Truewire starts with it`,
          cure: "unset NODE_OPTIONS",
        },
  ];
}

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

/** Says what answers on a port of this machine: its header `server`, or what it does; undefined if nothing listens. */
async function listenerAt(port: number, timeout: number): Promise<string | undefined> {
  try {
    const { body, headers, statusCode } = await request(`http://127.0.0.1:${port}/`, {
      method: "HEAD",
      signal: AbortSignal.timeout(timeout),
    });
    await body.dump();
    return [headers["server"] ?? `status ${statusCode}`].flat().join(", ");
  } catch (error) {
    const { code } = error as { readonly code?: string };
    return code === "ECONNREFUSED" ? undefined : "it does not answer HTTP";
  }
}

/** Asks a Truewire on this machine where its loaded local models compute. Empty if it does not say. */
async function devicesAt(port: number, timeout: number): Promise<Record<string, string>> {
  try {
    const { body } = await request(`http://127.0.0.1:${port}/admin/models`, { signal: AbortSignal.timeout(timeout) });
    const { models = [] } = (await body.json()) as Partial<ControlledModels>;
    return Object.fromEntries(models.flatMap(({ name, device }) => (device === undefined ? [] : [[name, device]])));
  } catch {
    return {};
  }
}

async function configFacts(environment: Environment): Promise<ConfigFacts | undefined> {
  if (!existsSync(configFile)) return undefined;
  let facts: ConfigFacts = {
    file: configFile,
    models: 0,
    mistakes: [],
    hasKeys: false,
    upstreams: [],
    searchesWeb: false,
  };
  try {
    const { keys, keysFile, hostedTools, models = [] } = await readConfigFile(configFile, environment);
    const upstreams = models.flatMap((entry) =>
      typeof entry === "object" && entry.kind === "upstream" ? [entry.url].flat() : [],
    );
    facts = {
      ...facts,
      hasKeys: keys !== undefined || keysFile !== undefined,
      searchesWeb: hostedTools?.webSearch !== undefined,
      upstreams: [
        ...new Set(
          upstreams.flatMap((url) => (typeof url === "string" && URL.canParse(url) ? [new URL(url).hostname] : [])),
        ),
      ],
    };
    return { ...facts, models: await checkConfigFile(configFile, environment) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { ...facts, mistakes: error.message.split("\n") };
  }
}

/** Linux: the soft limit, which Node raises to the hard one when it starts. */
function descriptorLimit(): number | undefined {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
