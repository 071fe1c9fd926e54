import type {
  Engine,
  EngineAnswer,
  EngineHealth,
  EngineQuestion,
  ModelInfo,
  QuestionKind,
  ServerProfileReport,
} from "../../core/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../../core/events.ts";
import type { GenerationObserver } from "../../core/generation-observer.ts";
import type { AdaptationPlace, AnswerReading, Inspection } from "../../core/inspection.ts";
import { estimateTokens } from "../../core/estimate-tokens.ts";
import { FailureError, loggedFailure } from "../../core/failure.ts";
import { isLong, jsonChunks } from "../../core/json-chunks.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { completionsSource } from "../../apis/completions/port.ts";
import { ollamaTextSource } from "../../apis/ollama/send.ts";
import { modelOnlyChats } from "../../apis/failures.ts";
import { toolCallId } from "../../apis/ids.ts";
import { textOfAdaptation } from "../../apis/adapt/adaptation-names.ts";
import type { AdaptationName } from "../../apis/adapt/adaptation-names.ts";
import { notAdapted } from "../../apis/adapt/adaptations.ts";
import { mergedProfile } from "../../apis/adapt/learn-refusal.ts";
import { type UnfitPart, unfitParts } from "../../apis/adapt/fit-media.ts";
import { looseSchemas } from "../../apis/adapt/simplify-schema.ts";
import { overflowFailure } from "../../apis/adapt/truncation.ts";
import { knownServer } from "../../apis/adapt/known-servers.ts";
import { isOn, type NoteAdaptation, type RequestBody, type ServerProfile } from "../../apis/adapt/server-profile.ts";
import { lowerAnswerLimit, setAnswerLimit } from "../../apis/source-port.ts";
import type { EventReader, SourcePort } from "../../apis/source-port.ts";
import { readResponseBody } from "../../apis/tolerant/read-response.ts";
import { unsupportedParameter } from "../../apis/request/refusals.ts";
import { sourcePorts } from "../../apis/ports.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";
import { Admission } from "./admission.ts";
import { type AttemptOptions, Watch } from "./attempt.ts";
import type { Background } from "./background/background.ts";
import { conversationKey } from "./balance.ts";
import { CacheWatch } from "./cache-watch.ts";
import {
  CustomCalls,
  type EventStage,
  ReplaceableGeneration,
  severalChoices,
  TextStage,
  TruncationStage,
} from "./event-stages.ts";
import { fitMedia } from "./fit-media.ts";
import { judgedAnswer } from "./judged-answer.ts";
import { type GenerationPlan, GenerationStream, type RefusedLimit, RetryBudget } from "./generation-stream.ts";
import {
  type ListedUpstreamModel,
  listUpstreamModels,
  NativeCapabilities,
  probe,
  upstreamEndpoints,
} from "./list-models.ts";
import { ProfileMemory, type ProfileStore, RequestLessons } from "./learned-profiles.ts";
import type { UpstreamOptions } from "./options.ts";
import { OllamaModels } from "./ollama-models.ts";
import { isPrivateUrl, ProfileProber } from "./profile-prober.ts";
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
/** The maximum number of adaptations of one request that its inspection shows. */
const maxShownAdaptations = 100;
/** The maximum number of models whose profiles are shown, for each server. */
const maxShownProfiles = 100;
/** The maximum number of adaptations that are logged: models may be many. */
const maxLoggedAdaptations = 1000;
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
  /** Only where the servers speak Ollama's own API. */
  readonly #ollama: OllamaModels | undefined;
  readonly #budget = new RetryBudget();
  readonly #admission: Admission;
  readonly #cacheWatch = new CacheWatch();
  readonly #watch: Watch;
  readonly #firstEventMs: number;
  readonly #idleMs: number;
  readonly #answerLimit: number;
  #background: Background | undefined;
  readonly #profiles: ProfileStore;
  /** Present for an API that has probes. */
  readonly #prober: ProfileProber | undefined;
  /** The models that have answered, by the upstream's names. */
  readonly #used = new Set<string>();
  /** Adaptations that change the meaning of a request and were logged, by model. */
  readonly #loggedAdaptations = new Set<string>();
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
    this.#profiles = options.profiles ?? new ProfileMemory();
    if (this.#source === sourcePorts.chat)
      this.#prober = new ProfileProber({
        headers: this.#headers,
        store: this.#profiles,
        profileOf: (model, url) => this.#profileOf(model, url),
        idleMs: options.probeAfter,
        log: options.log,
      });
    this.#watch = this.#newWatch();
    this.#admission = new Admission(options.concurrency, options.queueLimit);
    this.#targets = new TargetSet(options, open, (target) => probe(target, this.#headers, this.#source));
    if (options.api === "ollama") this.#ollama = new OllamaModels(options.ollama ?? {}, this.#headers);
    this.#questions = new UpstreamQuestions({
      targets: this.#targets,
      source: this.#source,
      headers: this.#headers,
      answerLimit: this.#answerLimit,
      add: options.profile?.add ?? {},
      ollama: this.#ollama,
      nameOf: (model) => this.#nameOf(model),
      profileOf: (model) => this.#profileOf(model, shownUrl(options.urls[0] ?? "")),
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
    const asked: AskedGeneration = { request, observer, lessons: new RequestLessons(), isWhole: true };
    const judged = this.#judged(asked);
    if (judged) return judged;
    const first = this.#choices(asked);
    // A refusal may teach that the schemas must be simpler.
    return this.#mayJudge(request) ? new ReplaceableGeneration(first, () => this.#judged(asked)) : first;
  }

  /** Whether the answer is judged if the server takes only simpler schemas. Only chat requests are written with such. */
  #mayJudge({ tools = [], output }: GenerationRequest): boolean {
    const { strict, openBackground } = this.#options;
    if (this.#source !== sourcePorts.chat || strict === true || !openBackground) return false;
    return output?.type === "json-schema" || tools.some(({ parameters }) => parameters !== undefined);
  }

  /** The answer, judged by the client's schemas; null: no server of this upstream gets simpler ones. */
  #judged(asked: AskedGeneration): AsyncIterable<readonly GenerationEvent[]> | null {
    const { request, observer, lessons } = asked;
    if (!this.#mayJudge(request)) return null;
    const [schemas] = this.#profilesOf(request.model, lessons).flatMap(
      (profile) => looseSchemas(request, profile) ?? [],
    );
    const background = schemas && this.#openBackground();
    if (!background) return null;
    return judgedAnswer({
      schemas,
      background,
      // Inspect keeps the events, which may be corrected.
      start: () => this.#choices({ ...asked, isWhole: false, isJudged: true }),
      report: (id, subject, errors) => {
        observer?.repaired({ [id]: 1 });
        this.#options.log?.("an answer does not fit the client's JSON Schema", "warn", {
          req: request.id,
          model: request.model,
          subject,
          errors,
          result: id,
        });
      },
      isWhole: !request.stream,
    });
  }

  #choices(asked: AskedGeneration): AsyncIterable<readonly GenerationEvent[]> {
    const { request, observer } = asked;
    const { n = 1, prompt, passthrough } = request;
    const merged = (requests: readonly GenerationRequest[]): AsyncIterable<readonly GenerationEvent[]> =>
      severalChoices(
        requests.map((one, at) => this.#stream({ ...asked, request: one, isWhole: false, isFurther: at > 0 })),
        n,
      );
    if (this.#ollama && prompt.kind === "text" && n * prompt.prompts.length > 1) {
      const { passthrough: _, ...others } = request;
      const each = prompt.prompts.map((text) => ({ ...others, n: 1, prompt: { ...prompt, prompts: [text] } }));
      return merged(each.flatMap((one) => Array.from({ length: n }, () => one)));
    }
    // With `strict`, several choices are refused when the request is written.
    if (n === 1 || prompt.kind !== "chat" || this.#options.strict === true) return this.#stream(asked);
    const singles = (): AsyncIterable<readonly GenerationEvent[]> => {
      const { n: _, ...body } = passthrough?.body ?? {};
      observer?.repaired({ "one-choice": 1 });
      const one = { ...request, n: 1, ...(passthrough && { passthrough: { ...passthrough, body } }) };
      return merged(Array.from({ length: n }, () => one));
    };
    if (this.#takesOneChoice(asked)) return singles();
    return new ReplaceableGeneration(this.#stream(asked), () => (this.#takesOneChoice(asked) ? singles() : null));
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

  /** The profiles of the models that have answered, with the origin of each entry. */
  profiles(): readonly ServerProfileReport[] {
    // Added members may contain secrets.
    const { add: _, ...configured } = this.#options.profile ?? {};
    return this.#targets.targets.flatMap(({ url }) =>
      [...this.#used].slice(0, maxShownProfiles).map((model) => {
        const known = knownServer(url, this.#listedModel(model));
        const learned = this.#profiles.get(url, model);
        const name = learned?.server ?? known?.name;
        return {
          url,
          model,
          ...(name !== undefined && { server: name }),
          known: { ...known?.profile },
          learned: { ...learned?.profile },
          configured,
        };
      }),
    );
  }

  close(graceMs: number): Promise<void> {
    clearInterval(this.#refresh);
    this.#prober?.close();
    return this.#lifecycle.close(graceMs, {
      stop: (stream) => stream.abandon(shuttingDown),
      release: async () => {
        await Promise.all([this.#targets.close(), this.#background?.close()]);
      },
    });
  }

  /** undefined: this runtime has no threads. */
  #openBackground(): Background | undefined {
    return (this.#background ??= this.#options.openBackground?.());
  }

  /** Whether a server of the upstream takes only `n: 1`. */
  #takesOneChoice({ request, lessons }: Pick<AskedGeneration, "request" | "lessons">): boolean {
    if (this.#options.singleChoice === true || this.#source.singleChoice === true) return true;
    return this.#profilesOf(request.model, lessons).some(
      (profile) => profile.severalChoices === false && isOn(profile, "one-choice"),
    );
  }

  /** The profiles of all servers, for a model by the name that clients use. */
  #profilesOf(model: string, lessons: RequestLessons): ServerProfile[] {
    return this.#targets.targets.map(({ url }) => this.#profileOf(this.#nameOf(model), url, lessons));
  }

  /** `close` waits for this stream. */
  #stream(asked: AskedGeneration): GenerationStream {
    const stream = new GenerationStream(this.#plan(asked));
    if (this.#lifecycle.state === "closed") stream.abandon(shuttingDown);
    this.#lifecycle.begin(stream);
    return stream;
  }

  #plan(asked: AskedGeneration): GenerationPlan {
    const { request, observer, lessons, isWhole, isFurther = false } = asked;
    const { balance, retries = defaults.retries, log } = this.#options;
    // A further choice has the prompt of the first one, which the server may still be processing.
    const watched = isFurther
      ? undefined
      : observer && this.#cacheWatch.watch(request, (miss) => observer.cacheMissed(miss));
    return {
      targets: this.#targets,
      conversation: balance === "prefix" ? conversationKey(request) : undefined,
      budget: this.#budget,
      enter: (admitted) => this.#admission.enter(request, admitted, isFurther),
      retries,
      model: this.#nameOf(request.model),
      prepare: (model, target, fresh, limit) => {
        const inspected = observer?.inspection && { inspection: observer.inspection, isWhole };
        const prepared = (): AttemptOptions | Promise<AttemptOptions> =>
          this.#prepare({ request, model, target, fresh, inspected, limit, lessons });
        return this.#ollama ? this.#ollama.prepare(model, target).then(prepared) : prepared();
      },
      limitAfter: (refused) => this.#limitAfter(refused, request),
      learn: (failure, refused, model) =>
        this.#ollama?.failed(failure, model, refused.target) === true || this.#learn(failure, refused, model, asked),
      confirmLessons: ({ url }) => this.#confirm(lessons, url),
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
      closed: (stream, attempt, end) => {
        this.#lifecycle.end(stream);
        if (attempt && end.kind === "done") this.#answered(attempt);
        const repairs = attempt?.reader.repairs;
        if (observer && repairs && repairs.total > 0)
          observer.repaired(Object.fromEntries(repairs.list().map(({ id, count }) => [id, count])));
      },
    };
  }

  #prepare(preparation: Preparation): AttemptOptions | Promise<AttemptOptions> {
    const { request, model, target, fresh, inspected, limit, lessons } = preparation;
    const { format, name, log, strict } = this.#options;
    const { prompt, stream, tools, passthrough } = request;
    const isChat = prompt.kind === "chat";
    const source = isChat ? this.#source : this.#textSource();
    const isSameDialect = passthrough?.dialect === source.name;
    if (!isSameDialect) refuseTokens(request);
    const customTools = tools?.filter(({ kind }) => kind === "custom").map(({ name }) => name) ?? [];
    const warn = (warning: string): void => log?.(warning, "warn", { req: request.id });
    const ollama = this.#ollama?.stateOf(model, target);
    const profile = {
      ...this.#profileOf(model, target.url, lessons),
      ...(ollama && { ollama, truncates: ollama.cutsPrompts === true }),
    };
    const { onTruncation: mode = "error" } = this.#options;
    const openReader = (callId: () => string, warnings = true): OpenedReader => {
      const warned = warnings ? warn : undefined;
      const reader = source.reader({
        newCallId: callId,
        legacyFunctions: isChat && prompt.legacyFunctions === true,
        callsInText: format !== undefined,
        choices: requestedChoices(request, profile),
        frameLimit: this.#answerLimit,
      });
      const stages: EventStage[] = [];
      const report = ({ message }: { readonly message: string }): void => {
        reader.repairs.note("prompt-truncated");
        warned?.(message);
      };
      if (mode !== "allow" && isChat && profile.truncates !== false)
        stages.push(new TruncationStage({ request, profile, mode, upstream: name, report }));
      if (customTools.length > 0) stages.push(new CustomCalls(new Set(customTools)));
      if (format !== undefined && isChat) stages.push(new TextStage(format, request, callId, warned));
      return { reader, transform: transformOf(stages) };
    };
    const callIds = inspected && new RecordedIds();
    const { reader, transform } = openReader(callIds?.next ?? newCallId);
    const options: Omit<AttemptOptions, "body"> = {
      target,
      model,
      profile,
      path: target.path(source.path),
      headers: {
        ...(stream ? this.#streamHeaders : this.#answerHeaders),
        "x-request-id": request.id,
        ...(isSameDialect && passthrough.headers),
      },
      stream,
      fresh,
      reader,
      transform,
      upstream: name,
      firstEventMs: this.#firstEventMs,
      idleMs: this.#idleMs,
      answerLimit: this.#answerLimit,
      watch: target.transport.sharesTimers ? this.#watch : this.#newWatch(),
      inspect: undefined,
    };
    const withBody = (body: string): AttemptOptions => {
      if (!inspected || !callIds) return { ...options, body };
      const inspect: AttemptOptions["inspect"] = (headers) =>
        inspected.inspection.sent({
          url: target.endpointUrl(source.path),
          headers,
          body,
          adaptations,
          reread: () => rereading(openReader(callIds.again(), false), stream),
          isWhole: inspected.isWhole,
        });
      return { ...options, body, inspect };
    };
    const adaptations: AdaptationPlace[] = [];
    const note: NoteAdaptation = (id, place) => {
      if (strict === true) throw notAdapted(id, place, name);
      reader.repairs.note(id);
      if (textOfAdaptation(id).changesMeaning) this.#logAdaptation(id, model, request);
      if (inspected && adaptations.length < maxShownAdaptations) adaptations.push({ id, place });
    };
    const write = (fitted: GenerationRequest): AttemptOptions | Promise<AttemptOptions> => {
      if (strict === true && isChat && (request.n ?? 1) > 1 && this.#takesOneChoice(preparation))
        note("one-choice", "n");
      // Servers that cut prompts are asked for usage, which shows it.
      const wantsUsage = request.wantsUsage || (profile.truncates === true && mode !== "allow");
      const members = source.writeRequest({ ...fitted, wantsUsage }, profile, note);
      if (this.#fitLimit(members, profile, model, source, limit)) note("max-tokens");
      this.#ollama?.sent(model, target, members);
      const body = requestBodyText(members);
      return typeof body === "string" ? withBody(body) : body.then(withBody);
    };
    const unfit = unfitParts(request, profile);
    const background = unfit.length > 0 ? this.#openBackground() : undefined;
    const isCounted = mode === "error" && isChat && this.#mayOverflow(request, profile);
    if (!background && !isCounted) return write(request);
    return this.#fitted(request, profile, isCounted, background && { unfit, background, note }).then(write);
  }

  /** Converts files and images, and counts the prompt. Rejects with `FailureError` if one cannot be read, or the prompt is too long. */
  async #fitted(
    request: GenerationRequest,
    profile: ServerProfile,
    isCounted: boolean,
    media:
      | { readonly unfit: readonly UnfitPart[]; readonly background: Background; readonly note: NoteAdaptation }
      | undefined,
  ): Promise<GenerationRequest> {
    const fitted = media ? await fitMedia(request, media.unfit, profile, media.background, media.note) : request;
    if (!isCounted) return fitted;
    const tokens = await this.#questions.countPrompt(fitted, AbortSignal.timeout(countTimeoutMs));
    const failure =
      tokens !== undefined && overflowFailure(tokens, profile.contextSize ?? Infinity, this.#options.name);
    if (failure) throw new FailureError(failure);
    return fitted;
  }

  /** Whether a prompt is counted before it is sent: to a server that cuts prompts, and can count, if the prompt may be too long. */
  #mayOverflow(request: GenerationRequest, { truncates, contextSize, tokenizer }: ServerProfile): boolean {
    if (truncates !== true || contextSize === undefined) return false;
    const canCount = tokenizer !== undefined || this.#source.tokenCount !== undefined;
    return canCount && estimateTokens(request) > contextSize / 2;
  }

  /** The upstream's own name of a model. */
  #nameOf(model: string): string {
    return this.#options.models?.[model] ?? model;
  }

  /** Logs the first adaptation of each kind for a model that changes what the model reads or does. */
  #logAdaptation(name: AdaptationName, model: string, { id }: GenerationRequest): void {
    const key = JSON.stringify([model, name]);
    if (this.#loggedAdaptations.has(key) || this.#loggedAdaptations.size >= maxLoggedAdaptations) return;
    this.#loggedAdaptations.add(key);
    const { log } = this.#options;
    log?.("adapted the request", "warn", { req: id, model, adaptation: name, what: textOfAdaptation(name).sentence });
  }

  /** Lets the prober ask the server of an answer, if it may: probes cost tokens. */
  #answered({ target, model }: AttemptOptions): void {
    const { learn } = this.#options;
    this.#used.add(model);
    if (!this.#prober || learn === false) return;
    const isUnknown = knownServer(target.url, this.#listedModel(model)) === undefined;
    if (learn === true || (isUnknown && isPrivateUrl(target.url))) this.#prober.answered(target, model);
  }

  /** See `GenerationPlan`. */
  #learn(
    failure: GenerationFailure,
    { target, body, profile: sentProfile }: AttemptOptions,
    model: string,
    { request, lessons, isJudged }: AskedGeneration,
  ): boolean | "replace" {
    const { strict, log } = this.#options;
    if (strict === true) return false;
    // By now another request may have taught the same.
    const lesson = lessons.learn(target.url, model, failure, body, sentProfile);
    if (!lesson) return false;
    log?.("learned from a refusal", "info", { req: request.id, model, url: target.url, learned: lesson });
    const profile = this.#profileOf(model, target.url, lessons);
    // Several requests take its place (`#choices`), or one whose answer is judged (`generate`).
    if (lesson.severalChoices === false && isOn(profile, "one-choice")) return "replace";
    return isJudged !== true && this.#mayJudge(request) && looseSchemas(request, profile) ? "replace" : true;
  }

  /** Keeps what the refusals of a server have taught. */
  #confirm(lessons: RequestLessons, server: string): void {
    for (const { url, model, profile } of lessons.list()) {
      if (url !== server) continue;
      const known = this.#profiles.get(url, model);
      this.#profiles.set(url, model, { ...known, profile: mergedProfile(known?.profile ?? {}, profile) });
    }
  }

  /**
   * What the server at this URL (without credentials) accepts for a model (by the upstream's name): the configured profile, over what was learned, over that of a
   * known server.
   */
  #profileOf(model: string, url: string, lessons?: RequestLessons): ServerProfile {
    const known = knownServer(url, this.#listedModel(model))?.profile ?? {};
    return mergedProfile(
      known,
      this.#native.reasons(model) ? { reasoningEffort: true } : {},
      this.#profiles.get(url, model)?.profile ?? {},
      lessons?.of(url, model) ?? {},
      this.#options.profile ?? {},
      { model },
    );
  }

  /** A model in the server's list. The entries of configured models do not come from the server. */
  #listedModel(model: string): ListedUpstreamModel | undefined {
    return this.#options.models ? undefined : this.#models.find(({ id }) => id === model);
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
   * The API that continues a text: OpenAI's legacy completions, or Ollama's own. Responses and Messages have no equivalent: a model that gets a text as a
   * user's message answers it.
   */
  #textSource(): SourcePort {
    if (this.#source === sourcePorts.chat) return completionsSource;
    if (this.#ollama) return ollamaTextSource;
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
        const models = this.#ollama
          ? await this.#ollama.list(target)
          : await listUpstreamModels(target, this.#headers, this.#source, this.#native);
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
      if (JSON.stringify(models) === JSON.stringify(this.#models)) return;
      this.#models = models;
      this.#prober?.changed();
    } catch (error) {
      this.#options.log?.("the model list could not be read again", "warn", { error: String(error) });
    }
  }
}

/** A request, and what its streams share. */
interface AskedGeneration {
  readonly request: GenerationRequest;
  readonly observer: GenerationObserver | undefined;
  readonly lessons: RequestLessons;
  /** The client receives the upstream's answer as it is. */
  readonly isWhole: boolean;
  /** The answer is judged by the client's schemas. */
  readonly isJudged?: boolean;
  /** Another choice of a request, after the first one. */
  readonly isFurther?: boolean;
}

interface Preparation {
  readonly request: GenerationRequest;
  /** The upstream's name of the model. */
  readonly model: string;
  readonly target: UpstreamTarget;
  readonly fresh: boolean;
  readonly inspected: InspectedAnswer | undefined;
  readonly limit: number | null | undefined;
  readonly lessons: RequestLessons;
}

interface InspectedAnswer {
  readonly inspection: Inspection;
  /** False: the generation has several answers, or corrects this one. */
  readonly isWhole: boolean;
}

interface OpenedReader {
  readonly reader: EventReader;
  readonly transform: AttemptOptions["transform"];
}

/** Makes ids of calls, and returns the same ones when the answer is read again. */
class RecordedIds {
  readonly #ids: string[] = [];

  readonly next = (): string => {
    const id = newCallId();
    this.#ids.push(id);
    return id;
  };

  again(): () => string {
    let at = 0;
    return () => this.#ids[at++] ?? newCallId();
  }
}

function rereading({ reader, transform }: OpenedReader, isStream: boolean): AnswerReading {
  const repairs = reader.repairs.keepPlaces();
  const changed = (events: GenerationEvent[]): GenerationEvent[] => (transform ? transform(events) : events);
  const body: string[] = [];
  return {
    repairs,
    push(text) {
      if (isStream) return changed(reader.push(text));
      body.push(text);
      return [];
    },
    end: () => changed(isStream ? reader.end() : readResponseBody(body.join(""), reader)),
  };
}

/** The number of choices that a request asks for. The configuration may add a member `n` to its body. */
function requestedChoices({ prompt, n = 1 }: GenerationRequest, { add }: ServerProfile): number {
  const prompts = prompt.kind === "text" ? prompt.prompts.length : 1;
  const added = add?.["n"];
  return prompts * Math.max(n, typeof added === "number" ? added : 1);
}

/** Applies the stages in order. */
function transformOf(stages: readonly EventStage[]): AttemptOptions["transform"] {
  if (stages.length < 2) return stages[0]?.transform;
  return (events) => stages.reduce((changed, { transform }) => transform(changed), events);
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
