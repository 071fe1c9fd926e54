import { readEmbeddingsRequest, writeEmbeddings } from "../../wire/apis/embeddings/embeddings.ts";
import { readRerankRequest, writeRanking } from "../../wire/apis/rerank/rerank.ts";
import {
  canAnswer,
  type EmbeddingAnswer,
  type EmbeddingRequest,
  type EngineAnswer,
  type EngineQuestion,
} from "../../wire/core/engine.ts";
import { estimateInputs } from "../../wire/core/estimate-tokens.ts";
import { FailureError, invalidRequest } from "../../wire/core/failure.ts";
import { notAllowedToEmbed } from "../../wire/apis/failures.ts";
import { ClientGone } from "./exchange.ts";
import { textsSeenByHook } from "./hook/with-hook.ts";
import type { Service } from "./service.ts";
import type { ServedModel } from "./model-directory.ts";
import type { ModelEndpoint, NamedRequest, Reply } from "./reply.ts";

type ReadEmbeddings = NamedRequest & ReturnType<typeof readEmbeddingsRequest>;
type ReadRerank = NamedRequest & ReturnType<typeof readRerankRequest>;

/** `POST /v1/embeddings`. */
export const embedEndpoint: ModelEndpoint<ReadEmbeddings> = {
  lists: "embeddings",
  read(body, _options, { requestId }) {
    const read = readEmbeddingsRequest(body, requestId);
    return { name: read.request.model, ...read };
  },
  findsModelFirst: true,
  check({ from: { engine } }, { name }, _others, { judgesAsVendor }) {
    if (canAnswer(engine, "embed")) return;
    if (judgesAsVendor) throw notAllowedToEmbed();
    const { failure } = invalidRequest(`The model '${name}' does not make embeddings.`, "model");
    throw new FailureError({ ...failure, status: 404 });
  },
  cost: ({ request }) => ({ prompt: estimateInputs(request.inputs) }),
  async answer({ request, encoding }, model, reply, service) {
    const seen = await inputsSeen(request, model, reply, service);
    const { answer, shownModel } = await ask("embeddings", { kind: "embed", request: seen }, model, reply);
    reply.send(200, "application/json", writeEmbeddings(answer, shownModel, encoding, reply.profile));
  },
};

/** `POST /v1/rerank`, as Cohere's and Jina's APIs have it. */
export const rerankEndpoint: ModelEndpoint<ReadRerank> = {
  lists: "rerank",
  read(body, _options, { requestId }) {
    const read = readRerankRequest(body, requestId);
    return { name: read.request.model, ...read };
  },
  check({ from: { engine } }, { name }) {
    if (canAnswer(engine, "rerank")) return;
    throw new FailureError({
      kind: "not-found",
      message: `The model '${name}' is not a reranker.`,
      status: 404,
      param: "model",
      code: null,
    });
  },
  // A reranker processes the query with each document.
  cost: ({ request: { query, documents } }) => ({
    prompt: estimateInputs(documents) + estimateInputs([query]) * documents.length,
  }),
  async answer(read, model, reply, service) {
    const { query: asked, documents: given } = read.request;
    const [query, ...documents] = (
      await textsSeenByHook(reply.requestId, [asked, ...given], model, reply, service)
    ).map(String);
    const request = { ...read.request, query: query ?? asked, documents };
    const { answer, shownModel } = await ask("rerank", { kind: "rerank", request }, model, reply);
    reply.send(200, "application/json", writeRanking(answer, read, shownModel));
  },
};

/** Asks the engine for vectors, and records what they cost. Rejects with `ClientGone` if the client has left. */
export async function askVectors(
  request: EmbeddingRequest,
  model: ServedModel,
  reply: Reply,
  service: Service,
): Promise<EmbeddingAnswer> {
  const seen = await inputsSeen(request, model, reply, service);
  return (await ask("embeddings", { kind: "embed", request: seen }, model, reply)).answer;
}

async function inputsSeen(
  request: EmbeddingRequest,
  model: ServedModel,
  reply: Reply,
  service: Service,
): Promise<EmbeddingRequest> {
  const inputs = await textsSeenByHook(reply.requestId, request.inputs, model, reply, service);
  return inputs === request.inputs ? request : { ...request, inputs };
}

/** Asks the engine, and records what the answer cost. Rejects with `ClientGone` if the client has left. */
async function ask<K extends "embed" | "rerank">(
  operation: string,
  { kind, request }: EngineQuestion<K>,
  { engineModel, info, from: { engine } }: ServedModel,
  { record, caller: { client, ownKey }, profile, exchange: { departure } }: Reply,
): Promise<{ readonly answer: EngineAnswer<K>; readonly shownModel: string }> {
  if (!canAnswer(engine, kind)) throw new Error(`The engine of ${info.id} has no ${operation}.`);
  record.watchers.trace?.operationBegins(operation, info.id);
  const sent = {
    ...request,
    model: engineModel,
    ...(client && { owner: client.owner }),
    ...(ownKey && { clientKey: ownKey }),
  };
  const answer = await engine
    .ask({ kind, request: sent } as unknown as EngineQuestion<K>, departure.signal, record.answer)
    .catch((error: unknown) => {
      throw departure.happened ? new ClientGone({ cause: error }) : error;
    });
  const { promptTokens } = answer;
  record.answer.begins();
  if (promptTokens !== null) record.answer.see([{ type: "usage", usage: { promptTokens, completionTokens: 0 } }]);
  const shownModel = (profile.resolvesModels && (info.resolvedId ?? answer.model)) || request.model;
  return { answer, shownModel };
}
