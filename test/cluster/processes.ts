import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { closeAfterTest } from "../support/close-after-test.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { done, event, finish, role, say, startScripted } from "../upstream/scripted-server.ts";

/** The processes of a server's workers. Linux only. */
export function workersOf({ process: { pid } }: RunningTruewire): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").map(Number);
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** An upstream whose streams for the message "hold" begin, and end when the test says so. It answers other messages with "Hi". */
export interface HoldingUpstream {
  readonly url: string;
  /** Ends all streams that are open. */
  release(): void;
}

export async function startHolding(): Promise<HoldingUpstream> {
  const held = new Set<ServerResponse>();
  const upstream = await startScripted((response, body) => {
    const messages = body["messages"] as readonly { readonly content: unknown }[];
    if (messages.at(-1)?.content !== "hold") return say(response, body, "Hi");
    response.writeHead(200, { "content-type": "text/event-stream" }).write(role + event({ content: "begun" }));
    held.add(response.on("close", () => held.delete(response)));
  });
  closeAfterTest(() => upstream.close());
  return {
    url: upstream.url,
    release() {
      for (const response of held) response.end(finish + done);
    },
  };
}

export interface Workers extends RunningTruewire {
  /** The configuration file. */
  readonly file: string;
  /** Writes the configuration again, with these settings in addition to those of the start. */
  configure(more: object): void;
}

/** Starts two workers over an upstream. `settings`: of the configuration. */
export async function startWorkers(
  upstream: string,
  settings: object,
  env: Record<string, string> = {},
): Promise<Workers> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-workers-"));
  closeAfterTest(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "truewire.yaml");
  const models = [{ kind: "upstream", name: "up", url: upstream, models: ["m"] }];
  const configure = (more: object): void =>
    writeFileSync(file, stringify({ port: 0, workers: 2, logFormat: "json", models, ...settings, ...more }));
  configure({});
  const server = await startTruewire(["--config", file], { env });
  closeAfterTest(() => server.stop("SIGKILL"));
  return { ...server, file, configure };
}

/** An answer while it arrives, over a connection of its own. */
export interface Arriving {
  text: string;
  status: number | undefined;
  /** "cut": the connection broke before the answer was complete. */
  end: "complete" | "cut" | undefined;
  readonly ended: Promise<void>;
  leave(): void;
}

/** Sends a request on a new connection: workers get connections in turn. */
export function ask(
  url: string,
  path: string,
  body?: object,
  { key, method }: { readonly key?: string; readonly method?: string } = {},
): Arriving {
  const request: ClientRequest = httpRequest(url + path, {
    method: method ?? (body ? "POST" : "GET"),
    agent: false,
    headers: {
      ...(body && { "content-type": "application/json" }),
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
  });
  let over: () => void = () => {};
  const arriving: Arriving = {
    text: "",
    status: undefined,
    end: undefined,
    ended: new Promise((resolve) => (over = resolve)),
    leave: () => request.destroy(),
  };
  const end = (how: "complete" | "cut"): void => {
    arriving.end ??= how;
    over();
  };
  request.on("error", () => end("cut"));
  request.on("response", (response: IncomingMessage) => {
    arriving.status = response.statusCode;
    response.setEncoding("utf8").on("data", (text: string) => (arriving.text += text));
    response.on("error", () => end("cut"));
    response.on("close", () => end(response.complete ? "complete" : "cut"));
  });
  request.end(body && JSON.stringify(body));
  return arriving;
}

/** The answer when it is complete; throws if its connection breaks. */
export async function read(answer: Arriving): Promise<string> {
  await answer.ended;
  if (answer.end !== "complete") throw new Error(`The connection broke after: ${answer.text}`);
  return answer.text;
}

/** A chat request for the model of the upstream. */
export function chat(content: string, more: object = {}): object {
  return { model: "m", messages: [{ role: "user", content }], ...more };
}

/** The log's lines, as far as they are JSON. */
export function linesOf(server: RunningTruewire): Record<string, unknown>[] {
  return server
    .stderr()
    .split("\n")
    .flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Record<string, unknown>] : []));
}

/** The workers that have answered requests to a path. */
export function answeredBy(server: RunningTruewire, asked: string): Set<unknown> {
  return new Set(linesOf(server).flatMap(({ path, worker }) => (path === asked ? [worker] : [])));
}
