import { messageBatches, readRequests, writeBatchDeletion } from "../../../wire/apis/batches/anthropic.ts";
import type { BatchBeginning, BatchForm } from "../../../wire/apis/batches/form.ts";
import { openaiBatches } from "../../../wire/apis/batches/openai.ts";
import { createBatch } from "../../../wire/apis/batches/schema.ts";
import { bodyOf } from "../../../wire/apis/conversations/routes.ts";
import { pageOf, readPageQuery } from "../../../wire/apis/files/page.ts";
import type { PageCursors } from "../../../wire/apis/files/page.ts";
import { newOpenaiFileId, openaiFiles } from "../../../wire/apis/files/write.ts";
import { requestId } from "../../../wire/apis/ids.ts";
import { messageBatchId } from "../../../wire/apis/messages/ids.ts";
import { checkMetadata } from "../../../wire/apis/request/check-schema.ts";
import { FailureError, invalidRequest } from "../../../wire/core/failure.ts";
import { random } from "../../../wire/random/random.ts";
import { storeFailure, storeOwnerOf } from "../client-stores.ts";
import type { FileStore } from "../client-stores.ts";
import { ClientFiles, contentBytes } from "../files/client-files.ts";
import { requireFiles } from "../files/file-endpoints.ts";
import { readJsonBody } from "../read-json.ts";
import type { EndpointHandler, Reply, ServerRoute } from "../reply.ts";
import type { Service } from "../service.ts";
import { inTurns } from "../turns.ts";
import { ClientBatches, inputKey, resultsKey } from "./stored-batches.ts";
import type { StoredBatch } from "./stored-batches.ts";
import { takeLimits } from "../keys/take-limits.ts";

/** The completion window, in seconds. */
const windowSeconds = 86_400;

interface BatchCall {
  readonly form: BatchForm;
  readonly store: FileStore;
  readonly batches: ClientBatches;
  readonly reply: Reply;
  readonly service: Service;
  readonly id: string;
  readonly baseUrl: string;
}

const cursors: Readonly<Record<BatchForm["api"], PageCursors>> = {
  openai: { standard: 20, most: 100, after: ["after"] },
  anthropic: { standard: 20, most: 1000, after: ["after_id"], before: "before_id" },
};

/** The paths of OpenAI's batches. */
export const openaiBatchRoutes: readonly [string, ServerRoute["methods"]][] = [
  ["/batches", { GET: endpoint(openaiBatches, list), POST: endpoint(openaiBatches, create) }],
  ["/batches/{id}", { GET: endpoint(openaiBatches, show) }],
  ["/batches/{id}/cancel", { POST: endpoint(openaiBatches, cancel) }],
];

/** The paths of Anthropic's Message Batches. */
export const messageBatchRoutes: readonly [string, ServerRoute["methods"]][] = [
  ["/messages/batches", { GET: endpoint(messageBatches, list), POST: endpoint(messageBatches, createMessages) }],
  ["/messages/batches/{id}", { GET: endpoint(messageBatches, show), DELETE: endpoint(messageBatches, remove) }],
  ["/messages/batches/{id}/cancel", { POST: endpoint(messageBatches, cancel) }],
  ["/messages/batches/{id}/results", { GET: endpoint(messageBatches, showResults) }],
];

function endpoint(form: BatchForm, answer: (call: BatchCall) => Promise<void>): EndpointHandler {
  return async (reply, service, id) => {
    const store = requireFiles(service);
    try {
      const batches = new ClientBatches(store, await storeOwnerOf(reply));
      await answer({ form, store, batches, reply, service, id, baseUrl: baseUrlOf(reply) });
    } catch (error) {
      throw storeFailure(error);
    }
  };
}

async function create(call: BatchCall): Promise<void> {
  const { reply, store, batches, service } = call;
  await takeLimits(reply, service);
  const body = bodyOf(createBatch, await readJsonBody(reply, service), reply);
  const { input_file_id: inputId, endpoint, metadata, output_expires_after: expiry } = body;
  if (metadata) checkMetadata(metadata);
  const file = await new ClientFiles(store, batches.owner).find(inputId);
  if (!file) throw openaiFiles.missing(inputId);
  if (file.purpose !== "batch")
    throw invalidRequest(
      `The purpose of the input file is '${file.purpose}'. Upload it with the purpose 'batch'.`,
      "input_file_id",
    );
  await begin(call, {
    ...newBatch("openai"),
    id: `batch_${requestId(random).slice("req_".length)}`,
    endpoint,
    inputId,
    metadata,
    ...(expiry && { outputExpiresIn: expiry.seconds }),
  });
}

async function createMessages(call: BatchCall): Promise<void> {
  const { reply, batches, service } = call;
  await takeLimits(reply, service);
  const lines = await inTurns(readRequests(await readJsonBody(reply, service)));
  const id = messageBatchId(random);
  await batches.setText(inputKey(id), withLineEnds(lines));
  const kept = ["anthropic-version", "anthropic-beta"].flatMap((name) => {
    const value = reply.exchange.header(name);
    return value === undefined ? [] : [[name, value]];
  });
  const headers = Object.fromEntries(kept) as Record<string, string>;
  await begin(call, { ...newBatch("anthropic"), id, endpoint: "/v1/messages", inputId: "", headers }, lines.length);
}

function* withLineEnds(lines: readonly string[]): Generator<string, void, undefined> {
  for (const line of lines) yield `${line}\n`;
}

function newBatch(api: BatchForm["api"]): Omit<BatchBeginning, "id" | "endpoint" | "inputId"> {
  const created = Math.floor(Date.now() / 1000);
  const [outputId, errorId] = [newOpenaiFileId(random), newOpenaiFileId(random)];
  return { api, outputId, errorId, created, expires: created + windowSeconds, headers: {} };
}

async function begin(call: BatchCall, beginning: BatchBeginning, total = 0): Promise<void> {
  const { batches, service } = call;
  await batches.create({ ...beginning, total });
  service.batches?.look();
  send(call, await require(call, beginning.id));
}

async function list({ form, batches, reply, baseUrl }: BatchCall): Promise<void> {
  const query = readPageQuery((name) => reply.exchange.query(name), cursors[form.api]);
  const ids = await batches.list(form.api);
  const { from, until } = pageOf(ids, query);
  const found: StoredBatch[] = [];
  for (let at = from; at < until && found.length <= query.limit; at++) {
    const batch = await batches.findWithProgress(ids[at] ?? "");
    if (batch) found.push(batch);
  }
  const hasMore = found.length > query.limit || (query.before !== undefined && from > 0);
  const states = found.slice(0, query.limit).map(({ state }) => state);
  reply.send(200, "application/json", form.page(states, hasMore, reply.profile, baseUrl));
}

async function show(call: BatchCall): Promise<void> {
  send(call, await require(call));
}

async function cancel(call: BatchCall): Promise<void> {
  const { batches, service, id, form } = call;
  const { state } = await require(call);
  if (state.ended && form.api === "openai")
    throw invalidRequest(`The batch has the status '${state.ended.status}' and cannot be cancelled.`);
  if (!state.ended) {
    await batches.add(id, { cancelled: Math.floor(Date.now() / 1000) });
    service.batches?.cancelled(batches.owner);
  }
  send(call, await require(call));
}

async function remove(call: BatchCall): Promise<void> {
  const { state } = await require(call);
  if (!state.ended) throw invalidRequest("The Message Batch is being processed. Cancel it before you delete it.");
  await call.batches.delete(state);
  call.reply.send(200, "application/json", writeBatchDeletion(state.id));
}

async function showResults(call: BatchCall): Promise<void> {
  const { state } = await require(call);
  const { reply, batches } = call;
  const text = state.ended ? await batches.text(resultsKey(state.id)) : undefined;
  if (text === undefined) throw noResults(state.id);
  reply.open({ "content-type": "application/x-jsonl" });
  for (const chunk of contentBytes({ encoding: "utf-8", text })) {
    const wait = reply.exchange.bytes?.write(chunk);
    if (wait) await wait;
    if (reply.exchange.departure.happened) return;
  }
  reply.end("");
}

/** Throws `FailureError` 404. Batches of the other API are not found. */
async function require({ batches, form, id }: BatchCall, wanted = id): Promise<StoredBatch> {
  const found = await batches.findWithProgress(wanted);
  if (found?.state.api !== form.api) throw form.missing(wanted);
  return found;
}

function send({ form, reply, baseUrl }: BatchCall, { state }: StoredBatch): void {
  reply.send(200, "application/json", form.one(state, reply.profile, baseUrl));
}

/** Where the client reaches this server; "" if it does not say, for an address relative to the client's own. */
function baseUrlOf({ exchange }: Reply): string {
  const [host, scheme = "http"] = [exchange.header("host"), exchange.header("x-forwarded-proto")];
  return host === undefined ? "" : `${scheme === "https" ? "https" : "http"}://${host}`;
}

function noResults(id: string): FailureError {
  return new FailureError({
    kind: "not-found",
    message: `The results of ${id} are available when the batch has ended.`,
    status: 404,
    param: null,
    code: null,
  });
}
