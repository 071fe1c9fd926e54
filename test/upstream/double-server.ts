import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { listen } from "../support/listen.ts";

type Step = string | { readonly pause: number } | { readonly base64: string } | { readonly cut: true };

/** One way in which one server breaks the wire; see doubles/README.md. */
export interface Double {
  /** The model's name that asks for it. */
  readonly id: string;
  readonly server: string;
  readonly shows: string;
  readonly stream: readonly Step[];
  readonly body?: string;
  readonly status: number;
  readonly type?: string;
  readonly choices: number;
  readonly options: { readonly format?: "auto" };
  readonly expect: {
    readonly text?: string | null;
    readonly reasoning?: string;
    readonly refusal?: string;
    readonly calls?: readonly (readonly [name: string, args: string])[];
    readonly finish?: string;
    readonly usage?: readonly [prompt: number, completion: number];
    readonly error?: string;
    readonly status?: number;
    readonly type?: string;
    readonly code?: string;
    readonly tooLong?: string;
  };
}

const folder = join(import.meta.dirname, "doubles");

/** All doubles, in the order of the files. */
export const doubles: readonly Double[] = readdirSync(folder)
  .filter((name) => name.endsWith(".yaml"))
  .flatMap((name) => {
    const { server, cases } = parse(readFileSync(join(folder, name), "utf8")) as {
      server: string;
      cases: (Partial<Double> & { stream: string | Step[]; shows: string; expect: Double["expect"] })[];
    };
    return cases.map((entry, at) => ({
      choices: 1,
      options: {},
      status: 200,
      ...entry,
      id: `${name.replace(".yaml", "")}-${at + 1}`,
      server,
      stream: typeof entry.stream === "string" ? [entry.stream] : entry.stream,
    }));
  });

/** The bytes of a double's stream, as they would be captured. */
export function captureOf({ stream }: Double): string {
  const pieces = stream.flatMap((step) => {
    if (typeof step === "string") return [Buffer.from(step)];
    return "base64" in step ? [Buffer.from(step.base64, "base64")] : [];
  });
  return Buffer.concat(pieces).toString();
}

export interface DoubleServer {
  /** The base URL, `/v1` included. */
  readonly url: string;
  /** The bodies of all requests, in order. */
  readonly requests: readonly Readonly<Record<string, unknown>>[];
  close(): Promise<void>;
}

/** A server that answers each request as the double does whose id is the request's model. */
export async function startDoubles(): Promise<DoubleServer> {
  const requests: Record<string, unknown>[] = [];
  const { url, close } = await listen((request, response) => void answer(request, response, requests));
  return { url: `${url}/v1`, requests, close };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  requests: Record<string, unknown>[],
): Promise<void> {
  if (request.url === "/v1/models") {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        object: "list",
        data: doubles.map(({ id }) => ({ id, object: "model", created: 1, owned_by: "t" })),
      }),
    );
    return;
  }
  if (request.method !== "POST") {
    response.writeHead(404).end();
    return;
  }
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += piece as string;
  const body = JSON.parse(text) as Record<string, unknown>;
  requests.push(body);
  const double = doubles.find(({ id }) => id === body["model"]);
  if (!double) {
    response.writeHead(404).end();
    return;
  }
  if (body["stream"] !== true && double.body !== undefined) {
    response.writeHead(double.status, { "content-type": "application/json" }).end(double.body);
    return;
  }
  response.writeHead(double.status, { "content-type": double.type ?? "text/event-stream" });
  for (const step of double.stream) {
    if (typeof step === "string") response.write(step);
    else if ("base64" in step) response.write(Buffer.from(step.base64, "base64"));
    else if ("pause" in step) await sleep(step.pause);
    else {
      response.destroy();
      return;
    }
  }
  response.end();
}
