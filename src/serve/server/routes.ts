import { completionNotFound, modelDoesNotExist, unknownPath } from "../../wire/apis/failures.ts";
import { codexCatalog, writeModel, writeModelList } from "../../wire/apis/models/models.ts";
import { type ApiErrorFormat, type HeaderReader, openaiErrorFormat } from "../../wire/apis/api-error-format.ts";
import { geminiErrorFormat, geminiModelsPath } from "../../wire/apis/gemini/port.ts";
import { messagesPort } from "../../wire/apis/messages/port.ts";
import { messageBatchRoutes, openaiBatchRoutes } from "./batches/batch-endpoints.ts";
import { ollamaErrorFormat } from "../../wire/apis/ollama/port.ts";
import { ports } from "../../wire/apis/ports.ts";
import type { PortSocket, ServedPort } from "../../wire/apis/port-state.ts";
import { keyRoutes } from "./admin/key-routes.ts";
import { adminRoutes } from "./admin/admin-routes.ts";
import { answerPortRoute } from "./answer-port-route.ts";
import { embedEndpoint, rerankEndpoint } from "./embed-and-rerank.ts";
import { decodedSegment, plainPath } from "./exchange.ts";
import { geminiRoutes } from "./gemini.ts";
import { deleteFile, listFiles, requireFiles, showContent, showFile, uploadFile } from "./files/file-endpoints.ts";
import { generationEndpoint } from "./generate.ts";
import { answerHealth, answerLiveness, answerMetrics } from "./health.ts";
import { hashOf } from "./keys/key-ring.ts";
import { hostedToolsOf } from "./keys/hosted-tools-of.ts";
import { inspectRoutes } from "./inspect/inspect-routes.ts";
import { modelsOf, unknownModel } from "./model-directory.ts";
import { ollamaRoutes } from "./ollama.ts";
import { answerWelcome, sendPageFile, sendUnlessKnown } from "./page.ts";
import type { EndpointHandler, Reply, ServerRoute } from "./reply.ts";
import type { Service } from "./service.ts";
import { resumeStream, stopStream } from "./resume.ts";
import {
  answerAdapters,
  answerSlots,
  applyTemplateEndpoint,
  controlAnswer,
  detokenizeEndpoint,
  tokenCountEndpoint,
  tokenizeEndpoint,
} from "./token-endpoints.ts";

const openai = { conventions: openaiErrorFormat };

/** Cohere's clients use `/v2/rerank`. */
const rerankRoute: ServerRoute = {
  ...openai,
  api: { name: "rerank", operation: "rerank" },
  methods: { POST: rerankEndpoint },
};

/** OpenAI keeps answers of chat for requests with `store: true`. */
const storedChatRoute: ServerRoute = { ...openai, methods: { GET: noStoredChat, DELETE: noStoredChat } };

function noStoredChat(_reply: Reply, _service: Service, id: string): void {
  throw completionNotFound(id);
}

/** Files of both APIs, which an upstream may have itself. */
const ofFiles = { conventions: conventionsOfList, requireEnabled: requireFiles, upstreamFirst: true };

/** Every path, with and without `/v1`. */
const routes: ReadonlyMap<string, ServerRoute> = new Map<string, ServerRoute>([
  ...ports.flatMap(routesOf),
  ...ports.flatMap(controlRoute),
  [
    "/embeddings",
    { ...openai, api: { name: "embeddings", operation: "embeddings" }, methods: { POST: embedEndpoint } },
  ],
  ["/chat/completions/{id}", storedChatRoute],
  ["/chat/completions/{id}/messages", storedChatRoute],
  ["/rerank", rerankRoute],
  ["/v2/rerank", rerankRoute],
  ["/streams/{id}", { conventions: conventionsOfList, methods: { GET: resumeStream, DELETE: stopStream } }],
  ["/files", { ...ofFiles, methods: { GET: listFiles, POST: uploadFile } }],
  ["/files/{id}", { ...ofFiles, methods: { GET: showFile, DELETE: deleteFile } }],
  ["/files/{id}/content", { ...ofFiles, methods: { GET: showContent } }],
  ...openaiBatchRoutes.map(([path, methods]) => [path, { ...ofFiles, ...openai, methods }] as const),
  ...messageBatchRoutes.map(
    ([path, methods]) => [path, { ...ofFiles, conventions: messagesPort.errorFormat, methods }] as const,
  ),
  ["/models", { conventions: conventionsOfList, methods: { GET: listModels } }],
  ["/models/{rest}", { conventions: conventionsOfList, methods: { GET: showModel } }],
  ...adminRoutes,
  ...keyRoutes,
  ...inspectRoutes,
  ["/tokenize", { ...openai, methods: { POST: tokenizeEndpoint } }],
  ["/detokenize", { ...openai, methods: { POST: detokenizeEndpoint } }],
  ["/apply-template", { ...openai, methods: { POST: applyTemplateEndpoint } }],
  ["/slots", { ...openai, methods: { GET: answerSlots } }],
  ["/lora-adapters", { ...openai, methods: { GET: answerAdapters } }],
  ...ollamaRoutes,
  ...geminiRoutes,
  [geminiModelsPath, { conventions: geminiErrorFormat, methods: { GET: listModels } }],
  // Names of models may have slashes.
  ["/v1beta/{rest}", { conventions: geminiErrorFormat, methods: { GET: showGeminiModel } }],
  ["/health", { ...openai, open: true, methods: { GET: answerHealth } }],
  ["/health/live", { ...openai, open: true, methods: { GET: answerLiveness } }],
  // The endpoint checks keys itself: metrics may have keys of their own.
  ["/metrics", { ...openai, open: true, methods: { GET: answerMetrics } }],
  ["", { ...openai, open: true, methods: { GET: answerWelcome } }],
  ["/page/{id}", { ...openai, open: true, methods: { GET: answerPage } }],
]);

/** The path that controls running answers, below the path of each API whose answers can have reasoning. */
function controlRoute({ path, errorFormat: conventions, operation = "chat" }: ServedPort): [string, ServerRoute][] {
  return operation === "chat" ? [[`${path}/control`, { conventions, methods: { POST: controlAnswer } }]] : [];
}

/** The paths of an API. */
function routesOf(port: ServedPort): [string, ServerRoute][] {
  const { path, errorFormat: conventions, tokenCounter, probePath, state, name, operation = "chat" } = port;
  const found = new Map<string, ServerRoute>([
    [path, { conventions, api: { name, operation }, methods: { POST: generationEndpoint(port) } }],
  ]);
  if (tokenCounter)
    found.set(tokenCounter.path, { conventions, methods: { POST: tokenCountEndpoint(port.name, tokenCounter) } });
  if (probePath !== undefined) found.set(probePath, { conventions, open: true, methods: { GET: answerWelcome } });
  for (const route of state?.routes ?? []) {
    const handler: EndpointHandler = (reply, service, id) => answerPortRoute(port, route, reply, service, id);
    const before = found.get(route.path);
    found.set(route.path, { conventions, ...before, methods: { ...before?.methods, [route.method]: handler } });
  }
  return [...found];
}

async function listModels(reply: Reply, { directory, hostedTools }: Service): Promise<void> {
  const models = modelsOf(reply.caller.client, directory)
    .list()
    .map(({ info }) => info);
  const contentType = "application/json";
  const others = reply.conventions.models?.list(models, (name) => reply.exchange.queries(name));
  // Codex's form, in which it also sends its version.
  if (others === undefined && reply.exchange.query("client_version") !== undefined) {
    const text = writeModelList(models, reply.profile, [], { models: codexCatalog(models) });
    return sendUnlessKnown(reply, { contentType, text, etag: `"${await hashOf(text)}"` });
  }
  reply.send(
    200,
    contentType,
    others ?? writeModelList(models, reply.profile, hostedToolsOf(reply.caller.client, hostedTools)?.names),
  );
}

function showModel(reply: Reply, { directory }: Service, name: string): void {
  const models = modelsOf(reply.caller.client, directory);
  const model = models.find(name);
  if (!model) throw unknownModel(name, models, modelDoesNotExist(name));
  const profile = reply.useProfile(model.from.profile);
  reply.send(200, "application/json", reply.conventions.models?.one(model.info) ?? writeModel(model.info, profile));
}

function showGeminiModel(reply: Reply, service: Service, rest: string): void {
  const [, name] = /^models\/(.+)$/s.exec(rest) ?? [];
  if (name === undefined) throw unknownPath(reply.exchange.method, reply.exchange.path, knownPaths());
  showModel(reply, service, name);
}

async function answerPage(reply: Reply, { page }: Service, name: string): Promise<void> {
  const file = (await page?.())?.get(name);
  if (!file) throw unknownPath(reply.exchange.method, reply.exchange.path, knownPaths());
  sendPageFile(reply, file);
}

/** The conventions of the API whose list of models is requested; by default OpenAI's. */
function conventionsOfList(header: HeaderReader, query: HeaderReader): ApiErrorFormat {
  return (
    ports.find(({ errorFormat: voice }) => voice.models?.isRequested(header, query) === true)?.errorFormat ??
    openaiErrorFormat
  );
}

/**
 * The conventions for an error at an unknown path: those of Ollama's or Gemini's API, of the API whose path it is below (`/v1/messages/batches`), or
 * else of the API that the headers belong to.
 */
export function conventionsOfUnknown(path: string, header: HeaderReader, query: HeaderReader): ApiErrorFormat {
  if (/^\/+api(?:\/|$)/.test(path)) return ollamaErrorFormat;
  if (/^\/+v1beta(?:\/|$)/.test(path)) return geminiErrorFormat;
  const plain = plainPath(path);
  return ports.find((port) => plain.startsWith(`${port.path}/`))?.errorFormat ?? conventionsOfList(header, query);
}

/** Paths that other servers have without a version. */
const withoutVersion = /^\/(?:health|metrics|tokenize|detokenize|apply-template|slots|lora-adapters|v1beta|v2|api)\b/;

/** Every path for clients except the root, with its methods, for an error message. */
export function knownPaths(): string[] {
  return [...routes].flatMap(([path, { methods, admin }]) => {
    if (path === "" || path === "/page/{id}" || admin === true) return [];
    const named = path.replace("/v1beta/{rest}", `${geminiModelsPath}/{id}`).replace("{rest}", "{id}");
    const shown = (withoutVersion.test(path) ? "" : "/v1") + named.replace("/models:", "/models/{id}:");
    return Object.keys(methods).map((method) => `${method} ${shown}`);
  });
}

/**
 * The route of a path, and the value of its parameter; undefined if there is none. `{id}` is the second or third segment, `{item}` the
 * fourth, `{rest}` all segments after the first. The values of `{id}` and `{item}` stay encoded, with a slash between them. Two lookups in
 * a map: a router from npm would need more code around it to normalize and decode.
 */
export function routeOf(path: string): { readonly route: ServerRoute; readonly parameter: string } | undefined {
  const plain = path === "/v1/chat/completions" ? "/chat/completions" : plainPath(path);
  const exact = routes.get(plain);
  if (exact) return { route: exact, parameter: "" };
  const [, first = "", ...segments] = plain.split("/");
  for (const [at, segment] of segments.slice(0, 2).entries()) {
    const route = segment === "" ? undefined : routes.get(["", first, ...segments.with(at, "{id}")].join("/"));
    if (route) return { route, parameter: decodedSegment(segment) };
  }
  const [id = "", second = "", item = ""] = segments;
  const ofItem = segments.length === 3 && item !== "" ? routes.get(`/${first}/{id}/${second}/{item}`) : undefined;
  if (ofItem)
    return { route: ofItem, parameter: [id, item].map((part) => encodeURIComponent(decodedSegment(part))).join("/") };
  const route = segments.length === 0 || segments[0] === "" ? undefined : routes.get(`/${first}/{rest}`);
  return route && { route, parameter: decodedSegment(segments.join("/")) };
}

/** A path of an API as its documentation writes it. */
export function pathAsNamed(path: string): string {
  const plain = plainPath(path);
  return withoutVersion.test(plain) ? plain : `/v1${plain}`;
}

/** How the API of a path works over WebSocket, if it does. */
export function socketAt(path: string): PortSocket | undefined {
  const plain = plainPath(path);
  return ports.find((port) => port.path === plain)?.socket;
}
