import { turnSeal } from "../../wire/apis/turn-seal.ts";
import { describeCacheMiss } from "../../wire/core/cache-miss.ts";
import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import type { Generation } from "../../wire/core/accumulate.ts";
import { canAnswer } from "../../wire/core/engine.ts";
import { estimateTokens } from "../../wire/core/estimate-tokens.ts";
import { isVisible } from "../../wire/core/events.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { loopWarning } from "../../wire/core/loop-guard.ts";
import type { GenerationRequest, QueueTier } from "../../wire/core/request.ts";
import { shownWarnings, loggedError } from "../../wire/core/failure.ts";
import type { AnswerContext, PreparesOnly, ReadRequest } from "../../wire/apis/port.ts";
import type { DetachedAnswer, StorableRequest, PortState, ServedPort } from "../../wire/apis/port-state.ts";
import { generateInBackground } from "./background.ts";
import { keyspacesOf, storeFailure, storeOwnerOf } from "./client-stores.ts";
import { tokensToReserve } from "./keys/usage-lease.ts";
import type { Mask } from "./mask.ts";
import { planHostedTools } from "./hosted/hosted-calls.ts";
import { withHostedTools } from "./hosted/hosted-loop.ts";
import { modelsOf } from "./model-directory.ts";
import type { ServedModel } from "./model-directory.ts";
import type { BodyOptions, ModelEndpoint, NamedRequest, Reply } from "./reply.ts";
import { warningHeader } from "./reply.ts";
import { RequestRecord } from "./request-record.ts";
import { makeResumable, resumeTimeOf, whyNotResumable } from "./resume.ts";
import type { OpenAnswer } from "./running-answers.ts";
import type { EventBatch, BatchObserver, GenerationRun } from "./run-generation.ts";
import type { Service } from "./service.ts";
import { sourceOf } from "./source.ts";
import { countPromptTokens } from "./token-endpoints.ts";
import { inTurns, startInTurns } from "./turns.ts";
import { sendEvents, streamAnswer, wholeAnswer } from "./write-answer.ts";
import { random } from "../../wire/random/random.ts";

interface ReadGeneration extends NamedRequest {
  readonly read: ReadRequest;
  /** Present if the API keeps its answers. */
  readonly kept: StorableRequest | undefined;
  /** How long the stream continues without its client, in milliseconds; 0: not at all. */
  readonly resumeMs: number;
}

/** The endpoint of an API that generates. */
export function generationEndpoint(port: ServedPort): ModelEndpoint<ReadGeneration> {
  return {
    api: port.name,
    bodyType: port.bodyType,
    findsModelFirst: port.findsModelFirst,
    read(body, options, reply, service) {
      const { state } = port;
      if (state && state.isNeeded?.(body, options) !== false)
        return readKept(state, body, options, reply, service).then((kept) =>
          noteRead(port, kept, kept, reply, service),
        );
      const read = startInTurns(port.readRequest(body, reply.requestId, options));
      if (read instanceof Promise) return read.then((late) => noteRead(port, late, undefined, reply, service));
      return noteRead(port, read, undefined, reply, service);
    },
    check: ({ info }, { read: { request } }, others) => port.checkModel?.(request, info, others),
    cost: ({ read: { request, preparesOnly, generatesNothing } }, limits) => ({
      prompt: estimateTokens(request),
      reserved: preparesOnly !== undefined || generatesNothing === true ? 0 : tokensToReserve(request, limits),
    }),
    answer(read, model, reply, service) {
      const { requestId, client } = reply;
      const running = service.answers.begin({ requestId, owner: client?.owner ?? "", engine: model.from.engine });
      // Without `await`, so that the request does not stay in memory while it is answered.
      return answer(port, read, model, reply, service, running).finally(() => {
        if (!reply.record.detached) running.end();
      });
    },
  };
}

/** Notes what a request asks for in its record, and its warnings in the log and the answer's headers. */
function noteRead(
  port: ServedPort,
  read: ReadRequest,
  kept: StorableRequest | undefined,
  reply: Reply,
  service: Service,
): ReadGeneration {
  const { request } = read;
  const { record, requestId } = reply;
  record.model = request.model;
  record.stream = request.stream;
  const requestedResumeMs = resumeTimeOf(reply.exchange);
  const noResume = requestedResumeMs > 0 ? whyNotResumable(port, read, kept, reply, service) : undefined;
  const warnings = noResume === undefined ? read.warnings : [...read.warnings, noResume];
  const resumeMs = noResume === undefined ? Math.min(requestedResumeMs, service.settings.resumeStreamsMs) : 0;
  if (warnings.length > 0) {
    service.log.warn(
      { req: requestId, warnings: shownWarnings(warnings) },
      "the request was accepted with reservations",
    );
    reply.headers = { ...reply.headers, ...warningHeader(warnings) };
  }
  return { name: request.model, read, kept, resumeMs };
}

async function answer(
  port: ServedPort,
  { read, kept, resumeMs }: ReadGeneration,
  model: ServedModel,
  reply: Reply,
  service: Service,
  running: OpenAnswer,
): Promise<void> {
  const { settings, log } = service;
  const { record, requestId, profile } = reply;
  const { preparesOnly } = read;
  const request = read.editPrompt
    ? await read.editPrompt((edited) => countPromptTokens(model, edited, reply))
    : read.request;
  if (request !== read.request) log.info({ req: requestId }, "the prompt was edited as the request asks for");
  const { engine, settings: answerSettings, forwards } = model.from;
  const context: AnswerContext = {
    profile,
    created: now(),
    now,
    clock: { beganMs: performance.timeOrigin + record.receivedAt, nowMs },
    model: (profile.resolvesModels && model.info.resolvedId) || request.model,
    settings: answerSettings,
    turnSeal: turnSeal(service.turnKey, reply.client?.owner ?? ""),
    random,
    onId: (id) => {
      running.id = id;
    },
  };
  if (reply.exchange.header("x-truewire-cache")?.trim().toLowerCase() === "explain") explainMisses(reply);
  const detached = kept?.detach?.(context, service.processes?.own);
  const writer = request.stream && !detached ? read.streamWriter(context) : undefined;
  // A steered response is ended early: only a local model reports its usage then, and only a server of the same API gets the request as it is.
  if (writer)
    reply.exchange.answering?.(writer, forwards?.includes("responses") === true || canAnswer(engine, "usage"));
  const own = detached ? recordOfRun(record) : record;
  const runRequest: GenerationRequest = detached ? { ...request, stream: true } : request;
  const ownRequest = requestFor(model, runRequest, reply);
  const directory = modelsOf(reply.client, service.directory);
  const source = sourceOf({
    model,
    directory,
    onFallback(fallback, reason) {
      own.inspection?.anotherSource();
      own.fallbackReasons.push(reason);
      log.info({ req: requestId, model: model.info.id, fallback, reason }, "a fallback is asked");
      own.fallback = fallback;
      if (!reply.sent) reply.addHeaders({ "x-truewire-model": fallback });
    },
    // A server of the same API receives the client's own request, and truncates it itself.
    ...(forwards?.includes(port.name) !== true && {
      onTruncated: (before, after) =>
        log.warn({ req: requestId, before, after }, "the prompt was too long: its oldest messages were left out"),
    }),
  });
  // A server of the same API runs its own tools.
  const hosted = forwards?.includes(port.name) ? undefined : planHostedTools(ownRequest, service.hostedTools);
  const start = hosted ? withHostedTools(source, { ...hosted, pauses: port.name === "messages" }) : source;
  const asksModel = read.generatesNothing !== true && prewarms(model, preparesOnly);
  const run: GenerationRun = {
    start: asksModel ? () => start(ownRequest, own) : silent,
    observers: [
      ...(preparesOnly ? [(events: EventBatch) => withoutContent(events, preparesOnly)] : []),
      ...observersOf(own, reply, service),
    ],
    async usageSoFar() {
      if (!canAnswer(engine, "usage")) return null;
      return engine.ask({ kind: "usage", request: { id: ownRequest.id } }, new AbortController().signal);
    },
    ...(model.from.guardsLoops === true &&
      (request.n ?? 1) === 1 && {
        onLoop: (period) => log.warn({ req: requestId }, loopWarning(period)),
      }),
  };
  if (read.keepLoadedMs !== undefined && (read.generatesNothing !== true || engine.health().state === "ready"))
    keepLoaded(model, read.keepLoadedMs, reply, service);
  // If the client has left already, the engine is not asked, and the request costs nothing.
  if (detached || !reply.exchange.departure.happened) {
    const { api, inspection, trace } = record;
    inspection?.parsedRequest(ownRequest);
    if (reply.usageLease) reply.usageLease.generates = true;
    if (api && !detached) trace?.operationBegins(api.operation, model.info.id, ownRequest);
  }
  if (detached) return detach(port, detached, run, own, reply, service, running);

  const keep = kept && (() => keepAnswer(kept, reply, service));
  if (!writer) {
    const write = (generation: Generation): string => read.writeResponse(generation, context);
    const { contentType = port.contentType } = read;
    return wholeAnswer(reply, run, write, {
      ...(keep && { keep }),
      ...(contentType && { contentType }),
    });
  }
  const streamHeaders = port.streamHeaders(profile);
  const headers = resumeMs > 0 ? await makeResumable(reply, service, streamHeaders, resumeMs) : streamHeaders;
  return streamAnswer(reply, run, {
    writer,
    headers,
    holdMs: settings.holdMs,
    keepAliveMs: settings.keepAliveMs,
    readerPatienceMs: settings.readerPatienceMs,
    othersWait() {
      const { queued = 0, wanted = false } = engine.health();
      return queued > 0 || wanted;
    },
    ...(service.streamLog && { streamLog: service.streamLog }),
    ...(keep && { keep }),
  });
}

/** What sees each batch on its way from the engine to the writer, in order. */
function observersOf(record: RequestRecord, { usageLease }: Reply, { settings }: Service): BatchObserver[] {
  const { trace, inspection } = record;
  const observers: BatchObserver[] = [];
  if (!settings.mask.isEmpty) observers.push((events) => withMaskedEnd(events, settings.mask));
  if (usageLease) observers.push((events) => usageLease.observe(events));
  observers.push((events) => record.see(events));
  if (trace) observers.push((events) => trace.see(events));
  if (inspection) observers.push((events) => inspection.events(events));
  return observers;
}

/**
 * Masks the secrets in the failure that ends an answer: a source may quote its key there. What a model writes is passed on unread: no model
 * knows the keys of this server, and the search would read each text, and hold back those that look like the beginning of a key.
 */
function withMaskedEnd(events: EventBatch, mask: Mask): EventBatch {
  const last = events.at(-1);
  if (last?.type !== "end") return events;
  const shown = mask.value(last);
  return shown === last ? events : [...events.slice(0, -1), shown];
}

/** The request with the engine's name for the model, its tier, and its owner if clients have keys. */
function requestFor({ engineModel }: ServedModel, request: GenerationRequest, { client }: Reply): GenerationRequest {
  const tier = tierOf(request.passthrough?.body["service_tier"], client);
  if (!client && tier === "default" && request.model === engineModel) return request;
  return {
    ...request,
    model: engineModel,
    ...(client && { owner: client.owner }),
    ...(tier !== "default" && { tier }),
  };
}

const highTiers: ReadonlySet<unknown> = new Set(["priority", "fast", "ultrafast"]);

/**
 * The tier of a request in queues. A `service_tier` of `auto`, or none, is the key's tier. No other may be higher than the key's; without
 * keys any is granted. `standard_only` is Anthropic's name of `default`.
 */
function tierOf(requested: unknown, client: Reply["client"]): QueueTier {
  const highest = client ? (client.tier ?? "default") : "priority";
  if (requested === undefined || requested === null || requested === "auto") return client ? highest : "default";
  if (requested === "flex" || highest === "flex") return "flex";
  return highTiers.has(requested) ? highest : "default";
}

/** Whether the engine is asked: it puts the prompt of a request that only prepares into its cache, or the request generates. */
function prewarms({ info }: ServedModel, preparesOnly: PreparesOnly | undefined): boolean {
  return (
    preparesOnly === undefined || info.prewarms === "local" || (info.prewarms !== undefined && preparesOnly === "cache")
  );
}

/**
 * Returns the events of an answer without what a server generated although the request only prepares for the next one. A prompt of which
 * only the state is prepared may be one that the model cannot process yet, such as instructions without a question: that is no failure.
 */
function withoutContent(events: EventBatch, preparesOnly: PreparesOnly): EventBatch {
  return events.flatMap((event): EventBatch => {
    if (event.type === "finish") return [{ type: "finish", choice: event.choice, reason: "stop" }];
    if (event.type === "extra" && event.place === "item") return [];
    if (event.type === "end" && preparesOnly === "state" && event.end.kind === "rejected")
      return [{ type: "start", choice: 0 }, { type: "finish", choice: 0, reason: "stop" }, done];
    return isVisible(event) || event.type === "part-start" ? [] : [event];
  });
}

const done: GenerationEvent = { type: "end", end: { kind: "done" } };

/** Generates nothing: the answer of a request that only prepares for the next one. */
async function* silent(): AsyncGenerator<EventBatch> {
  yield [
    { type: "start", choice: 0 },
    { type: "usage", usage: { promptTokens: 0, completionTokens: 0 } },
    { type: "finish", choice: 0, reason: "stop" },
    done,
  ];
}

/** Reads a request that may refer to what is stored for its client. */
async function readKept(
  state: PortState,
  body: unknown,
  options: BodyOptions,
  { exchange, requestId, client, key }: Reply,
  service: Service,
): Promise<StorableRequest> {
  const owner = await storeOwnerOf(client, key);
  const keyspaces = keyspacesOf(service, owner, exchange.connectionStore);
  return state.readRequest(body, requestId, options, keyspaces, inTurns).catch((error: unknown) => {
    throw storeFailure(error);
  });
}

/** Stores the answer. If that fails, the client receives the answer nevertheless. */
async function keepAnswer(kept: StorableRequest, { requestId }: Reply, { log }: Service): Promise<void> {
  try {
    await kept.store();
  } catch (error) {
    log.error({ req: requestId, cause: loggedError(error) }, "the answer could not be kept");
  }
}

/** The record of a response in the background, which has a line of its own in the log. The request's line only says that it was accepted. */
function recordOfRun(record: RequestRecord): RequestRecord {
  const { api, model, servedModel, served, keyName, watched, inspection } = record;
  const same = { api, model, servedModel, served, keyName, watched, inspection };
  return Object.assign(new RequestRecord(), { ...same, status: 200 });
}

/** Generates in the background. The client is answered immediately, or follows the events. */
async function detach(
  port: ServedPort,
  answer: DetachedAnswer,
  run: GenerationRun,
  own: RequestRecord,
  reply: Reply,
  { runs, log, metrics, settings }: Service,
  running: OpenAnswer,
): Promise<void> {
  const { bodyLease, usageLease, record, requestId: req } = reply;
  const owner = await storeOwnerOf(reply.client, reply.key);
  const onEnd = (): void => {
    running.end();
    const outcome = own.outcome(own.end === undefined);
    metrics?.observe(own, outcome);
    own.watched?.ended(outcome, own);
    log.info(own.addFields({ req }), `${outcome} in the background`);
    usageLease?.end();
    bodyLease?.release();
  };
  // The body stays in memory until the response is complete.
  reply.bodyLease = undefined;
  record.detached = true;
  const started = await generateInBackground(runs, { generation: run, answer, owner, onEnd }, log).catch(
    (error: unknown) => {
      bodyLease?.release();
      record.detached = false;
      if (usageLease) usageLease.generates = false;
      throw storeFailure(error);
    },
  );
  if (record.stream !== true) reply.send(200, "application/json", answer.body);
  else await sendEvents(reply, started.events(), port.streamHeaders(reply.profile), settings.keepAliveMs);
}

/**
 * Adds the header `x-truewire-cache-miss` (JSON in ASCII), which says why the model processes much of the prompt again. The reason is known
 * before the first token; an answer whose headers were sent before that has no such header.
 */
function explainMisses(reply: Reply): void {
  reply.record.onCacheMiss = (miss) => {
    if (!reply.sent) reply.addHeaders({ "x-truewire-cache-miss": missHeader(miss) });
  };
}

/** At most about three kilobytes: every text in it is bounded. */
function missHeader(miss: CacheMiss): string {
  const { cause, where, at, promptTokens, cachedTokens, knownTokens, texts } = miss;
  const says = describeCacheMiss(miss);
  const json = JSON.stringify({ cause, where, says, at, promptTokens, cachedTokens, knownTokens, ...texts });
  return json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Sets how long a model stays loaded. Clients with keys share the models, so only the configuration decides for them. */
export function keepLoaded(model: ServedModel, ms: number, reply: Reply, { control, settings, log }: Service): void {
  if (settings.keys.required) {
    const warning = "how long models stay loaded is set by the configuration of this server";
    return reply.addHeaders(warningHeader([warning]));
  }
  control?.keepLoaded(model.info.id, ms).catch((error: unknown) => {
    log.warn({ req: reply.requestId, cause: loggedError(error) }, "the time that the model stays loaded was not set");
  });
}

/** Unix time in milliseconds, with fractions. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Unix time in seconds. */
function now(): number {
  return Math.floor(Date.now() / 1000);
}
