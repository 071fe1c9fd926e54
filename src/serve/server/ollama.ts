import {
  readOllamaEmbed,
  readOllamaEmbeddings,
  type ReadOllamaEmbed,
  writeOllamaEmbed,
  writeOllamaEmbeddings,
} from "../../wire/apis/ollama/embed.ts";
import {
  digestText,
  namedModel,
  type OllamaLoadedModel,
  type OllamaModel,
  progressLine,
  readOllamaPull,
  readOllamaShow,
  writeOllamaProcesses,
  writeOllamaShow,
  writeOllamaTags,
} from "../../wire/apis/ollama/models.ts";
import { ollamaEmbedErrorFormat, ollamaErrorFormat, ollamaVersionNumber } from "../../wire/apis/ollama/port.ts";
import { ollamaName } from "../../wire/apis/ollama/models.ts";
import { modelNotFound } from "../../wire/apis/failures.ts";
import { canAnswer, type EmbeddingAnswer } from "../../wire/core/engine.ts";
import { estimateInputs } from "../../wire/core/estimate-tokens.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { controlOf, taskSteps } from "./admin/admin-routes.ts";
import type { ControlledModel } from "./admin/model-control.ts";
import { askVectors } from "./embed-and-rerank.ts";
import { keepLoaded } from "./generate.ts";
import { hashOf } from "./keys/key-ring.ts";
import { modelsOf, type ServedModel, unknownModel } from "./model-directory.ts";
import { readJsonBody } from "./read-json.ts";
import type { EndpointHandler, ModelEndpoint, NamedRequest, Reply, ServerRoute } from "./reply.ts";
import type { Service } from "./service.ts";
import { knownInfo } from "./thinking-models.ts";
import { sendEvents } from "./write-answer.ts";

/*
 * The paths of Ollama's API, except those that generate, which are ports. Source: ollama 0.33.0, server/routes.go.
 */

const json = "application/json; charset=utf-8";
const ollama = { conventions: ollamaErrorFormat } as const;
const embedding = {
  conventions: ollamaEmbedErrorFormat,
  api: { name: "embeddings", operation: "embeddings" },
} as const;

type ReadEmbed = NamedRequest & ReadOllamaEmbed;

export const ollamaRoutes: readonly (readonly [path: string, route: ServerRoute])[] = [
  ["/api/version", { ...ollama, open: true, methods: { GET: sendVersion } }],
  ["/api/tags", { ...ollama, methods: { GET: sendTags } }],
  ["/api/ps", { ...ollama, methods: { GET: sendProcesses } }],
  ["/api/show", { ...ollama, methods: { POST: showModel } }],
  ["/api/embed", { ...embedding, methods: { POST: embedEndpoint(readOllamaEmbed, writeOllamaEmbed) } }],
  ["/api/embeddings", { ...embedding, methods: { POST: embedEndpoint(readOllamaEmbeddings, writeOllamaEmbeddings) } }],
  ["/api/pull", { ...ollama, admin: true, methods: { POST: pullModel } }],
  [
    "/api/delete",
    { ...ollama, methods: { DELETE: refuse("deletes no models: remove it from the configuration and reload it") } },
  ],
  [
    "/api/copy",
    { ...ollama, methods: { POST: refuse("copies no models: give it an alias in the configuration and reload it") } },
  ],
  [
    "/api/create",
    { ...ollama, methods: { POST: refuse("creates no models: add one to the configuration and reload it") } },
  ],
  ["/api/push", { ...ollama, methods: { POST: refuse("publishes no models") } }],
  [
    "/api/blobs/{id}",
    {
      ...ollama,
      methods: { GET: noBlob, POST: refuse("stores no files: add a model to the configuration and reload it") },
    },
  ],
];

function sendVersion(reply: Reply): void {
  reply.send(200, json, JSON.stringify({ version: ollamaVersionNumber }));
}

async function sendTags(reply: Reply, { directory }: Service): Promise<void> {
  const models = modelsOf(reply.caller.client, directory).list();
  reply.send(200, json, writeOllamaTags(await Promise.all(models.map((model) => withDigest(knownInfo(model))))));
}

async function withDigest(info: OllamaModel["info"]): Promise<OllamaModel> {
  return { info, digest: await hashOf(digestText(info)) };
}

/** Local models that are loaded: others have no memory of this server. */
async function sendProcesses(reply: Reply, { directory, admin }: Service): Promise<void> {
  const now = Date.now();
  const states = new Map((await admin.control?.list())?.models.map((state) => [state.name, state]));
  const loaded = modelsOf(reply.caller.client, directory)
    .list()
    .flatMap((model) => {
      const state = states.get(model.from.name);
      const isLocal = state?.memory !== undefined && state.state === "ready";
      return isLocal ? [asLoaded(model, state, now)] : [];
    });
  reply.send(200, json, writeOllamaProcesses(await Promise.all(loaded), now));
}

async function asLoaded({ info }: ServedModel, state: ControlledModel, now: number): Promise<OllamaLoadedModel> {
  const { memory, idle_unload_ms: idleMs } = state;
  return {
    ...(await withDigest(info)),
    memory: memory ?? 0,
    expiresMs: typeof idleMs === "number" ? now + idleMs : null,
  };
}

async function showModel(reply: Reply, service: Service): Promise<void> {
  const name = readOllamaShow(await readJsonBody(reply, service), reply.profile);
  const models = modelsOf(reply.caller.client, service.directory);
  const model = models.find(name);
  if (!model) throw unknownModel(name, models, modelNotFound(ollamaName(name), []));
  reply.send(200, json, writeOllamaShow(knownInfo(model), name, reply.exchange.header("user-agent") ?? ""));
}

/** `POST /api/embed` and `/api/embeddings`. */
function embedEndpoint(readBody: typeof readOllamaEmbed, write: typeof writeOllamaEmbed): ModelEndpoint<ReadEmbed> {
  return {
    lists: "embeddings",
    read(body, { profile }, { requestId }) {
      const read = readBody(body, requestId, profile);
      return { name: read.request.model, ...read };
    },
    check({ from: { engine } }) {
      if (!canAnswer(engine, "embed")) throw invalidRequest("this model does not support embeddings", "model");
    },
    cost: ({ request }) => ({ prompt: estimateInputs(request.inputs) }),
    async answer(read, model, reply, service) {
      if (read.keepLoadedMs !== undefined) keepLoaded(model, read.keepLoadedMs, reply, service);
      const { request } = read;
      const answer = request.inputs.length === 0 ? noVectors : await askVectors(request, model, reply, service);
      reply.send(200, json, write(answer, read, performance.now() - reply.record.asked.receivedAt));
    },
  };
}

const noVectors: EmbeddingAnswer = { vectors: [], promptTokens: null };

/** `POST /api/pull`: downloads a model of Hugging Face. Needs access to the admin API, because it fills the disk. */
async function pullModel(reply: Reply, service: Service): Promise<void> {
  const { name, source, stream } = readOllamaPull(await readJsonBody(reply, service), reply.profile);
  Object.assign(reply.record.asked, { model: name, stream });
  const lines = pullLines(reply, service, name, source);
  if (stream) {
    const { keepAliveMs } = service.settings;
    const headers = { "content-type": "application/x-ndjson" };
    return sendEvents(reply, lines, headers, keepAliveMs, progressLine({ status: "pulling manifest" }));
  }
  let last = "";
  for await (const line of lines) last = line;
  reply.send(200, json, last.trimEnd());
}

async function* pullLines(
  reply: Reply,
  service: Service,
  name: string,
  source: string | undefined,
): AsyncGenerator<string> {
  const served = service.directory.find(name) ?? (source === undefined ? undefined : service.directory.find(source));
  const pulled = source ?? (served?.info.id.startsWith("hf:") === true ? served.info.id : undefined);
  if (pulled === undefined && !served)
    throw new FailureError({
      kind: "not-found",
      status: 500,
      message: `pull model manifest: file does not exist: ${name.slice(0, 200)} is not a served model, and this server downloads from Hugging Face only. Pull hf.co/OWNER/REPO[:QUANT].`,
    });
  const control = controlOf(service);
  yield progressLine({ status: "pulling manifest" });
  if (pulled !== undefined) {
    // The digest of a file is not known before it is complete. Clients only use it as an id of the download.
    const digest = await hashOf(pulled);
    const head = { status: `pulling ${digest.slice(0, 12)}`, digest: `sha256:${digest}` };
    try {
      for await (const step of taskSteps(reply, (task) => control.pull(pulled, task))) {
        if (!("progress" in step)) continue;
        const { bytes = 0, total_bytes: total = 0 } = step.progress;
        yield progressLine({ ...head, ...(total > 0 && { total }), ...(bytes > 0 && { completed: bytes }) });
      }
    } catch (error) {
      if (!reply.sent || !(error instanceof FailureError)) throw error;
      const { body } = ollamaErrorFormat.writeFailure(error.failure, reply.profile, reply.requestId);
      reply.record.answer.see([{ type: "end", end: { kind: "rejected", failure: error.failure } }]);
      return yield `${body}\n`;
    }
    yield progressLine({ status: "verifying sha256 digest" });
    yield progressLine({ status: "writing manifest" });
  }
  yield progressLine({ status: "success" });
}

/** Refuses a change of the models. */
function refuse(words: string): EndpointHandler {
  return async (reply, service) => {
    const { method, path } = reply.exchange;
    // The body of a blob is a file.
    const name = path.includes("/blobs/") ? undefined : namedModel(await readJsonBody(reply, service));
    const of = name === undefined ? "" : ` (${name.slice(0, 200)})`;
    throw new FailureError({
      kind: "permission",
      status: 403,
      message: `${method} ${path}${of} is not supported: this server ${words}.`,
    });
  };
}

function noBlob(_reply: Reply, _service: Service, digest: string): void {
  throw new FailureError({ kind: "not-found", status: 404, message: `blob ${JSON.stringify(digest)} not found` });
}
