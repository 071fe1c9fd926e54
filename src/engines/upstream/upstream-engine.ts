import type { Engine, EngineAnswer, EngineHealth, EngineQuestion, ModelInfo, QuestionKind } from "../../core/engine.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { GenerationObserver } from "../../core/generation-observer.ts";
import type { Inspection } from "../../core/inspection.ts";
import { loggedFailure } from "../../core/failure.ts";
import { isLong, jsonChunks } from "../../core/json-chunks.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { completionsSource } from "../../apis/completions/port.ts";
import { modelOnlyChats } from "../../apis/failures.ts";
import { toolCallId } from "../../apis/ids.ts";
import {
  knownProfile,
  type NoteAdaptation,
  type RequestBody,
  type ServerProfile,
} from "../../apis/adapt/server-profile.ts";
import { lowerAnswerLimit, setAnswerLimit } from "../../apis/source-port.ts";
import type { SourcePort } from "../../apis/source-port.ts";
import { unsupportedParameter } from "../../apis/request/refusals.ts";
import { sourcePorts } from "../../apis/ports.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";
import { Admission } from "./admission.ts";
import { type AttemptOptions, Watch } from "./attempt.ts";
import { conversationKey } from "./balance.ts";
import { CacheWatch } from "./cache-watch.ts";
import { CustomCalls, type EventStage, severalChoices, TextStage } from "./event-stages.ts";
import { type GenerationPlan, GenerationStream, type RefusedLimit, RetryBudget } from "./generation-stream.ts";
import {
  type ListedUpstreamModel,
  listUpstreamModels,
  NativeCapabilities,
  probe,
  upstreamEndpoints,
} from "./list-models.ts";
import type { UpstreamOptions } from "./options.ts";
import { UpstreamQuestions } from "./questions.ts";
import { shownUrl, TargetSet, type UpstreamTarget } from "./targets.ts";
import { inBackground, type OpenTransport } from "./transport.ts";

// Why there is no HTTP client library, retry library or SSE reader here: tolerance is what this project sells. A client library reports
// "terminated" where a request must know whether its bytes ever reached the server (then it is repeated on a new connection without
// counting as an attempt), whether an answer broke off after some text (then it is truncated), or whether it was silent. Retries stop with
// the first event, share a budget over all requests, and honour Retry-After only up to a second: longer waits belong to the client's SDK.
// Back-pressure reaches from the client's socket to the upstream's. SSE is read as servers write it, not as the standard says.

const defaults = { firstEventMs: 600_000, idleMs: 120_000, answerLimit: 16 * 1024 * 1024, retries: 2 };
/** How long a server may take to count the tokens of a prompt before the prompt is generated from. */
const countTimeoutMs = 10_000;
/** How often the upstream's model list is read again. */
const refreshMs = 60_000;

const newCallId = (): string => toolCallId(Math.random);

/**
 * Opens an engine that generates by sending requests to servers with OpenAI's or Anthropic's API, or nearly. Resolves when its models are
 * known. Rejects with an Error if the options name no models and no server lists them.
 */
export async function openUpstreamEngine(options: UpstreamOptions, transport: OpenTransport): Promise<Engine> {
  const engine = new UpstreamEngine(options, transport);
  await engine.open();
  return engine;
}

class UpstreamEngine implements Engine {
  readonly #options: UpstreamOptions;
  readonly #source: SourcePort;
  readonly #headers: Readonly<Record<string, string>>;
  /** The headers of a generation, without its id. */
  readonly #streamHeaders: Readonly<Record<string, string>>;
  readonly #answerHeaders: Readonly<Record<string, string>>;
  readonly #targets: TargetSet;
  readonly #questions: UpstreamQuestions;
  readonly #native = new NativeCapabilities();
  readonly #budget = new RetryBudget();
  readonly #admission: Admission;
  readonly #cacheWatch = new CacheWatch();
  readonly #watch: Watch;
  readonly #firstEventMs: number;
  readonly #idleMs: number;
  readonly #answerLimit: number;
  #models: readonly ListedUpstreamModel[] = [];
  #refresh: NodeJS.Timeout | undefined;
  readonly #lifecycle = new EngineLifecycle<GenerationStream>();
  #retries = 0;

  constructor(options: UpstreamOptions, open: OpenTransport) {
    this.#options = options;
    this.#source = sourcePorts[options.api ?? "chat"];
    this.#headers = {
      "user-agent": "truewire",
      "accept-encoding": "identity",
      ...this.#source.headers(options.key),
      ...lowerCased(options.headers),
    };
    const posted = { ...this.#headers, "content-type": "application/json" };
    this.#streamHeaders = { ...posted, accept: "text/event-stream" };
    this.#answerHeaders = { ...posted, accept: "application/json" };
    this.#firstEventMs = options.timeouts?.firstEvent ?? defaults.firstEventMs;
    this.#idleMs = options.timeouts?.idle ?? defaults.idleMs;
    this.#answerLimit = options.answerLimit ?? defaults.answerLimit;
    this.#watch = this.#newWatch();
    this.#admission = new Admission(options.concurrency, options.queueLimit);
    this.#targets = new TargetSet(options, open, (target) => probe(target, this.#headers));
    this.#questions = new UpstreamQuestions({
      targets: this.#targets,
      source: this.#source,
      headers: this.#headers,
      answerLimit: this.#answerLimit,
      add: options.profile?.add ?? {},
      nameOf: (model) => this.#nameOf(model),
      profileOf: (model) => this.#profileOf(model, options.urls[0] ?? ""),
    });
  }

  /** Reads the models: from the options, else from the first target that lists any. Rejects if none does. */
  async open(): Promise<void> {
    const { models } = this.#options;
    if (models) {
      this.#models = Object.keys(models).map((id) => ({
        id,
        created: 0,
        ownedBy: this.#options.name,
        endpoints: upstreamEndpoints(this.#source),
        ...(this.#source.prewarms === true && { prewarms: "upstream" as const }),
      }));
      return;
    }
    try {
      this.#models = await this.#listedModels();
    } catch (cause) {
      await this.#targets.close();
      throw cause;
    }
    this.#refresh = inBackground(setInterval(() => void this.#refreshModels(), refreshMs));
  }

  models(): readonly ModelInfo[] {
    return this.#models;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): AsyncIterable<readonly GenerationEvent[]> {
    const { n = 1, prompt, passthrough } = request;
    const single = this.#options.singleChoice === true || this.#source.singleChoice === true;
    if (n === 1 || !single || prompt.kind !== "chat") return this.#stream(request, observer);
    const { n: _, ...body } = passthrough?.body ?? {};
    const one = { ...request, n: 1, ...(passthrough && { passthrough: { ...passthrough, body } }) };
    return severalChoices(Array.from({ length: n }, () => this.#stream(one, observer)));
  }

  questions(): readonly QuestionKind[] {
    return this.#questions.kinds;
  }

  ask<K extends QuestionKind>(
    question: EngineQuestion<K>,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): Promise<EngineAnswer<K>> {
    return this.#questions.ask(question, signal, observer);
  }

  health(): EngineHealth {
    const { targets } = this.#targets;
    const inService = targets.filter((target) => target.inService()).length;
    const outstanding = targets.reduce((sum, target) => sum + target.outstanding, 0);
    const counters = { outstanding, targets: targets.length, targetsInService: inService, retries: this.#retries };
    // A server that answers with errors is present: the errors may concern one client only.
    const isPresent = targets.some((target) => target.inService() || target.answers());
    const queued = this.#options.concurrency === undefined ? {} : { queued: this.#admission.queued };
    if (this.#lifecycle.state === "closed" || isPresent) return { ...this.#lifecycle.health(), ...queued, counters };
    return { state: "failed", counters, message: `No server of ${this.#options.name} answers.` };
  }

  close(graceMs: number): Promise<void> {
    clearInterval(this.#refresh);
    return this.#lifecycle.close(graceMs, {
      stop: (stream) => stream.abandon(shuttingDown),
      release: () => this.#targets.close(),
    });
  }

  /** `close` waits for this stream. */
  #stream(request: GenerationRequest, observer: GenerationObserver | undefined): GenerationStream {
    const stream = new GenerationStream(this.#plan(request, observer));
    if (this.#lifecycle.state === "closed") stream.abandon(shuttingDown);
    this.#lifecycle.begin(stream);
    return stream;
  }

  #plan(request: GenerationRequest, observer: GenerationObserver | undefined): GenerationPlan {
    const { balance, retries = defaults.retries, log } = this.#options;
    const watched = observer && this.#cacheWatch.watch(request, (miss) => observer.cacheMissed(miss));
    return {
      targets: this.#targets,
      conversation: balance === "prefix" ? conversationKey(request) : undefined,
      budget: this.#budget,
      enter: (admitted) => this.#admission.enter(request, admitted),
      retries,
      model: this.#nameOf(request.model),
      prepare: (model, target, fresh, limit) =>
        this.#prepare(request, model, target, fresh, observer?.inspection, limit),
      limitAfter: (refused) => this.#limitAfter(refused, request),
      observe: (attempt) => {
        if (watched) watched.server = attempt.url;
        return observer?.attempt(attempt);
      },
      read: (events) => watched?.read(events),
      retried: (failure, model, target) => {
        this.#retries++;
        const { status } = failure;
        log?.("tried again", "info", {
          req: request.id,
          model,
          url: target.url,
          status,
          error: loggedFailure(failure),
        });
      },
      closed: (stream, attempt) => {
        this.#lifecycle.end(stream);
        const repairs = attempt?.reader.repairs;
        if (observer && repairs && repairs.total > 0)
          observer.repaired(Object.fromEntries(repairs.list().map(({ id, count }) => [id, count])));
      },
    };
  }

  #prepare(
    request: GenerationRequest,
    model: string,
    target: UpstreamTarget,
    fresh: boolean,
    inspection: Inspection | undefined,
    limit: number | null | undefined,
  ): AttemptOptions | Promise<AttemptOptions> {
    const { format, name, log } = this.#options;
    const { prompt, stream, tools, passthrough } = request;
    const isChat = prompt.kind === "chat";
    const source = isChat ? this.#source : this.#textSource();
    const isSameDialect = passthrough?.dialect === source.name;
    if (!isSameDialect) refuseTokens(request);
    const customTools = tools?.filter(({ kind }) => kind === "custom").map(({ name }) => name) ?? [];
    const warn = (warning: string): void => log?.(warning, "warn", { req: request.id });
    const stages: EventStage[] = [];
    if (customTools.length > 0) stages.push(new CustomCalls(new Set(customTools)));
    if (format !== undefined && isChat) stages.push(new TextStage(format, request, newCallId, warn));
    const profile = this.#profileOf(model, target.url);
    const reader = source.reader({
      newCallId,
      legacyFunctions: isChat && prompt.legacyFunctions === true,
      callsInText: format !== undefined,
      choices: requestedChoices(request, profile),
      frameLimit: this.#answerLimit,
    });
    const options: Omit<AttemptOptions, "body"> = {
      target,
      path: target.path(source.path),
      headers: {
        ...(stream ? this.#streamHeaders : this.#answerHeaders),
        "x-request-id": request.id,
        ...(isSameDialect && passthrough.headers),
      },
      stream,
      fresh,
      reader,
      transform: transformOf(stages),
      upstream: name,
      firstEventMs: this.#firstEventMs,
      idleMs: this.#idleMs,
      answerLimit: this.#answerLimit,
      watch: target.transport.sharesTimers ? this.#watch : this.#newWatch(),
      inspect: undefined,
    };
    const withBody = (body: string): AttemptOptions => inspected({ ...options, body }, inspection);
    if (inspection) reader.repairs.keepPlaces();
    const note: NoteAdaptation = (id) => reader.repairs.note(id);
    const members = source.writeRequest(request, profile, note);
    if (this.#fitLimit(members, profile, model, source, limit)) note("max-tokens");
    const body = requestBodyText(members);
    return typeof body === "string" ? withBody(body) : body.then(withBody);
  }

  /** The upstream's own name of a model. */
  #nameOf(model: string): string {
    return this.#options.models?.[model] ?? model;
  }

  /** What the server at this URL accepts for a model (by the upstream's name): the configured profile over that of a known server. */
  #profileOf(model: string, url: string): ServerProfile {
    // The owner of configured models is this upstream's name, which does not identify a server.
    const owner = this.#options.models ? undefined : this.#models.find(({ id }) => id === model)?.ownedBy;
    const known = knownProfile(url, owner);
    return { ...known, ...(this.#native.reasons(model) && { reasoningEffort: true }), ...this.#options.profile, model };
  }

  /**
   * Lowers the limit on the answer's length in a request's body to what the model takes: to `limit`, which comes from a refusal, else to
   * what a prompt of one token leaves of the context. Returns whether the body was changed.
   */
  #fitLimit(
    body: RequestBody,
    profile: ServerProfile,
    model: string,
    source: SourcePort,
    limit: number | null | undefined,
  ): boolean {
    const max = limit === undefined ? this.#models.find(({ id }) => id === model)?.highestLimit : limit;
    if (max === undefined) return false;
    if (lowerAnswerLimit(body, max, source.answerLimit, profile)) return true;
    // The request had no limit, and the server's default was too high.
    return typeof limit === "number" && setAnswerLimit(body, limit, source.answerLimit, profile);
  }

  /** See `GenerationPlan`. If the refusal names no limit and the API requires one, the server counts the prompt. */
  #limitAfter(refused: RefusedLimit, request: GenerationRequest): number | null | Promise<number | null | undefined> {
    if (refused.max !== null) return refused.max;
    const { answerLimit, tokenCount } = this.#source;
    if (answerLimit.none !== "required") return null;
    if (!tokenCount) return Promise.resolve(undefined);
    return this.#questions.countTokens(request, AbortSignal.timeout(countTimeoutMs)).then(
      (tokens) => (tokens < refused.context ? refused.context - tokens : undefined),
      () => undefined,
    );
  }

  /**
   * The API that continues a text: OpenAI's legacy completions. Responses and Messages have no equivalent: a model that gets a text as a
   * user's message answers it.
   */
  #textSource(): SourcePort {
    if (this.#source === sourcePorts.chat) return completionsSource;
    throw modelOnlyChats();
  }

  #newWatch(): Watch {
    return new Watch(Math.min(this.#firstEventMs, this.#idleMs));
  }

  async #listedModels(): Promise<readonly ListedUpstreamModel[]> {
    const { name, urls } = this.#options;
    const reasons: unknown[] = [];
    for (const target of this.#targets.targets) {
      try {
        const models = await listUpstreamModels(target, this.#headers, this.#source, this.#native);
        if (models.length > 0) return models;
        reasons.push(new Error(`${target.url} has no models`));
      } catch (error) {
        reasons.push(error);
      }
    }
    const [first] = reasons;
    const why = first instanceof Error ? first.message : String(first);
    const message = `the models of ${name} (${urls.map(shownUrl).join(", ")}) cannot be listed: ${why}. Name them, to do without the list: --model NAME on the command line (repeatable), "models" in the configuration.`;
    throw new AggregateError(reasons, message);
  }

  async #refreshModels(): Promise<void> {
    try {
      const models = await this.#listedModels();
      if (JSON.stringify(models) !== JSON.stringify(this.#models)) this.#models = models;
    } catch (error) {
      this.#options.log?.("the model list could not be read again", "warn", { error: String(error) });
    }
  }
}

/** Adds the inspection to an attempt, if there is one. */
function inspected(attempt: AttemptOptions, inspection: Inspection | undefined): AttemptOptions {
  if (!inspection) return attempt;
  const { target, path, body, reader } = attempt;
  const url = new URL(path.replace(/\?.*/s, ""), target.url.replace(/\/\/[^/]*@/, "//")).href;
  return {
    ...attempt,
    inspect: (headers) => inspection.sent({ url, headers, body, repairs: reader.repairs.keepPlaces() }),
  };
}

/** The number of choices that a request asks for. The configuration may add a member `n` to its body. */
function requestedChoices({ prompt, n = 1 }: GenerationRequest, { add }: ServerProfile): number {
  const prompts = prompt.kind === "text" ? prompt.prompts.length : 1;
  const added = add?.["n"];
  return prompts * Math.max(n, typeof added === "number" ? added : 1);
}

/** Applies the stages in order. */
function transformOf([first, second]: readonly EventStage[]): AttemptOptions["transform"] {
  if (first && second) return (events) => second.transform(first.transform(events));
  return first?.transform;
}

/** Only a server of the same API returns tokens under the names that the client used. */
function refuseTokens({ wantsTokenIds, promptLogprobs }: GenerationRequest): void {
  if (wantsTokenIds) throw unsupportedParameter("return_token_ids");
  if (promptLogprobs) throw unsupportedParameter("prompt_logprobs");
}

function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Bodies up to this many characters are serialized at once, which takes a few milliseconds. */
const maxSyncBody = 512 * 1024;
/** The number of characters of a longer body that are serialized in one step. */
const bodyStep = 128 * 1024;

/** Serializes a request's body. A long body is serialized in steps, between which other requests are served. */
export function requestBodyText(body: object): string | Promise<string> {
  return isLong(body, maxSyncBody) ? serializeInSteps(body) : JSON.stringify(body);
}

async function serializeInSteps(body: object): Promise<string> {
  const chunks: string[] = [];
  for (const chunk of jsonChunks(body, bodyStep)) {
    chunks.push(chunk);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return chunks.join("");
}
