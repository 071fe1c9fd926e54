import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { ModelInfo } from "../../wire/core/engine.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { findJsonMistake } from "../../wire/core/json-mistake.ts";
import { isObject } from "../../wire/core/json.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { runSync } from "../../wire/core/steps.ts";
import { malformedJson, missingApiKey, unknownUrl } from "../../wire/apis/failures.ts";
import { writeModelList } from "../../wire/apis/models/models.ts";
import type { AnswerContext, ReadOptions, ReadRequest } from "../../wire/apis/port.ts";
import type { ServedPort } from "../../wire/apis/port-state.ts";
import { geminiPath } from "../../wire/apis/gemini/port.ts";
import { ollamaVersionNumber } from "../../wire/apis/ollama/port.ts";
import {
  ollamaName,
  type OllamaModel,
  readOllamaShow,
  writeOllamaShow,
  writeOllamaTags,
} from "../../wire/apis/ollama/models.ts";
import { ports } from "../../wire/apis/ports.ts";
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
  /** Its models, or their ids; absent: it has every model. */
  readonly models?: readonly (string | ModelInfo)[];
  /** The answer to a request that the vendor accepts. `charge`: for its prompt. May throw `FailureError`. */
  answer(received: VendorRequest, charge: PromptCharge): ScriptedAnswer | Promise<ScriptedAnswer>;
  /** What it answers at the paths of other APIs; undefined: as it does without this. May throw `FailureError`. */
  other?(asked: { readonly method: string; readonly path: string; body(): unknown }): object | undefined;
  /** Why it refuses a request before it reads it by the rules of its API: a foreign key, a foreign signature. */
  refusal?(received: VendorRequest): ScriptedFailure | undefined;
  /** Called for each request to the API, accepted or refused. */
  onRequest?(received: VendorRequest): void;
  /** Called with the words of each refusal by the rules of the API, and by what `answer` and `other` throw. */
  onRefusal?(words: string): void;
  /** The account of a key, which has a prompt cache of its own; default: the key. */
  account?(key: string): string;
  /** Shorter prompts are not cached, in tokens; default: as the vendor's models. */
  readonly leastCachedTokens?: number;
  /** The tokens that it counts of each prompt; default: those that it charges. `false`: it does not count, as Ollama. */
  readonly counted?: number | false;
  /** It asks for no key, as servers with a vendor's API on a machine of one's own. */
  readonly isKeyless?: boolean;
  /** It is another server with the vendor's API, which refuses only what it cannot read, and what `refusal` says. */
  readonly isLenient?: boolean;
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
    void answer({ ...options, charge }, request, response).catch(() => response.destroy());
  });
}

/** What is at a path. `counts`: the number of tokens. */
interface Served {
  readonly api: Api;
  readonly port: ServedPort;
  readonly counts: boolean;
}

function servedAt(path: string, apis: readonly Api[]): Served | undefined {
  const below = geminiPath(path)?.path ?? path;
  for (const api of apis) {
    const root = api === "gemini" ? "" : roots[api];
    for (const port of portsOf(api)) {
      if (root + port.path === below) return { api, port, counts: false };
      if (port.tokenCounter && root + port.tokenCounter.path === below) return { api, port, counts: true };
    }
  }
  return undefined;
}

/** Ollama continues texts at a path of their own. */
function portsOf(api: Api): readonly ServedPort[] {
  return api === "ollama" ? ports.filter(({ name }) => name.startsWith("ollama")) : [portOf(api)];
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
  {
    requestId = "",
    port = portOf(api),
    profile = vendorProfile,
    ...readers
  }: ReadOptions & { readonly requestId?: string; readonly port?: ServedPort } = {},
): ReadRequest {
  const standsFor = isObject(body) && typeof body["model"] === "string" ? body["model"] : undefined;
  return runSync(port.readRequest(body, requestId, { profile, forwards: true, standsFor, ...readers }));
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

async function answer(options: Vendor, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "GET", url = "/", headers } = request;
  const path = url.split("?", 1)[0] ?? "";
  const served = servedAt(path, options.apis);
  const { api, counts, port } = served ?? {
    api: options.apis[0] ?? "chat",
    counts: false,
    port: portOf(options.apis[0] ?? "chat"),
  };
  const header = (name: string): string | undefined => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
  const { searchParams } = new URL(url, "http://localhost");
  const query = (name: string): string | undefined => searchParams.get(name) ?? undefined;
  const requestId = port.errorFormat.newRequestId(Date.now(), random);
  const own = port.errorFormat.answerHeaders(requestId, 1);
  const json = { "content-type": "application/json", ...own };
  const fail = ({ failure }: FailureError): void => {
    const written = port.errorFormat.writeFailure(failure, exact, requestId, header);
    response.writeHead(written.status, { "content-type": written.contentType, ...own, ...written.headers });
    response.end(written.body);
  };
  const refuse = (error: unknown): void => {
    if (!(error instanceof FailureError) || response.headersSent) throw error;
    options.onRefusal?.(error.message);
    fail(error);
  };
  const text = await readText(request);
  const body = parsed(text);
  try {
    const about = aboutModels(options, port, method, path, text, headers);
    if (about !== undefined) return void response.writeHead(200, json).end(about);
  } catch (error) {
    return refuse(error);
  }
  if (method !== "POST" || !served || (counts && options.counted === false)) return fail(unknownUrl(method, path));
  const key = port.errorFormat.keyIn(header, query);
  const inPath = geminiPath(path);
  const whole =
    isObject(body) && inPath ? { ...body, model: inPath.model, ...(!counts && { stream: inPath.stream }) } : body;
  const received: VendorRequest = {
    api,
    path: url,
    headers,
    key,
    text,
    body: isObject(body) ? body : undefined,
    request: undefined,
    refusal: undefined,
    counts,
    at: performance.now(),
    lastSentAt: undefined,
    sent: "",
    wasLeft: false,
  };
  response.on("close", () => (received.wasLeft = !response.writableFinished));
  const refusal = isObject(body) ? options.refusal?.(received) : undefined;
  if (refusal) return sendFailure(refusal, own, response, received);
  const profile = options.isLenient ? exact : vendorProfile;
  let read: ReadRequest | undefined;
  try {
    // Ollama's own server has no keys.
    if (api !== "ollama" && key === "" && !options.isKeyless) throw missingApiKey();
    if (body === undefined) throw notJson(text, port);
    if (counts && port.tokenCounter) {
      const readers = { profile, forwards: true, header, query };
      received.request = runSync(port.tokenCounter.readRequest(whole, requestId, readers)).request;
    } else {
      read = readAsVendor(api, whole, { requestId, port, profile, header, query });
      received.request = read.request;
    }
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    received.refusal = error.failure;
    options.onRequest?.(received);
    return refuse(error);
  }
  options.onRequest?.(received);
  const { model } = received.request;
  try {
    if (options.models) checkModel(received.request, port, modelsOf(options));
    if (!read || !isObject(whole)) {
      const counted = port.tokenCounter?.write(options.counted || promptTokensOf(received.body ?? {}));
      return void response.writeHead(200, json).end(counted);
    }
    const scripted = await options.answer(received, options.charge(api, key, whole));
    await send(read, vendorContext(model), scripted, { port, response, received, own });
  } catch (error) {
    refuse(error);
  }
}

function notJson(text: string, { errorFormat: { missingBody } }: ServedPort): FailureError {
  if (text.trim() === "" && missingBody !== undefined) return invalidRequest(missingBody);
  return malformedJson(runSync(findJsonMistake(Buffer.from(text))));
}

/** Throws `FailureError` for a model that the vendor does not have, and for what it is not capable of. */
function checkModel(request: GenerationRequest, port: ServedPort, models: readonly ModelInfo[]): void {
  const { model } = request;
  const nameOf = port.name.startsWith("ollama") ? ollamaName : String;
  const info = models.find(({ id }) => nameOf(id) === nameOf(model));
  if (info) return port.checkModel?.(request, info, () => models);
  const failure = { kind: "not-found", status: 404, message: `model: ${model}`, param: null } as const;
  throw new FailureError({ ...failure, code: "model_not_found", model });
}

function modelsOf({ models = [] }: VendorOptions): ModelInfo[] {
  return models.map((model) =>
    typeof model === "string" ? { id: model, created, ownedBy: "vendor", ...capabilities } : model,
  );
}

/** What a GET of the vendor's models answers, and Ollama's description of one; undefined: another path. */
function aboutModels(
  options: VendorOptions,
  port: ServedPort,
  method: string,
  path: string,
  text: string,
  headers: IncomingHttpHeaders,
): string | undefined {
  const read = (): unknown => {
    const body = parsed(text);
    if (body === undefined) throw notJson(text, port);
    return body;
  };
  const other = options.other?.({ method, path, body: read });
  if (other) return JSON.stringify(other);
  const models = modelsOf(options);
  switch (path) {
    case "/v1/models":
    case "/v1beta/models":
      return port.errorFormat.models?.list(models) ?? writeModelList(models, exact);
    case "/":
      return options.apis.includes("ollama") ? "Ollama is running" : undefined;
    case "/api/tags":
      return writeOllamaTags(models.map((info): OllamaModel => ({ info, digest: "0".repeat(64) })));
    case "/api/version":
      return JSON.stringify({ version: ollamaVersionNumber });
    case "/api/ps":
      return JSON.stringify({ models: [] });
    case "/api/show": {
      const name = readOllamaShow(read(), exact);
      const model = models.find(({ id }) => ollamaName(id) === ollamaName(name));
      return model && writeOllamaShow(model, name, headers["user-agent"] ?? "");
    }
  }
  return undefined;
}

const created = 1_700_000_000;
const capabilities = { endpoints: ["chat"], contextLength: 1_000_000, reasons: true, takesImages: true } as const;

interface Answering {
  readonly port: ServedPort;
  readonly response: ServerResponse;
  readonly received: VendorRequest;
  readonly own: Readonly<Record<string, string>>;
}

async function send(
  read: ReadRequest,
  context: AnswerContext,
  scripted: ScriptedAnswer,
  { port, response, received, own }: Answering,
): Promise<void> {
  const { batches = [], failure, gapMs = 0, cutAfter = Infinity, endless = false } = scripted;
  if (failure) return sendFailure(failure(received.api), own, response, received);
  if (!read.request.stream) {
    const generation = accumulate([...batches].flat());
    if ("failure" in generation.end) throw new FailureError(generation.end.failure);
    const written = read.writeResponse(generation, context);
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
  const last = endless ? [...batches].at(-1) : undefined;
  let at = 0;
  for (const batch of batches) {
    const end = batch.find((event) => event.type === "end")?.end;
    if (!response.headersSent && end && "failure" in end) throw new FailureError(end.failure);
    if (!response.headersSent)
      response.writeHead(200, { ...(read.streamHeaders ?? port.streamHeaders)(exact), ...own });
    if (at === cutAfter) return breakOff(response);
    if (batch === last) await untilClosed(response);
    if (response.destroyed) return;
    if (at++ > 0 && gapMs > 0) await pause(gapMs);
    received.lastSentAt = performance.now();
    const text = writer.write(batch);
    received.sent += text;
    if (!response.write(text)) await drained(response);
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

/** Resolves when more may be written, or the client has left. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
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
