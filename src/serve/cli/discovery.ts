import { Agent, get } from "node:http";
import { readModelList } from "../../wire/apis/models/models.ts";
import type { UpstreamModel } from "../config/model-schema.ts";
import { isObject } from "../../wire/core/json.ts";
import { isTruewire, knownServers, serverListing } from "./known-servers.ts";

/** A server that answers on a port of this machine. */
export interface FoundServer {
  /** For people, such as "Ollama". */
  readonly product: string;
  readonly port: number;
  /** The base URL of its API. */
  readonly url: string;
  /** `truewire`: it is a Truewire, which is not served again. `locked`: it wants a key, which is not sent. */
  readonly state: "open" | "empty" | "locked" | "truewire";
  /** As it lists them. */
  readonly models: readonly string[];
  /** It is Ollama itself: its own API is used. */
  readonly isOllama?: boolean;
}

const maxAnswerBytes = 4 * 1024 * 1024;

/** A port of this machine that has neither refused a connection nor answered in time: a server on a machine that is busy. */
export interface LateServer {
  readonly port: number;
  /** What usually listens there. */
  readonly product: string;
  readonly url: string;
  /** Whether it has accepted a connection. */
  hasAccepted(): boolean;
  /** The server, when it answers; `undefined` if it is not a model server or does not answer in time. Never rejects. */
  readonly server: Promise<FoundServer | undefined>;
}

/** The servers of this machine. */
export interface ServersOfMachine {
  readonly found: readonly FoundServer[];
  readonly late: readonly LateServer[];
}

/**
 * Looks for servers on the usual ports of this machine's loopback address, in parallel. Resolves as soon as all have refused or answered,
 * after `limitMs` milliseconds at most: those that have done neither are `late`, and are waited for until
 * `patienceMs` have passed. A server is recognized by its
 * answer to `GET /v1/models`, `GET /api/version` (Ollama) or `GET /health` (Truewire); no key and no prompt is sent. Never rejects.
 */
export async function findServers(
  limitMs: number,
  ports: Iterable<number>,
  patienceMs = 10 * 60_000,
): Promise<ServersOfMachine> {
  // An agent of its own: the global one of Node may use the proxy of the environment.
  const agent = new Agent();
  const looks = [...new Set(ports)].map((port): LateServer => {
    let hasAccepted = false;
    const accepted = (): void => {
      hasAccepted = true;
    };
    const server = lookAt(port, { agent, signal: AbortSignal.timeout(patienceMs), accepted });
    return { ...usualServer(port), hasAccepted: () => hasAccepted, server };
  });
  const ended = new Map<LateServer, FoundServer | undefined>();
  const all = Promise.all(looks.map(async (look) => ended.set(look, await look.server)));
  void all.then(() => agent.destroy());
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([all, limit]);
  clearTimeout(timer);
  return {
    found: looks.map((look) => ended.get(look)).filter((server) => server !== undefined),
    late: looks.filter((look) => !ended.has(look)),
  };
}

function usualServer(port: number): Pick<FoundServer, "product" | "port" | "url"> {
  const product = knownServers.find((server) => server.port === port)?.name ?? "a server";
  return { product, port, url: `http://127.0.0.1:${port}/v1` };
}

/** The ports on which the known servers listen by default. */
export const usualPorts: readonly number[] = knownServers.flatMap(({ port }) => port ?? []);

/** The entries of found servers in a configuration, with names that differ. */
export function entriesOf(found: readonly FoundServer[]): UpstreamModel[] {
  const names = new Set<string>();
  return found
    .filter(({ state }) => state === "open")
    .map(({ product, port, url, isOllama = false }) => {
      const plain = product.toLowerCase().replaceAll(" ", "-");
      const name = names.has(plain) ? `${plain}-${port}` : plain;
      names.add(name);
      return { kind: "upstream", name, url, api: isOllama ? "ollama" : "chat" };
    });
}

interface Connecting {
  readonly agent: Agent;
  readonly signal: AbortSignal;
  /** Called when the port has accepted a connection. */
  readonly accepted: () => void;
}

async function lookAt(port: number, connecting: Connecting): Promise<FoundServer | undefined> {
  const ask = (path: string): Promise<Answer | undefined> => answerOf({ port, path, ...connecting });
  const [list, version, health] = await Promise.all([ask("/v1/models"), ask("/api/version"), ask("/health")]);
  const server = usualServer(port);
  if (isTruewire(jsonOf(health?.text))) return { ...server, product: "Truewire", state: "truewire", models: [] };
  // vLLM and tabbyAPI answer so where they have a key; a page of another program is no JSON.
  if (list?.status === 401 && isObject(jsonOf(list.text))) return { ...server, state: "locked", models: [] };
  const ofOllama = version?.status === 200 ? jsonOf(version.text) : undefined;
  const isOllama = isObject(ofOllama) && typeof ofOllama["version"] === "string";
  const models = list?.status === 200 ? readModelList(list.text) : null;
  if (models && models.length > 0) {
    const product = (models[0] && serverListing(server.url, models[0])?.name) ?? server.product;
    return {
      ...server,
      product,
      state: "open",
      models: models.map(({ id }) => id),
      isOllama: isOllama && product === "Ollama",
    };
  }
  // Ollama without a model lists `null`.
  if (!models && !isOllama) return undefined;
  return { ...server, ...(isOllama && { product: "Ollama" }), state: "empty", models: [] };
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Resolves with undefined where no answer comes in time, or a longer one than any list of models. */
function answerOf({
  accepted,
  ...options
}: Connecting & { readonly port: number; readonly path: string }): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const headers = { "user-agent": "truewire", accept: "application/json, text/plain" };
    const request = get({ host: "127.0.0.1", headers, ...options }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > maxAnswerBytes) request.destroy();
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
      response.on("error", () => resolve(undefined));
      response.on("close", () => resolve(undefined));
    });
    request.on("socket", (socket) => socket.once("connect", accepted));
    request.on("error", () => resolve(undefined));
    request.on("close", () => resolve(undefined));
  });
}

function jsonOf(text = ""): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
