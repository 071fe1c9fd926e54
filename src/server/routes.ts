import { modelDoesNotExist, unknownPath } from "../apis/failures.ts";
import { writeModel, writeModelList } from "../apis/models/write-models.ts";
import { ollamaVoice } from "../apis/ollama-voice.ts";
import { openaiVoice } from "../apis/openai-voice.ts";
import { ports } from "../apis/ports.ts";
import type { PortSocket } from "../apis/port-socket.ts";
import type { ServedPort } from "../apis/port-state.ts";
import type { HeaderReader, Voice } from "../apis/voice.ts";
import { adminRoutes } from "./admin/admin-routes.ts";
import { answerPortRoute } from "./answer-port-route.ts";
import { applyTemplate, countTokens, answerAdapters, answerSlots, detokenize, tokenize } from "./token-endpoints.ts";
import { embed, rerank } from "./embed-and-rerank.ts";
import { generate } from "./generate.ts";
import { inspectRoutes } from "./inspect/inspect-routes.ts";
import { answerMetrics, answerHealth, answerLiveness } from "./health.ts";
import { modelsOf } from "./model-directory.ts";
import { plainPath } from "./exchange.ts";
import type { Answer, Route } from "./reply.ts";
import { sendPageFile, answerWelcome } from "./page.ts";
import { unknownModel } from "./unknown-model.ts";

const openai = { voice: openaiVoice };

/** Cohere's clients ask at `/v2/rerank`. */
const rerankRoute: Route = { ...openai, api: { name: "rerank", operation: "rerank" }, methods: { POST: rerank } };

/** Every path, with and without `/v1` before it. */
const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
  ...ports.flatMap(routesOf),
  ["/embeddings", { ...openai, api: { name: "embeddings", operation: "embeddings" }, methods: { POST: embed } }],
  ["/rerank", rerankRoute],
  ["/v2/rerank", rerankRoute],
  [
    "/models",
    {
      voice: listingVoice,
      methods: {
        GET(reply, { directory }) {
          const models = modelsOf(reply.client, directory)
            .list()
            .map(({ info }) => info);
          reply.send(
            200,
            "application/json",
            reply.voice.models?.list(models) ?? writeModelList(models, reply.profile),
          );
        },
      },
    },
  ],
  [
    "/models/{rest}",
    {
      voice: listingVoice,
      methods: {
        GET(reply, { directory }, name) {
          const models = modelsOf(reply.client, directory);
          const model = models.find(name);
          if (!model) throw unknownModel(name, models, modelDoesNotExist(name));
          const profile = reply.useProfile(model.from.profile);
          reply.send(200, "application/json", reply.voice.models?.one(model.info) ?? writeModel(model.info, profile));
        },
      },
    },
  ],
  ...adminRoutes,
  ...inspectRoutes,
  ["/tokenize", { ...openai, methods: { POST: tokenize } }],
  ["/detokenize", { ...openai, methods: { POST: detokenize } }],
  ["/apply-template", { ...openai, methods: { POST: applyTemplate } }],
  ["/slots", { ...openai, methods: { GET: answerSlots } }],
  ["/lora-adapters", { ...openai, methods: { GET: answerAdapters } }],
  ["/health", { ...openai, open: true, methods: { GET: answerHealth } }],
  ["/health/live", { ...openai, open: true, methods: { GET: answerLiveness } }],
  // It looks at keys itself: it may have one of its own.
  ["/metrics", { ...openai, open: true, methods: { GET: answerMetrics } }],
  ["", { ...openai, open: true, methods: { GET: answerWelcome } }],
  [
    "/page/{id}",
    {
      ...openai,
      open: true,
      methods: {
        GET(reply, { page }, name) {
          const file = page?.get(name);
          if (!file) throw unknownPath(reply.exchange.method, reply.exchange.path, knownPaths());
          sendPageFile(reply, file);
        },
      },
    },
  ],
]);

/** The paths of an API. */
function routesOf(port: ServedPort): [string, Route][] {
  const { path, voice, tokenCounter, probePath, state, name, operation = "chat" } = port;
  const found = new Map<string, Route>([
    [path, { voice, api: { name, operation }, methods: { POST: (reply, service) => generate(port, reply, service) } }],
  ]);
  if (tokenCounter) {
    const count: Answer = (reply, service) => countTokens(port.name, tokenCounter, reply, service);
    found.set(tokenCounter.path, { voice, methods: { POST: count } });
  }
  if (probePath !== undefined) found.set(probePath, { voice, open: true, methods: { GET: answerWelcome } });
  for (const route of state?.routes ?? []) {
    const answer: Answer = (reply, service, id) => answerPortRoute(port, route, reply, service, id);
    const before = found.get(route.path);
    found.set(route.path, { voice, ...before, methods: { ...before?.methods, [route.method]: answer } });
  }
  return [...found];
}

/** The API whose list of models is meant; OpenAI's, where the headers do not say. */
function listingVoice(header: HeaderReader): Voice {
  return ports.find(({ voice }) => voice.models?.isMeant(header) === true)?.voice ?? openaiVoice;
}

/**
 * The voice of an error at a path that is not known: of Ollama's API or of the API whose path it is below (`/v1/messages/batches`), else of
 * the API that the headers are from.
 */
export function voiceOfUnknown(path: string, header: HeaderReader): Voice {
  if (/^\/+api(?:\/|$)/.test(path)) return ollamaVoice;
  const plain = plainPath(path);
  return ports.find((port) => plain.startsWith(`${port.path}/`))?.voice ?? listingVoice(header);
}

/** Paths that are known without the version in front, as other servers have them. */
const besideVersion = /^\/(?:health|metrics|tokenize|detokenize|apply-template|slots|lora-adapters|v2)\b/;

/** Every path for clients but the root, with its methods, for the message of an error. */
export function knownPaths(): string[] {
  return [...routes].flatMap(([path, { methods, admin }]) => {
    if (path === "" || path === "/page/{id}" || admin === true) return [];
    const shown = (besideVersion.test(path) ? "" : "/v1") + path.replace("{rest}", "{id}");
    return Object.keys(methods).map((method) => `${method} ${shown}`);
  });
}

/** The route of a path, and what its parameter is there; undefined when there is none. */
export function routeOf(path: string): { readonly route: Route; readonly parameter: string } | undefined {
  const plain = path === "/v1/chat/completions" ? "/chat/completions" : plainPath(path);
  const route = routes.get(plain);
  if (route) return { route, parameter: "" };
  const [, first = "", id = "", ...rest] = plain.split("/");
  if (id === "") return undefined;
  const one = routes.get(["", first, "{id}", ...rest].join("/"));
  if (one) return { route: one, parameter: decoded(id) };
  const [inFolder = "", ...restInFolder] = rest;
  const other = inFolder === "" ? undefined : routes.get(["", first, id, "{id}", ...restInFolder].join("/"));
  if (other) return { route: other, parameter: decoded(inFolder) };
  const all = routes.get(`/${first}/{rest}`);
  return all && { route: all, parameter: decoded([id, ...rest].join("/")) };
}

/** A path of an API as its documentation has it, however the client wrote it. */
export function pathAsNamed(path: string): string {
  return `/v1${plainPath(path)}`;
}

/** How the API of a path speaks by WebSocket, where it does. */
export function socketAt(path: string): PortSocket | undefined {
  const plain = plainPath(path);
  return ports.find((port) => port.path === plain)?.socket;
}

/** Percent-decoded; as it is where that is impossible. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
