import { readEmbeddingsRequest } from "../apis/embeddings/read-request.ts";
import { writeEmbeddings } from "../apis/embeddings/write-embeddings.ts";
import { modelNotFound } from "../apis/failures.ts";
import { readRerankRequest } from "../apis/rerank/read-request.ts";
import { writeRanking } from "../apis/rerank/write-ranking.ts";
import { estimateInputs } from "../core/estimate-tokens.ts";
import { FailureError, invalidRequest } from "../core/failure.ts";
import { ClientGone } from "./exchange.ts";
import { takeTurn } from "./keys/take-turn.ts";
import { modelsOf } from "./model-directory.ts";
import { readJson } from "./read-json.ts";
import type { Reply } from "./reply.ts";
import type { Service } from "./service.ts";
import { unknownModel } from "./unknown-model.ts";

/** `POST /v1/embeddings`. */
export async function embed(reply: Reply, service: Service): Promise<void> {
  const { exchange, record, requestId, client } = reply;
  const directory = modelsOf(client, service.directory);
  const received = await readJson(reply, service);
  record.received(received);
  const body = received.value;
  const model = directory.namedIn(body);
  const profile = reply.useProfile(model?.from.profile);
  const { request, encoding } = readEmbeddingsRequest(body, requestId);
  record.model = request.model;
  if (!model) {
    const all = profile.listsModels ? directory.list() : [];
    const known = all.filter(({ info }) => info.endpoints.includes("embeddings"));
    const ids = known.map(({ info }) => info.id);
    throw unknownModel(request.model, directory, modelNotFound(request.model, ids));
  }
  const { engine } = model.from;
  if (!engine.embed) {
    const { failure } = invalidRequest(`The model '${request.model}' does not make embeddings.`, "model");
    throw new FailureError({ ...failure, status: 404 });
  }
  record.servedModel = model.info.id;
  const estimate = client?.limits ? estimateInputs(request.inputs) : 0;
  const turn = client?.limits && (await takeTurn(reply, service, estimate));
  record.trace?.operationBegins("embeddings", model.info.id);
  const answer = await engine
    .embed(
      { ...request, model: model.engineModel, ...(client && { owner: client.owner }) },
      exchange.departure.signal,
      record,
    )
    .catch((error: unknown) => {
      throw exchange.departure.happened ? new ClientGone({ cause: error }) : error;
    });
  turn?.costs(answer.promptTokens ?? estimate);
  if (answer.promptTokens !== null) record.usage = { promptTokens: answer.promptTokens, completionTokens: 0 };
  const shown = (profile.resolvesModels && (model.info.resolvedId ?? answer.model)) || request.model;
  reply.send(200, "application/json", writeEmbeddings(answer, shown, encoding, profile));
}

/** `POST /v1/rerank`, in the shape of Cohere's and Jina's APIs. */
export async function rerank(reply: Reply, service: Service): Promise<void> {
  const { exchange, record, requestId, client } = reply;
  const directory = modelsOf(client, service.directory);
  const received = await readJson(reply, service);
  record.received(received);
  const model = directory.namedIn(received.value);
  const profile = reply.useProfile(model?.from.profile);
  const read = readRerankRequest(received.value, requestId);
  const { request } = read;
  record.model = request.model;
  if (!model) {
    const known = profile.listsModels ? directory.list() : [];
    const ids = known.filter(({ info }) => info.endpoints.includes("rerank")).map(({ info }) => info.id);
    throw unknownModel(request.model, directory, modelNotFound(request.model, ids));
  }
  const { engine } = model.from;
  if (!engine.rerank)
    throw new FailureError({
      kind: "not-found",
      message: `The model '${request.model}' is not a reranker.`,
      status: 404,
      param: "model",
      code: null,
    });
  record.servedModel = model.info.id;
  // A reranker reads the query with each document.
  const estimate = client?.limits
    ? estimateInputs(request.documents) + estimateInputs([request.query]) * request.documents.length
    : 0;
  const turn = client?.limits && (await takeTurn(reply, service, estimate));
  record.trace?.operationBegins("rerank", model.info.id);
  const asked = { ...request, model: model.engineModel, ...(client && { owner: client.owner }) };
  const answer = await engine.rerank(asked, exchange.departure.signal, record).catch((error: unknown) => {
    throw exchange.departure.happened ? new ClientGone({ cause: error }) : error;
  });
  turn?.costs(answer.promptTokens ?? estimate);
  if (answer.promptTokens !== null) record.usage = { promptTokens: answer.promptTokens, completionTokens: 0 };
  const shown = (profile.resolvesModels && (model.info.resolvedId ?? answer.model)) || request.model;
  reply.send(200, "application/json", writeRanking(answer, read, shown));
}
