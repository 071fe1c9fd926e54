import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { accumulate } from "../../wire/core/accumulate.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { runSync } from "../../wire/core/steps.ts";
import { missingApiKey, unknownUrl } from "../../wire/apis/failures.ts";
import { writeModelList } from "../../wire/apis/models/models.ts";
import type { AnswerContext, ReadOptions, ReadRequest } from "../../wire/apis/port.ts";
import type { ServedPort } from "../../wire/apis/port-state.ts";
import { geminiPath } from "../../wire/apis/gemini/port.ts";
import { ollamaVersionNumber } from "../../wire/apis/ollama/port.ts";
import { type OllamaModel, writeOllamaShow, writeOllamaTags } from "../../wire/apis/ollama/models.ts";
import { exact, type Profile } from "../../wire/apis/profile.ts";
import { openSeal, type TurnSeal } from "../../wire/apis/turn-seal.ts";
import { random } from "../../wire/random/random.ts";
import { PromptCache, type PromptCharge, promptTokensOf } from "./prompt-cache.ts";
import { type Api, type Json, parsed, portOf, roots, type ScriptedAnswer, type ScriptedFailure } from "./facts.ts";

/** Of a request's body, in bytes. */
const maxBodyBytes = 64 * 1024 * 1024;

/** A request as the vendor has received it. */
export interface VendorRequest {
  readonly api: Api;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly key: string;
  readonly text: string;
  /** undefined: not a JSON object. */
  readonly body: Json | undefined;
  /** What it asks for; undefined: the vendor has refused it. */
  request: GenerationRequest | undefined;
  /** It asks for the number of its tokens. */
  readonly counts: boolean;
  /** Why the vendor has refused it, and the path of what it has refused, if it names one. */
  refusal: { readonly message: string; readonly param?: string | null } | undefined;
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
  /** The ids of its models; absent: it has every model. */
  readonly models?: readonly string[];
  /** The answer to a request that the vendor accepts. `charge`: for its prompt. */
  answer(received: VendorRequest, charge: PromptCharge): ScriptedAnswer;
  /** Why it refuses a request before it reads it by the rules of its API: a foreign key, a foreign signature. */
  refusal?(received: VendorRequest): ScriptedFailure | undefined;
  /** Called for each request to the API, accepted or refused. */
  onRequest?(received: VendorRequest): void;
  /** The account of a key, which has a prompt cache of its own; default: the key. */
  account?(key: string): string;
  /** Shorter prompts are not cached, in tokens; default: as the vendor's models. */
  readonly leastCachedTokens?: number;
  /** The tokens that it counts of each prompt; default: those that it charges. `false`: it does not count, as Ollama. */
  readonly counted?: number | false;
  /** It asks for no key, as servers with a vendor's API on a machine of one's own. */
  readonly isKeyless?: boolean;
  /** In milliseconds; default: the system's. */
  now?(): number;
}

/**
 * A server that answers as the vendor of its APIs does, byte for byte (profile `exact`): it refuses what the vendor refuses, in its words, and
 * its answers come from a script.
 */
export function vendorServer(options: VendorOptions): Server {
  const caches = new Map<string, PromptCache>();
  const charge = (api: Api, key: string, body: Json): PromptCharge => {
    const { account = String, now = Date.now, leastCachedTokens } = options;
    const name = `${api} ${account(key)}`;
    const cache = caches.get(name) ?? new PromptCache(api, leastCachedTokens);
    caches.set(name, cache);
    return cache.charge(body, now());
  };
  return createServer((request, response) => {
    const path = request.url?.split("?", 1)[0] ?? "";
    const api = options.apis.find((name) => pathsOf(name).includes(apiPath(path))) ?? options.apis[0] ?? "chat";
    void answer(api, { ...options, charge }, request, response).catch(() => response.destroy());
  });
}

/** The paths of an API: of answers, and of counting. */
function pathsOf(api: Api): string[] {
  const { path, tokenCounter } = portOf(api);
  const root = api === "gemini" ? "" : roots[api];
  return [path, ...(tokenCounter ? [tokenCounter.path] : [])].map((below) => root + below);
}

/** A path without the model that Gemini's have. */
function apiPath(path: string): string {
  return geminiPath(path)?.path ?? path;
}

/** Starts the server. Rejects with the system's error if it cannot listen. */
export async function startVendor(
  options: VendorOptions & { readonly port: number; readonly host?: string },
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = vendorServer(options);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host ?? "127.0.0.1", resolve);
  });
  const { address, port } = server.address() as AddressInfo;
  return {
    url: `http://${address.includes(":") ? `[${address}]` : address}:${port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

interface Vendor extends VendorOptions {
  charge(api: Api, key: string, body: Json): PromptCharge;
}

/** A vendor's signature contains what a client does not get of the thinking: it is sent as it is. */
const ownSignatures: TurnSeal = {
  ...openSeal,
  seal: (content) => (content.state?.kind === "signature" ? content.state.value : openSeal.seal(content)),
};

const vendorProfile: Profile = { ...exact, isVendor: true };

/** The rules by which a vendor's own model is judged: those of the model that the request names. */
export function readAsVendor(
  api: Api,
  body: unknown,
  { requestId = "", ...readers }: Pick<ReadOptions, "header" | "query"> & { readonly requestId?: string } = {},
): ReadRequest {
  const standsFor = isObject(body) && typeof body["model"] === "string" ? body["model"] : undefined;
  return runSync(
    portOf(api).readRequest(body, requestId, { profile: vendorProfile, forwards: true, standsFor, ...readers }),
  );
}

/** What the vendor's writers need besides the answer. */
export function vendorContext(model: string): AnswerContext {
  return {
    profile: exact,
    created: Math.floor(Date.now() / 1000),
    model,
    settings: {},
    random,
    turnSeal: ownSignatures,
  };
}

async function answer(api: Api, options: Vendor, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "GET", url = "/", headers } = request;
  const port = portOf(api);
  const path = url.split("?", 1)[0] ?? "";
  const header = (name: string): string | undefined => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
  const { searchParams } = new URL(url, "http://localhost");
  const query = (name: string): string | undefined => searchParams.get(name) ?? undefined;
  const requestId = port.errorFormat.newRequestId(Date.now(), random);
  const own = port.errorFormat.answerHeaders(requestId, 1);
  const fail = (error: FailureError): void => {
    const written = port.errorFormat.writeFailure(error.failure, exact, requestId, header);
    response.writeHead(written.status, { "content-type": written.contentType, ...own, ...written.headers });
    response.end(written.body);
  };
  const text = await readText(request);
  const body = parsed(text);
  const about = aboutModels(options.models ?? [], port, path, body, headers);
  if (about !== undefined) return void response.writeHead(200, { "content-type": "application/json" }).end(about);
  const at = pathsOf(api).indexOf(apiPath(path));
  if (method !== "POST" || at === -1 || (at > 0 && options.counted === false)) return fail(unknownUrl(method, path));
  const key = port.errorFormat.keyIn(header, query);
  const inPath = geminiPath(path);
  const whole = isObject(body) && inPath ? { ...body, model: inPath.model, stream: inPath.stream } : body;
  const received: VendorRequest = {
    api,
    path: url,
    headers,
    key,
    text,
    body: isObject(body) ? body : undefined,
    request: undefined,
    refusal: undefined,
    counts: at > 0,
    at: performance.now(),
    lastSentAt: undefined,
    sent: "",
    wasLeft: false,
  };
  response.on("close", () => (received.wasLeft = !response.writableFinished));
  const refusal = isObject(body) ? options.refusal?.(received) : undefined;
  if (refusal) return sendFailure(refusal, own, response, received);
  let read: ReadRequest | undefined;
  try {
    // Ollama's own server has no keys.
    if (api !== "ollama" && key === "" && !options.isKeyless) throw missingApiKey();
    if (!isObject(body)) throw invalidRequest("We could not parse the JSON body of your request.");
    if (received.counts && port.tokenCounter) {
      const options = { profile: vendorProfile, forwards: true, header, query };
      received.request = runSync(port.tokenCounter.readRequest(whole, requestId, options)).request;
    } else {
      read = readAsVendor(api, whole, { requestId, header, query });
      received.request = read.request;
    }
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    received.refusal = error.failure;
    options.onRequest?.(received);
    return fail(error);
  }
  options.onRequest?.(received);
  const { model = "" } = received.request ?? {};
  if (options.models && !options.models.includes(model)) {
    const failure = { kind: "not-found", status: 404, message: `model: ${model}`, param: null } as const;
    return fail(new FailureError({ ...failure, code: "model_not_found", model }));
  }
  if (!read || !isObject(whole)) {
    const counted = port.tokenCounter?.write(options.counted || promptTokensOf(received.body ?? {}));
    return void response.writeHead(200, { "content-type": "application/json", ...own }).end(counted);
  }
  const charge = options.charge(api, key, whole);
  await send(read, vendorContext(model), options.answer(received, charge), port, response, received, own);
}

/** What a GET of the vendor's models answers, and Ollama's description of one; undefined: another path. */
function aboutModels(
  names: readonly string[],
  port: ServedPort,
  path: string,
  body: unknown,
  headers: IncomingHttpHeaders,
): string | undefined {
  const models = names.map((id) => ({ id, created, ownedBy: "vendor", ...capabilities }));
  switch (path) {
    case "/v1/models":
    case "/v1beta/models":
      return port.errorFormat.models?.list(models) ?? writeModelList(models, exact);
    case "/api/tags":
      return writeOllamaTags(models.map((info): OllamaModel => ({ info, digest: "0".repeat(64) })));
    case "/api/version":
      return JSON.stringify({ version: ollamaVersionNumber });
    case "/api/ps":
      return JSON.stringify({ models: [] });
    case "/api/show": {
      const model = models.find(({ id }) => isObject(body) && id === (body["model"] ?? body["name"]));
      return model && writeOllamaShow(model, model.id, headers["user-agent"] ?? "");
    }
  }
  return undefined;
}

const created = 1_700_000_000;
const capabilities = { endpoints: ["chat"], contextLength: 1_000_000, reasons: true, takesImages: true } as const;

async function send(
  read: ReadRequest,
  context: AnswerContext,
  scripted: ScriptedAnswer,
  port: ServedPort,
  response: ServerResponse,
  received: VendorRequest,
  own: Readonly<Record<string, string>>,
): Promise<void> {
  const { batches = [], failure, gapMs = 0, cutAfter = Infinity, endless = false } = scripted;
  if (failure) return sendFailure(failure(received.api), own, response, received);
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
  response.writeHead(200, { ...(read.streamHeaders ?? port.streamHeaders)(exact), ...own });
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

function sendFailure(
  { status, headers, body }: ScriptedFailure,
  own: Readonly<Record<string, string>>,
  response: ServerResponse,
  received: VendorRequest,
): void {
  response.writeHead(status, { "content-type": "application/json", ...own, ...headers });
  received.lastSentAt = performance.now();
  received.sent = JSON.stringify(body);
  response.end(received.sent);
}

/** Breaks the connection after what was written has been sent. */
function breakOff(response: ServerResponse): void {
  response.socket?.end(() => response.destroy());
}

async function untilClosed(response: ServerResponse): Promise<void> {
  if (!response.destroyed) await new Promise((resolve) => response.once("close", resolve));
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
