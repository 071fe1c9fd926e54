import type {
  Engine,
  EngineAnswer,
  EngineHealth,
  EngineQuestion,
  ModelInfo,
  QuestionKind,
  ServerProfileReport,
  UpstreamUrl,
} from "../../wire/core/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../../wire/core/events.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";
import { loggedFailure } from "../../wire/core/failure.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { TurnMemory } from "../../wire/core/turn-memory.ts";
import { OpenList } from "../../wire/core/open-list.ts";
import { looseSchemas } from "../../wire/apis/adapt/simplify-schema.ts";
import { knownServer } from "../../wire/apis/adapt/known-servers.ts";
import { refusesState } from "../../wire/apis/adapt/state-refusals.ts";
import { isOn, type ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import type { SourcePort } from "../../wire/apis/source-port.ts";
import { sourcePortOf } from "../../wire/apis/ports.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";
import { Admission } from "./admission.ts";
import type { AttemptOptions } from "./attempt.ts";
import type { Background } from "./background/background.ts";
import { conversationKey } from "../../wire/core/conversation-key.ts";
import { CacheWatch } from "./cache-watch.ts";
import { replaceable, severalChoices } from "./event-stages.ts";
import { judgedAnswer } from "./judged-answer.ts";
import { type GenerationPlan, GenerationStream } from "./generation-stream.ts";
import { RetryBudget } from "./next-attempt.ts";
import {
  type ListedUpstreamModel,
  listUpstreamModels,
  NativeCapabilities,
  probe,
  upstreamEndpoints,
} from "./list-models.ts";
import type { UpstreamOptions } from "./options.ts";
import { OllamaModels } from "./ollama-models.ts";
import { UpstreamQuestions } from "./questions.ts";
import { shownUrl, stateSource, TargetSet } from "./targets.ts";
import { inBackground, type OpenTransport } from "./transport.ts";
import { neededCapabilities, ProfileMemory, RequestLessons, UpstreamProfiles } from "./learned-profiles.ts";
import { TurnCollector } from "./kept-turns.ts";
import { AttemptPreparer } from "./prepare-attempt.ts";
import { RefusedStates, RequestTurns } from "./request-turns.ts";

// Why there is no HTTP client library, retry library or SSE reader here: tolerance is what this project sells. A client library reports
// "terminated" where a request must know whether its bytes ever reached the server (then it is repeated on a new connection without
// counting as an attempt), whether an answer broke off after some text (then it is truncated), or whether it was silent. Retries stop with
// the first event, share a budget over all requests, and honour Retry-After only up to a second: longer waits belong to the client's SDK.
// Back-pressure reaches from the client's socket to the upstream's. SSE is read as servers write it, not as the standard says.

const defaultAnswerLimit = 16 * 1024 * 1024;
const defaultRetries = 2;
/** The maximum number of models whose profiles are shown, for each server. */
const maxShownProfiles = 100;
/** The number of servers' models of which `#known` keeps something. */
const maxKnown = 1000;
/** How often the upstream's model list is read again. */
const refreshMs = 60_000;

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
  readonly #preparer: AttemptPreparer;
  readonly #targets: TargetSet;
  readonly #questions: UpstreamQuestions;
  readonly #native = new NativeCapabilities();
  /** Only where the servers speak Ollama's own API. */
  readonly #ollama: OllamaModels | undefined;
  readonly #budget = new RetryBudget();
  readonly #admission: Admission;
  readonly #cacheWatch = new CacheWatch();
  readonly #refusedStates = new RefusedStates();
  /** With `strict`, a request is not completed: its client returns what the server demands. */
  readonly #memory: TurnMemory | undefined;
  #background: Background | undefined;
  readonly #profiles: UpstreamProfiles;
  /** The models that have answered, by the upstream's names. */
  readonly #used = new Set<string>();
  #models: readonly ListedUpstreamModel[] = [];
  /** What is known of the servers, by URL and model; null: nothing. Depends on `#models`. */
  readonly #known = new Map<string, KnownServerProfile | null>();
  #refresh: NodeJS.Timeout | undefined;
  readonly #lifecycle = new EngineLifecycle<GenerationStream>(new OpenList());
  #retries = 0;

  constructor(options: UpstreamOptions, open: OpenTransport) {
    this.#options = options;
    this.#memory = options.strict === true ? undefined : options.turns;
    this.#source = sourcePortOf(options);
    this.#headers = {
      "user-agent": "truewire",
      "accept-encoding": "identity",
      ...this.#source.headers(options.key),
      ...lowerCased(options.headers),
    };
    const { answerLimit = defaultAnswerLimit, profiles: store = new ProfileMemory() } = options;
    this.#profiles = new UpstreamProfiles({
      log: options.log,
      configured: options.profile ?? {},
      store,
      defaults: this.#source.profile,
      known: (model, url) => this.#knownServer(model, url),
      reasons: (model) => this.#native.reasons(model),
    });
    this.#admission = new Admission(options.concurrency, options.queueLimit);
    this.#targets = new TargetSet(options, open, (target) => probe(target, this.#headers, this.#source));
    if (options.api === "ollama") this.#ollama = new OllamaModels(options.ollama ?? {}, this.#headers);
    this.#questions = new UpstreamQuestions({
      targets: this.#targets,
      source: this.#source,
      headers: this.#headers,
      passKey: options.passKey === true,
      answerLimit,
      add: options.profile?.add ?? {},
      ollama: this.#ollama,
      nameOf: (model) => this.#nameOf(model),
      turnsOf: (request) => this.#turnsOf(request),
      profileOf: (model) => this.#profiles.of(model, shownUrl(options.urls[0] ?? "")),
    });
    this.#preparer = new AttemptPreparer({
      options,
      source: this.#source,
      headers: this.#headers,
      answerLimit,
      questions: this.#questions,
      ollama: this.#ollama,
      profiles: this.#profiles,
      openBackground: () => this.#openBackground(),
      takesOneChoice: (asked) => this.#takesOneChoice(asked),
      highestLimit: (model) => this.#models.find(({ id }) => id === model)?.highestLimit,
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
      this.#known.clear();
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
    const turns = this.#turnsOf(request);
    const asked: AskedGeneration = { request, observer, lessons: new RequestLessons(), turns, isWhole: true };
    const judged = this.#judged(asked);
    if (judged) return judged;
    // A refusal may teach that the schemas must be simpler.
    return this.#mayJudge(request)
      ? replaceable(
          () => this.#choices(asked),
          () => this.#judged(asked),
        )
      : this.#choices(asked);
  }

  #turnsOf(request: GenerationRequest): RequestTurns {
    return new RequestTurns(request, this.#memory, this.#refusedStates);
  }

  /** Whether the answer is judged if the server takes only simpler schemas. Only chat requests are written with such. */
  #mayJudge({ tools = [], output }: GenerationRequest): boolean {
    const { strict, openBackground } = this.#options;
    if (this.#source.name !== "chat" || strict === true || !openBackground) return false;
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
      owner: request.owner,
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
    return replaceable(
      () => this.#stream(asked),
      () => (this.#takesOneChoice(asked) ? singles() : null),
    );
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
    const models = [...this.#used].slice(0, maxShownProfiles);
    return this.#targets.targets.flatMap(({ url }) => models.map((model) => this.#profiles.report(model, url)));
  }

  forget(model: string, { url, lesson }: { readonly url?: string; readonly lesson?: string }): readonly string[] {
    const urls = this.#targets.targets.map((target) => target.url).filter((one) => url === undefined || one === url);
    return [...new Set(urls.flatMap((one) => this.#profiles.forget(this.#nameOf(model), one, lesson)))];
  }

  urls(): readonly UpstreamUrl[] {
    return this.#targets.targets.map((target) => target.report());
  }

  close(graceMs: number): Promise<void> {
    clearInterval(this.#refresh);
    return this.#lifecycle.close(graceMs, {
      stop: (stream) => stream.abandon(shuttingDown),
      release: async () => {
        this.#background?.close();
        await this.#targets.close();
      },
    });
  }

  /** undefined: this runtime has no processes. */
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
    return this.#targets.targets.map(({ url }) => this.#profiles.of(this.#nameOf(model), url, lessons));
  }

  /** `close` waits for this stream. */
  #stream(asked: AskedGeneration): GenerationStream {
    const stream = new GenerationStream(this.#plan(asked));
    if (this.#lifecycle.state === "closed") stream.abandon(shuttingDown);
    this.#lifecycle.begin(stream);
    return stream;
  }

  #plan(asked: AskedGeneration): GenerationPlan {
    const { request, observer, lessons, turns, isWhole, isFurther = false } = asked;
    const { retries = defaultRetries, log } = this.#options;
    const collected = isFurther ? undefined : this.#collectorFor(request);
    // A further choice has the prompt of the first one, which the server may still be processing.
    const watched =
      observer && !isFurther ? this.#cacheWatch.watch(request, (miss) => observer.cacheMissed(miss)) : undefined;
    const model = this.#nameOf(request.model);
    const inspection = observer?.inspection;
    const countStates = isFurther ? undefined : observer?.turnStates?.bind(observer);
    return {
      targets: this.#targets,
      conversation: this.#staysAtTarget(request) ? conversationKey(request) : undefined,
      turns,
      budget: this.#budget,
      enter: (admitted) => this.#admission.enter(request, admitted, isFurther),
      retries,
      prepare: (planned) => {
        const prepared = (): AttemptOptions | Promise<AttemptOptions> =>
          this.#preparer.prepare({ request, model, lessons, turns, inspection, isWhole, countStates, ...planned });
        return this.#ollama ? this.#ollama.prepare(model, planned.target).then(prepared) : prepared();
      },
      limitAfter: (refused) => this.#preparer.limitAfter(refused, request),
      learn: (failure, refused) =>
        this.#ollama?.failed(failure, model, refused.target) === true || this.#learn(failure, refused, asked),
      confirmLessons: (target) => {
        this.#profiles.confirm(lessons, target.url);
        turns.confirm(stateSource(target, model));
      },
      observe: ({ url }) => {
        if (watched) watched.server = url;
        return observer?.attempt({ url, model });
      },
      read: (events) => {
        watched?.read(events);
        collected?.read(events);
      },
      retried: (failure, target) => {
        this.#retries++;
        target.retries++;
        const { status } = failure;
        const error = loggedFailure(failure);
        log?.("tried again", "info", { req: request.id, model, url: target.url, status, error });
      },
      closed: (stream, attempt, end) => {
        this.#lifecycle.end(stream);
        if (attempt && end.kind === "done") this.#answered(attempt, request);
        if (end.kind === "done") this.#keep(request, collected);
        const repairs = attempt?.reader.repairs;
        if (observer && repairs && repairs.total > 0)
          observer.repaired(Object.fromEntries(repairs.list().map(({ id, count }) => [id, count])));
      },
    };
  }

  /** Whether the requests of a conversation go to one target while it can: it is the only one that accepts the states of its answers. */
  #staysAtTarget({ reasoning }: GenerationRequest): boolean {
    const { balance, keys = [] } = this.#options;
    if (keys.length > 0) return true;
    if (balance !== undefined) return balance === "prefix";
    const signs = this.#source.name === "messages" || this.#source.name === "responses";
    return signs && reasoning !== undefined && reasoning.mode !== "off" && this.#targets.targets.length > 1;
  }

  /** undefined: the conversation goes on without what its source has given. */
  #collectorFor({ prompt, tools = [] }: GenerationRequest): TurnCollector | undefined {
    return this.#memory && prompt.kind === "chat" && tools.length > 0 ? new TurnCollector() : undefined;
  }

  #keep({ prompt, owner }: GenerationRequest, collected: TurnCollector | undefined): void {
    const kept = prompt.kind === "chat" ? collected?.turn(prompt.messages) : undefined;
    if (kept) this.#memory?.keep(owner, kept.keys, kept.turn);
  }

  /** The upstream's own name of a model. */
  #nameOf(model: string): string {
    return this.#options.models?.[model] ?? model;
  }

  /** The server has accepted a request, and with it what the request needs. */
  #answered({ target, model, profile }: AttemptOptions, request: GenerationRequest): void {
    this.#used.add(model);
    const sent = neededCapabilities(request).filter((name) => profile[name] !== false);
    this.#profiles.accepted(model, target.url, sent);
  }

  /** Each request asks several times, and the list of models may be long. */
  #knownServer(model: string, url: string): KnownServerProfile | undefined {
    const key = `${url} ${model}`;
    let found = this.#known.get(key);
    if (found === undefined) {
      if (this.#known.size >= maxKnown) this.#known.clear();
      found = knownServer(url, this.#listedModel(model)) ?? null;
      this.#known.set(key, found);
    }
    return found ?? undefined;
  }

  /** See `GenerationPlan`. */
  #learn(
    failure: GenerationFailure,
    { target, model, body, profile: sentProfile }: AttemptOptions,
    { request, lessons, turns, isJudged }: AskedGeneration,
  ): boolean | "replace" {
    const { strict, log } = this.#options;
    if (strict === true) return false;
    const about = { req: request.id, model, url: target.url };
    if (refusesState(failure) && turns.drop(stateSource(target, model))) {
      log?.("refused what belongs to earlier turns", "info", { ...about, error: loggedFailure(failure) });
      return true;
    }
    // By now another request may have taught the same.
    const lesson = lessons.read(failure, body, sentProfile);
    if (!lesson) return false;
    if (!this.#profiles.believes(lesson, model, target.url)) {
      log?.("not believed: the model has done before what the server refuses", "warn", { ...about, lesson });
      return false;
    }
    lessons.add(target.url, model, lesson);
    log?.("learned from a refusal", "info", { ...about, learned: lesson });
    const profile = this.#profiles.of(model, target.url, lessons);
    // Several requests take its place (`#choices`), or one whose answer is judged (`generate`).
    if (lesson.severalChoices === false && isOn(profile, "one-choice")) return "replace";
    return isJudged !== true && this.#mayJudge(request) && looseSchemas(request, profile) ? "replace" : true;
  }

  /** A model in the server's list. The entries of configured models do not come from the server. */
  #listedModel(model: string): ListedUpstreamModel | undefined {
    return this.#options.models ? undefined : this.#models.find(({ id }) => id === model);
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
    const why = reasonOf(first);
    const next =
      httpHint(first, urls) ??
      'Name them, to do without the list: --model NAME on the command line (repeatable), "models" in the configuration.';
    const message = `the models of ${name} (${urls.map(shownUrl).join(", ")}) cannot be listed: ${why}. ${next}`;
    throw new AggregateError(reasons, message);
  }

  async #refreshModels(): Promise<void> {
    try {
      const models = await this.#listedModels();
      if (JSON.stringify(models) === JSON.stringify(this.#models)) return;
      this.#models = models;
      this.#known.clear();
    } catch (error) {
      this.#options.log?.("the model list could not be read again", "warn", { error: String(error) });
    }
  }
}

type KnownServerProfile = NonNullable<ReturnType<typeof knownServer>>;

/** A request, and what its streams share. */
interface AskedGeneration {
  readonly request: GenerationRequest;
  readonly observer: GenerationObserver | undefined;
  readonly lessons: RequestLessons;
  readonly turns: RequestTurns;
  /** The client receives the upstream's answer as it is. */
  readonly isWhole: boolean;
  /** The answer is judged by the client's schemas. */
  readonly isJudged?: boolean;
  /** Another choice of a request, after the first one. */
  readonly isFurther?: boolean;
}

function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Why a list could not be read. OpenSSL's own words for HTTPS at a port of HTTP are an address and a line of its source. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return speaksHttp(error) ? "it speaks HTTP, not HTTPS" : error.message;
}

function speaksHttp(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === "ERR_SSL_WRONG_VERSION_NUMBER";
}

/** What to do about an address with https where http may be meant: the server speaks HTTP, or nothing listens at the port. */
function httpHint(error: unknown, urls: readonly string[]): string | undefined {
  const url = urls.find((one) => one.startsWith("https:"));
  if (url === undefined) return undefined;
  const http = shownUrl(url).replace(/^https:/, "http:");
  if (speaksHttp(error)) return `Use http:// in the URL: ${http}`;
  const isClosed = error instanceof Error && (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  return isClosed
    ? `Nothing listens there: start the server. If it speaks plain HTTP, use http:// in the URL: ${http}`
    : undefined;
}
