import { release } from "./caller.ts";
import { turnSeal } from "../../wire/apis/turn-seal.ts";
import { describeCacheMiss } from "../../wire/core/cache-miss.ts";
import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import type { Generation } from "../../wire/core/accumulate.ts";
import { canAnswer } from "../../wire/core/engine.ts";
import { estimateTokens } from "../../wire/core/estimate-tokens.ts";
import { isVisible } from "../../wire/core/events.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { loopWarning } from "../../wire/core/loop-guard.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { shownWarnings, loggedError } from "../../wire/core/failure.ts";
import type { AnswerContext, PreparesOnly, ReadRequest } from "../../wire/apis/port.ts";
import type { DetachedAnswer, StorableRequest, PortState, ServedPort } from "../../wire/apis/port-state.ts";
import { generateInBackground } from "./background.ts";
import { keyspacesOf, storeFailure, storeOwnerOf } from "./client-stores.ts";
import { imagesIn, noPrice } from "./keys/prices.ts";
import { tokensToReserve } from "./keys/usage-lease.ts";
import type { Mask } from "./mask.ts";
import { hostedToolsOf } from "./keys/hosted-tools-of.ts";
import { withHook } from "./hook/with-hook.ts";
import type { Generate } from "./fallbacks.ts";
import { planHostedTools, runsHere } from "./hosted/hosted-calls.ts";
import { withHostedTools } from "./hosted/hosted-loop.ts";
import { modelNamed, modelsOf } from "./model-directory.ts";
import type { ServedModel } from "./model-directory.ts";
import { planRun } from "./plan-run.ts";
import type { RunPlan } from "./plan-run.ts";
import type { BodyOptions, ModelEndpoint, NamedRequest, Reply } from "./reply.ts";
import type { RequestRecord } from "./request-record.ts";
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
  /** The upstream speaks the client's API, but the request is not forwarded: hosted tools of it run here. */
  readonly runsHostedTools?: true;
}

/** The endpoint of an API that generates. */
export function generationEndpoint(port: ServedPort): ModelEndpoint<ReadGeneration> {
  return {
    api: port.name,
    bodyType: port.bodyType,
    findsModelFirst: port.findsModelFirst,
    read(body, options, reply, service) {
      const { state } = port;
      const isKept = state !== undefined && state.isNeeded?.(body, options) !== false;
      const readAs = (own: BodyOptions): ReadRequest | Promise<ReadRequest> =>
        isKept
          ? readKept(state, body, own, reply, service)
          : startInTurns(port.readRequest(body, reply.requestId, own));
      const noted = (read: ReadRequest): ReadGeneration =>
        noteRead(port, read, isKept ? (read as StorableRequest) : undefined, reply, service);
      const finish = (read: ReadRequest): ReadGeneration | Promise<ReadGeneration> => {
        if (!options.forwards || !runsHere(read.request, options)) return noted(read);
        // The upstream gets a conversation with calls and results, not the client's JSON.
        const own = readAs({ ...options, forwards: false });
        const isHosted = (late: ReadRequest): ReadGeneration => ({ ...noted(late), runsHostedTools: true });
        return own instanceof Promise ? own.then(isHosted) : isHosted(own);
      };
      const read = readAs(options);
      return read instanceof Promise ? read.then(finish) : finish(read);
    },
    check: ({ info }, { read: { request } }, others) => port.checkModel?.(request, info, others),
    conversation: ({ read: { request } }) => request,
    cost: ({ read: { request, preparesOnly, generatesNothing } }, limits) => ({
      prompt: estimateTokens(request),
      images: imagesIn(request),
      reserved: preparesOnly !== undefined || generatesNothing === true ? 0 : tokensToReserve(request, limits),
    }),
    answer(read, model, reply, service) {
      const { requestId } = reply;
      const { client } = reply.caller;
      const running = service.answers.begin({ requestId, owner: client?.owner ?? "", engine: model.from.engine });
      // Without `await`, so that the request does not stay in memory while it is answered.
      return answer(port, read, model, reply, service, running).finally(() => {
        if (reply.record.sent.detached !== true) running.end();
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
  const { asked } = reply.record;
  const { requestId } = reply;
  asked.model = request.model;
  asked.stream = request.stream;
  const requestedResumeMs = resumeTimeOf(reply.exchange);
  const noResume = requestedResumeMs > 0 ? whyNotResumable(port, read, kept, reply, service) : undefined;
  const warnings = noResume === undefined ? read.warnings : [...read.warnings, noResume];
  const resumeMs = noResume === undefined ? Math.min(requestedResumeMs, service.settings.resumeStreamsMs) : 0;
  if (warnings.length > 0) {
    service.log.warn(
      { req: requestId, warnings: shownWarnings(warnings) },
      "the request was accepted with reservations",
    );
    reply.warn("request", warnings);
  }
  return { name: request.model, read, kept, resumeMs };
}

/** What the senders of an answer need. */
interface Answering {
  readonly port: ServedPort;
  readonly asked: ReadGeneration;
  readonly model: ServedModel;
  readonly plan: RunPlan;
  readonly context: AnswerContext;
  readonly reply: Reply;
  readonly service: Service;
  readonly running: OpenAnswer;
}

async function answer(
  port: ServedPort,
  asked: ReadGeneration,
  model: ServedModel,
  reply: Reply,
  service: Service,
  running: OpenAnswer,
): Promise<void> {
  const { read, kept } = asked;
  const request = read.editPrompt
    ? await read.editPrompt((edited) => countPromptTokens(model, edited, reply, service))
    : read.request;
  if (request !== read.request)
    service.log.info({ req: reply.requestId }, "the prompt was edited as the request asks for");
  const inBackground = kept?.detach !== undefined;
  const { runsHostedTools = false } = asked;
  const plan = planRun({
    api: port.name,
    read,
    request,
    model,
    client: reply.caller.client,
    clientKey: reply.caller.ownKey,
    inBackground,
    runsHostedTools,
  });
  const context = contextOf(request, model, reply, service, running);
  const answering = { port, asked, model, plan, context, reply, service, running };
  if (reply.exchange.header("x-truewire-cache")?.trim().toLowerCase() === "explain") explainMisses(reply);
  const detached = kept?.detach?.(context, service.processes?.own);
  if (detached) return sendInBackground(answering, detached);
  return plan.sender === "stream" ? sendStream(answering) : sendWhole(answering);
}

function contextOf(
  { model: name }: GenerationRequest,
  { info, from }: ServedModel,
  { profile, record, caller: { client } }: Reply,
  { stores: { turnKey } }: Service,
  running: OpenAnswer,
): AnswerContext {
  return {
    profile,
    created: now(),
    now,
    clock: { beganMs: performance.timeOrigin + record.asked.receivedAt, nowMs },
    model: (profile.resolvesModels && info.resolvedId) || name,
    settings: from.settings,
    turnSeal: turnSeal(turnKey, client?.owner ?? ""),
    random,
    onId: (id) => {
      running.id = id;
    },
  };
}

async function sendStream(answering: Answering): Promise<void> {
  const { port, asked, model, plan, context, reply, service } = answering;
  const { settings, streamLog } = service;
  const writer = asked.read.streamWriter(context);
  reply.exchange.answering?.(writer, plan.hasLanes);
  const generation = begin(answering, reply.record);
  const streamHeaders = (asked.read.streamHeaders ?? port.streamHeaders)(reply.profile);
  const { resumeMs } = asked;
  const headers = resumeMs > 0 ? await makeResumable(reply, service, streamHeaders, resumeMs) : streamHeaders;
  return streamAnswer(reply, generation, {
    writer,
    headers,
    holdMs: settings.holdMs,
    keepAliveMs: settings.keepAliveMs,
    readerPatienceMs: settings.readerPatienceMs,
    othersWait() {
      const { queued = 0, wanted = false } = model.from.engine.health();
      return queued > 0 || wanted;
    },
    ...(streamLog && { streamLog }),
    ...keepOf(answering),
  });
}

function sendWhole(answering: Answering): Promise<void> {
  const { port, asked, context, reply } = answering;
  const { contentType = port.contentType } = asked.read;
  const write = (generation: Generation): string => asked.read.writeResponse(generation, context);
  return wholeAnswer(reply, begin(answering, reply.record), write, {
    ...(contentType && { contentType }),
    ...keepOf(answering),
  });
}

/** Generates in the background. The client is answered immediately, or follows the events. */
async function sendInBackground(answering: Answering, answer: DetachedAnswer): Promise<void> {
  const { port, reply, service, running } = answering;
  const { log, settings, watchers } = service;
  const { record, requestId: req } = reply;
  const owner = await storeOwnerOf(reply);
  const own = record.inBackground();
  const generation = begin(answering, own);
  // The body stays in memory until the response is complete.
  const held = reply.handOver();
  if (held.usage) held.usage.record = own;
  const onEnd = (): void => {
    running.end();
    const outcome = own.outcome(own.answer.end === undefined);
    watchers.metrics?.observe(own, outcome);
    own.watchers.listed?.ended(outcome, own);
    log.info(own.addFields({ req }), `${outcome} in the background`);
    release(held);
  };
  record.sent.detached = true;
  const run = await generateInBackground(service.runs, { generation, answer, owner, onEnd }, log).catch(
    (error: unknown) => {
      record.sent.detached = false;
      if (held.usage) held.usage.record = record;
      release(held);
      throw storeFailure(error);
    },
  );
  if (record.asked.stream !== true) reply.send(200, "application/json", answer.body);
  else await sendEvents(reply, run.events(), port.streamHeaders(reply.profile), settings.keepAliveMs);
}

/** Stores the answer. If that fails, the client receives the answer nevertheless. */
function keepOf({ asked: { kept }, reply, service }: Answering): { readonly keep?: () => Promise<void> } {
  if (!kept) return {};
  const keep = (): Promise<void> =>
    kept.store().catch((error: unknown) => {
      service.log.error({ req: reply.requestId, cause: loggedError(error) }, "the answer could not be kept");
    });
  return { keep };
}

/** Prepares the generation of an answer, and notes in `record`, and for the client's limits, that it begins. */
function begin(
  { port, asked: { read }, model, plan, reply, service }: Answering,
  record: RequestRecord,
): GenerationRun {
  const { engine } = model.from;
  const { api } = record.asked;
  const { inspection, trace } = record.watchers;
  const { request, sender, preparesOnly } = plan;
  const hosted = plan.isForwarded
    ? undefined
    : planHostedTools(request, hostedToolsOf(reply.caller.client, service.hostedTools));
  const { hostedMaxCost = Infinity } = service.settings;
  if (hosted && hostedMaxCost < Infinity && !record.asked.price)
    throw noPrice(request.model, "an answer with hosted tools may cost no more than hostedTools.maxCost");
  const { log } = service;
  const { requestId: req } = reply;
  if (read.keepLoadedMs !== undefined && (read.generatesNothing !== true || engine.health().state === "ready"))
    keepLoaded(model, read.keepLoadedMs, reply, service);
  const inBackground = sender === "background";
  // If the client has left already, the engine is not asked, and the request costs nothing.
  if (inBackground || !reply.exchange.departure.happened) {
    inspection?.parsedRequest(request);
    record.answer.begins();
    if (api && !inBackground) trace?.operationBegins(api.operation, model.info.id, request);
  }
  const sourceOfModel = (used: ServedModel): Generate =>
    sourceOf({
      model: used,
      directory: modelsOf(reply.caller.client, service.directory),
      onFallback(fallback, reason) {
        inspection?.anotherSource();
        const other = service.directory.find(fallback);
        record.asked.price = (other && service.settings.prices.of(other)) ?? record.asked.price;
        record.answer.fellBack(fallback, reason);
        log.info({ req, model: model.info.id, fallback, reason }, "a fallback is asked");
        if (!reply.sent) reply.addHeaders({ "x-truewire-model": fallback });
      },
      ...(!plan.isForwarded && {
        onTruncated: (before, after) =>
          log.warn({ req, before, after }, "the prompt was too long: its oldest messages were left out"),
      }),
    });
  /** The model that the hook has chosen, by the name that clients use. */
  const sourceNamed = (name: string): Generate => {
    if (name === model.info.id) return sourceOfModel(model);
    const other = modelNamed(name, modelsOf(reply.caller.client, service.directory), reply.profile);
    record.asked.price = service.settings.prices.of(other);
    if (reply.caller.client?.limits?.budget && !record.asked.price)
      throw noPrice(name, `the key '${reply.caller.client.name}' has a budget`);
    record.asked.route = { rule: "hook", model: name };
    record.asked.served = other;
    if (!reply.sent) reply.addHeaders({ "x-truewire-route": "hook", "x-truewire-model": name });
    return (given, observer) => sourceOfModel(other)({ ...given, model: other.engineModel }, observer);
  };
  const source = service.hook ? withHook(model, sourceNamed, reply, service) : sourceOfModel(model);
  if (hosted) inspection?.joinsAnswers();
  const isSpent = (): boolean => (record.cost ?? 0) >= hostedMaxCost * 1e9;
  const start = hosted
    ? withHostedTools(source, {
        tools: hosted.tools,
        limits: { ...hosted.limits, isSpent },
        pauses: port.name === "messages",
      })
    : source;
  return {
    start: plan.asksModel ? () => start(request, record.answer) : silent,
    observers: [
      ...(preparesOnly ? [(events: EventBatch) => withoutContent(events, preparesOnly)] : []),
      ...observersOf(record, reply),
    ],
    async usageSoFar() {
      if (!canAnswer(engine, "usage")) return null;
      return engine.ask({ kind: "usage", request: { id: request.id } }, new AbortController().signal);
    },
    ...(plan.detectsLoops && { onLoop: (period) => log.warn({ req }, loopWarning(period)) }),
  };
}

/** What sees each batch on its way from the engine to the writer, in order. */
function observersOf(record: RequestRecord, { held: { usage }, mask }: Reply): BatchObserver[] {
  const { trace, inspection } = record.watchers;
  const observers: BatchObserver[] = [];
  if (!mask.isEmpty) observers.push((events) => withMaskedEnd(events, mask));
  observers.push((events) => record.answer.see(events));
  if (usage) observers.push((events) => usage.observe(events));
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
  reply: Reply,
  service: Service,
): Promise<StorableRequest> {
  const owner = await storeOwnerOf(reply);
  const keyspaces = keyspacesOf(service.stores, owner, reply.exchange.connectionStore);
  return state.readRequest(body, reply.requestId, options, keyspaces, inTurns).catch((error: unknown) => {
    throw storeFailure(error);
  });
}

/**
 * Adds the header `x-truewire-cache-miss` (JSON in ASCII), which says why the model processes much of the prompt again. The reason is known
 * before the first token; an answer whose headers were sent before that has no such header.
 */
function explainMisses(reply: Reply): void {
  reply.record.answer.onCacheMiss((miss) => {
    if (!reply.sent) reply.addHeaders({ "x-truewire-cache-miss": missHeader(miss) });
  });
}

/** At most about three kilobytes: every text in it is bounded. */
function missHeader(miss: CacheMiss): string {
  const { cause, where, at, promptTokens, cachedTokens, knownTokens, texts } = miss;
  const says = describeCacheMiss(miss);
  const json = JSON.stringify({ cause, where, says, at, promptTokens, cachedTokens, knownTokens, ...texts });
  return json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Sets how long a model stays loaded. Clients with keys share the models, so only the configuration decides for them. */
export function keepLoaded(model: ServedModel, ms: number, reply: Reply, { admin, settings, log }: Service): void {
  if (settings.keys.required) {
    const warning = "how long models stay loaded is set by the configuration of this server";
    return reply.warn("keepLoaded", [warning]);
  }
  admin.control?.keepLoaded(model.info.id, ms).catch((error: unknown) => {
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
