import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { accumulate } from "../../wire/core/accumulate.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { runSync } from "../../wire/core/steps.ts";
import { unknownUrl } from "../../wire/apis/failures.ts";
import { writeModelList } from "../../wire/apis/models/models.ts";
import type { AnswerContext, ReadRequest } from "../../wire/apis/port.ts";
import type { ServedPort } from "../../wire/apis/port-state.ts";
import { ports } from "../../wire/apis/ports.ts";
import { exact } from "../../wire/apis/profile.ts";
import { random } from "../../wire/random/random.ts";
import type { Api, Json, ScriptedAnswer } from "./facts.ts";

/** Of a request's body, in bytes. */
const maxBodyBytes = 64 * 1024 * 1024;

/** A request as the vendor has received it. */
export interface VendorRequest {
  readonly api: Api;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** undefined: not a JSON object. */
  readonly body: Json | undefined;
  /** What it asks for; undefined: the vendor has refused it. */
  readonly request: GenerationRequest | undefined;
  /** Why the vendor has refused it. */
  readonly refusal: string | undefined;
  /** When it was received, and when its last batch was sent, by `performance.now`. */
  readonly at: number;
  lastSentAt: number | undefined;
  /** The body of the answer, as far as it was sent. */
  sent: string;
  /** The gateway has closed the connection before the end of the answer. */
  wasLeft: boolean;
}

export interface VendorOptions {
  /** The APIs that it has, the first one for requests to other paths. */
  readonly apis: readonly Api[];
  /** The ids of its models. */
  readonly models: readonly string[];
  /** The answer to a request that the vendor accepts. */
  answer(received: VendorRequest): ScriptedAnswer;
  /** Called for each request to the API, accepted or refused. */
  onRequest?(received: VendorRequest): void;
}

/**
 * A server that answers as the vendor of its APIs does, byte for byte (profile `exact`): it refuses what the vendor refuses, in its words, and
 * its answers come from a script.
 */
export function vendorServer(options: VendorOptions): Server {
  return createServer((request, response) => {
    const path = request.url?.split("?", 1)[0];
    const api = options.apis.find((name) => `/v1${portOf(name).path}` === path) ?? options.apis[0] ?? "chat";
    void answer(api, options, request, response).catch(() => response.destroy());
  });
}

function portOf(api: Api): ServedPort {
  const port = ports.find(({ name }) => name === api);
  if (!port) throw new Error(`There is no API ${api}.`);
  return port;
}

/** Starts the server. Rejects with the system's error if it cannot listen. */
export async function startVendor(
  options: VendorOptions & { readonly port: number; readonly host?: string },
): Promise<{ close(): Promise<void> }> {
  const server = vendorServer(options);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host ?? "127.0.0.1", resolve);
  });
  return {
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function answer(
  api: Api,
  options: VendorOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "GET", url = "/", headers } = request;
  const port = portOf(api);
  const path = url.split("?", 1)[0] ?? "";
  const header = (name: string): string | undefined => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
  const requestId = port.errorFormat.newRequestId(Date.now(), random);
  const fail = (error: FailureError): void => {
    const written = port.errorFormat.writeFailure(error.failure, exact, requestId, header);
    const own = port.errorFormat.answerHeaders(requestId, 1);
    response.writeHead(written.status, { "content-type": written.contentType, ...own, ...written.headers });
    response.end(written.body);
  };
  if (method === "GET" && path === "/v1/models") {
    const models = options.models.map((id) => ({
      id,
      created: 1_700_000_000,
      ownedBy: "vendor",
      endpoints: ["chat"] as const,
    }));
    const list = port.errorFormat.models?.list(models) ?? writeModelList(models, exact);
    return void response.writeHead(200, { "content-type": "application/json" }).end(list);
  }
  const text = await readText(request);
  if (method !== "POST" || path !== `/v1${port.path}`) return fail(unknownUrl(method, path));
  const body = parsed(text);
  let read: ReadRequest | undefined;
  let refusal: FailureError | undefined;
  try {
    if (!isObject(body)) throw invalidRequest("We could not parse the JSON body of your request.");
    read = runSync(port.readRequest(body, requestId, { profile: exact, forwards: true, header }));
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    refusal = error;
  }
  const received: VendorRequest = {
    api,
    path: url,
    headers,
    text,
    body: isObject(body) ? body : undefined,
    request: read?.request,
    refusal: refusal?.failure.message,
    at: performance.now(),
    lastSentAt: undefined,
    sent: "",
    wasLeft: false,
  };
  response.on("close", () => (received.wasLeft = !response.writableFinished));
  options.onRequest?.(received);
  if (refusal || !read) return fail(refusal ?? invalidRequest("The request is empty."));
  const { model } = read.request;
  if (!options.models.includes(model))
    return fail(
      new FailureError({
        kind: "not-found",
        status: 404,
        message: `model: ${model}`,
        param: null,
        code: "model_not_found",
      }),
    );
  const context: AnswerContext = {
    profile: exact,
    created: Math.floor(Date.now() / 1000),
    model,
    settings: {},
    random,
  };
  await send(read, context, options.answer(received), port, response, received, requestId);
}

async function send(
  read: ReadRequest,
  context: AnswerContext,
  scripted: ScriptedAnswer,
  port: ServedPort,
  response: ServerResponse,
  received: VendorRequest,
  requestId: string,
): Promise<void> {
  const { batches = [], failure, gapMs = 0, cutAfter = Infinity, endless = false } = scripted;
  const own = port.errorFormat.answerHeaders(requestId, 1);
  if (failure) {
    response.writeHead(failure.status, { "content-type": "application/json", ...own, ...failure.headers });
    received.lastSentAt = performance.now();
    received.sent = JSON.stringify(failure.body(received.api));
    return void response.end(received.sent);
  }
  if (!read.request.stream) {
    const written = read.writeResponse(accumulate(batches.flat()), context);
    response.writeHead(200, { "content-type": read.contentType ?? port.contentType ?? "application/json", ...own });
    if (cutAfter !== Infinity) {
      response.write(written.slice(0, written.length / 2));
      return breakOff(response);
    }
    if (endless) await untilClosed(response);
    received.lastSentAt = performance.now();
    received.sent = written;
    return void response.end(written);
  }
  const writer = read.streamWriter(context);
  response.writeHead(200, { ...port.streamHeaders(exact), ...own });
  for (const [at, batch] of batches.entries()) {
    if (at === cutAfter) return breakOff(response);
    if (endless && at === batches.length - 1) await untilClosed(response);
    if (response.destroyed) return;
    if (at > 0 && gapMs > 0) await pause(gapMs);
    received.lastSentAt = performance.now();
    const text = writer.write(batch);
    received.sent += text;
    if (!response.write(text)) await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
  }
  response.end();
}

/** Breaks the connection after what was written has been sent. */
function breakOff(response: ServerResponse): void {
  response.socket?.end(() => response.destroy());
}

async function untilClosed(response: ServerResponse): Promise<void> {
  if (!response.destroyed) await new Promise((resolve) => response.once("close", resolve));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= maxBodyBytes) chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
