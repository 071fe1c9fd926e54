import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { RunningTruewire } from "../support/serve.ts";

/** The processes of a server's workers. Linux only. */
export function workersOf(server: RunningTruewire): number[] {
  return childrenOf(server).filter((child) => /worker-main/.test(commandOf(child)));
}

/** The processes of its models. */
export function modelsOf(server: RunningTruewire): number[] {
  return childrenOf(server).filter((child) => /engines\/llama/.test(commandOf(child)));
}

function childrenOf({ process: { pid } }: RunningTruewire): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").map(Number);
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
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

/** Sends a request on a new connection: the next worker gets it. */
export function ask(
  url: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Arriving {
  const request: ClientRequest = httpRequest(url + path, {
    method: body ? "POST" : "GET",
    agent: false,
    headers: { ...(body && { "content-type": "application/json" }), ...headers },
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

/** A chat request that chooses a script of the programmed model, or asks a program. */
export function chatBody(model: string, content: string, more: object = {}): object {
  return { model, messages: [{ role: "user", content }], ...more };
}

/** The log's lines, as far as they are JSON. */
export function linesOf(server: RunningTruewire): Record<string, unknown>[] {
  return server
    .stderr()
    .split("\n")
    .flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Record<string, unknown>] : []));
}

/** An answer without what is made anew for each: ids and times. */
export function withoutIds(text: string): string {
  return text
    .replaceAll(/"id":"(?:chat)?cmpl-[^"]*"/g, '"id":""')
    .replaceAll(/"created":\d+/g, '"created":0')
    .replaceAll(/"id":"call_[^"]*"/g, '"id":""');
}
