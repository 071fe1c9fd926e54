import type {
  Engine,
  EngineAnswer,
  EngineHealth,
  EngineQuestion,
  ModelInfo,
  QuestionHandlers,
  QuestionKind,
} from "../../core/engine.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import type { GenerationObserver } from "../../core/generation-observer.ts";
import type { Inspection } from "../../core/inspection.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { withoutTexts } from "../../core/without-texts.ts";
import { knownProfile } from "../../apis/known-servers.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "../../apis/server-profile.ts";
import { completionsSource } from "../../apis/completions/source-port.ts";
import { lowerAnswerLimit, setAnswerLimit } from "../../apis/lower-answer-limit.ts";
import { sourcePorts } from "../../apis/source-ports.ts";
import type { SourcePort } from "../../apis/source-port.ts";
import { modelOnlyChats } from "../../apis/failures.ts";
import { toolCallId } from "../../apis/ids.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";
import { unsupportedParameter } from "../../apis/request/refusals.ts";
import { badAnswer } from "../../apis/tolerant/read-failure.ts";
import { askText, askTokens } from "./ask-tokens.ts";
import { askWhole } from "./ask-whole.ts";
import type { AskContext } from "./ask-whole.ts";
import type { AttemptOptions } from "./attempt.ts";
import { inBackground } from "./background.ts";
import { bodyText } from "./body-text.ts";
import { CustomCalls } from "./custom-calls.ts";
import { embed } from "./embed.ts";
import { rerank } from "./rerank.ts";
import { GenerationStream } from "./generation-stream.ts";
import type { GenerationPlan, RefusedLimit } from "./generation-stream.ts";
import { answers, endpointsOf, listModels } from "./list-models.ts";
import type { UpstreamModel } from "./list-models.ts";
import { NativeCapabilities } from "./native-capabilities.ts";
import type { UpstreamOptions } from "./options.ts";
import { RetryBudget } from "./retry-policy.ts";
import { severalChoices } from "./several-choices.ts";
import { TargetSet } from "./target-set.ts";
import { shownUrl } from "./target.ts";
import type { Target } from "./target.ts";
import { TextStage } from "./text-stage.ts";
import type { OpenTransport } from "./transport.ts";
import { Watch } from "./watch.ts";

const defaults = { firstEventMs: 600_000, idleMs: 120_000, answerLimit: 16 * 1024 * 1024, retries: 2 };
/** How long a server may take to count a prompt whose generation waits for that. */
const countMs = 10_000;
/** How often the upstream's model list is read again. */
const refreshMs = 60_000;

const newCallId = (): string => toolCallId(Math.random);

type UpstreamQuestion = Exclude<QuestionKind, "apply-template" | "slots">;

/** Generates by asking servers of OpenAI's dialect. */
export class UpstreamEngine implements Engine {
  readonly #options: UpstreamOptions;
  /** How its API is spoken. */
  readonly #source: SourcePort;
  readonly #headers: Readonly<Record<string, string>>;
  /** Those of a generation, but for its id. */
  readonly #streamHeaders: Readonly<Record<string, string>>;
  readonly #answerHeaders: Readonly<Record<string, string>>;
  readonly #targets: TargetSet;
  readonly #native = new NativeCapabilities();
  readonly #budget = new RetryBudget();
  readonly #watch: Watch;
  readonly #firstEventMs: number;
  readonly #idleMs: number;
  #models: readonly UpstreamModel[] = [];
  #refresh: NodeJS.Timeout | undefined;
  readonly #lifecycle = new EngineLifecycle<GenerationStream>();
  #retries = 0;

  readonly #handlers: QuestionHandlers<UpstreamQuestion> = {
    "count-tokens": (request, signal) => this.#countTokens(request, signal),
    tokenize: (request, signal) => askTokens(this.#named(request), this.#askContext(), signal),
    detokenize: (request, signal) => askText(this.#named(request), this.#askContext(), signal),
    embed: (request, signal, observer) => {
      const named = this.#named(request);
      return embed(named, this.#options.profile?.add ?? {}, this.#observedContext(named.model, observer), signal);
    },
    rerank: (request, signal, observer) => {
      const named = this.#named(request);
      return rerank(named, this.#options.profile?.add ?? {}, this.#observedContext(named.model, observer), signal);
    },
  };
  readonly #questions: readonly UpstreamQuestion[];

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
    this.#watch = this.#newWatch();
    const kinds = Object.keys(this.#handlers) as UpstreamQuestion[];
    this.#questions = this.#source.tokenCount ? kinds : kinds.filter((kind) => kind !== "count-tokens");
    this.#targets = new TargetSet(options, open, (target) => answers(target, this.#headers));
  }

  /** Gets the models: from the options, else from the first target that has a list. Rejects when no target has one. */
  async open(): Promise<void> {
    const { models } = this.#options;
    if (models) {
      this.#models = Object.keys(models).map((id) => ({
        id,
        created: 0,
        ownedBy: this.#options.name,
        endpoints: endpointsOf(this.#source),
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
    return this.#questions;
  }

  ask<K extends QuestionKind>(
    question: EngineQuestion<K>,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): Promise<EngineAnswer<K>>;
  ask<K extends UpstreamQuestion>(
    { kind, request }: EngineQuestion<K>,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): Promise<EngineAnswer<K>> {
    return this.#handlers[kind](request, signal, observer);
  }

  async #countTokens(request: GenerationRequest, signal: AbortSignal): Promise<number> {
    const { tokenCount } = this.#source;
    if (!tokenCount) throw new Error("The upstream's API cannot count tokens.");
    const model = this.#named(request).model;
    const body = tokenCount.writeRequest(request, this.#profileOf(model, this.#options.urls[0] ?? ""));
    const context = this.#askContext(this.#ownHeaders(request, this.#source));
    const tokens = tokenCount.read(await askWhole({ path: tokenCount.path, id: request.id, body }, context, signal));
    if (tokens === undefined) throw new FailureError(badAnswer("The upstream's answer has no count of tokens."));
    return tokens;
  }

  /** The request with the upstream's own name of its model. */
  #named<R extends { readonly model: string }>(request: R): R {
    return { ...request, model: this.#options.models?.[request.model] ?? request.model };
  }

  #observedContext(model: string, observer: GenerationObserver | undefined): AskContext {
    return { ...this.#askContext(), observe: ({ url }) => observer?.attempt({ url, model }) };
  }

  #askContext(more: Readonly<Record<string, string>> = {}): AskContext {
    const limit = this.#options.answerLimit ?? defaults.answerLimit;
    return { targets: this.#targets, headers: { ...this.#headers, ...more }, limit };
  }

  /** Headers of the client's that go along with its own JSON. */
  #ownHeaders({ passthrough }: GenerationRequest, { name }: SourcePort): Readonly<Record<string, string>> | undefined {
    return passthrough?.dialect === name ? passthrough.headers : undefined;
  }

  health(): EngineHealth {
    const { targets } = this.#targets;
    const inService = targets.filter((target) => target.inService()).length;
    const outstanding = targets.reduce((sum, target) => sum + target.outstanding, 0);
    const counters = { outstanding, targets: targets.length, targetsInService: inService, retries: this.#retries };
    // One that answers with errors is there; whether its errors are worth anything, each client learns for itself.
    const isThere = targets.some((target) => target.inService() || target.answers());
    if (this.#lifecycle.state === "closed" || isThere) return { ...this.#lifecycle.health(), counters };
    return { state: "failed", counters, message: `No server of ${this.#options.name} answers.` };
  }

  close(graceMs: number): Promise<void> {
    clearInterval(this.#refresh);
    return this.#lifecycle.close(graceMs, {
      stop: (stream) => stream.abandon(shuttingDown),
      release: () => this.#targets.close(),
    });
  }

  /** A stream that is waited for when the engine closes. */
  #stream(request: GenerationRequest, observer: GenerationObserver | undefined): GenerationStream {
    const stream = new GenerationStream(this.#plan(request, observer));
    if (this.#lifecycle.state === "closed") stream.abandon(shuttingDown);
    this.#lifecycle.begin(stream);
    return stream;
  }

  #plan(request: GenerationRequest, observer: GenerationObserver | undefined): GenerationPlan {
    const { models, fallbacks, retries = defaults.retries, log } = this.#options;
    const names = [request.model, ...(fallbacks?.[request.model] ?? [])];
    return {
      targets: this.#targets,
      budget: this.#budget,
      retries,
      models: names.map((name) => models?.[name] ?? name),
      prepare: (model, target, fresh, limit) =>
        this.#prepare(request, model, target, fresh, observer?.inspection, limit),
      limitAfter: (refused) => this.#limitAfter(refused, request),
      observe: (attempt) => observer?.attempt(attempt),
      retried: (failure, model, target) => {
        this.#retries++;
        const { status, message } = failure;
        const error = log && withoutTexts(message, [request.prompt]);
        log?.("tried again", "info", { req: request.id, model, url: target.url, status, error });
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
    target: Target,
    fresh: boolean,
    inspection: Inspection | undefined,
    limit: number | null | undefined,
  ): AttemptOptions | Promise<AttemptOptions> {
    const { format, name, answerLimit = defaults.answerLimit, log } = this.#options;
    const { prompt, stream, tools } = request;
    const isChat = prompt.kind === "chat";
    const source = isChat ? this.#source : this.#textSource();
    if (source.name !== request.passthrough?.dialect) refuseTokens(request);
    const ownHeaders = this.#ownHeaders(request, source);
    const customTools = tools?.filter(({ kind }) => kind === "custom").map(({ name }) => name) ?? [];
    const warn = (warning: string): void => log?.(warning, "warn", { req: request.id });
    const stage = format !== undefined && isChat ? new TextStage(format, request, newCallId, warn) : undefined;
    const profile = this.#profileOf(model, target.url);
    const reader = source.reader({
      newCallId,
      legacyFunctions: isChat && prompt.legacyFunctions === true,
      callsInText: format !== undefined,
      choices: requestedChoices(request, profile),
      frameLimit: answerLimit,
    });
    const options: Omit<AttemptOptions, "body"> = {
      target,
      path: target.path(source.path),
      headers: {
        ...(stream ? this.#streamHeaders : this.#answerHeaders),
        "x-request-id": request.id,
        ...ownHeaders,
      },
      stream,
      fresh,
      reader,
      transform: inTurn(customTools.length > 0 ? new CustomCalls(new Set(customTools)) : undefined, stage),
      upstream: name,
      firstEventMs: this.#firstEventMs,
      idleMs: this.#idleMs,
      answerLimit,
      watch: target.transport.sharesTimers ? this.#watch : this.#newWatch(),
      inspect: undefined,
    };
    const withBody = (body: string): AttemptOptions => inspected({ ...options, body }, inspection);
    if (inspection) reader.repairs.keepPlaces();
    const note: NoteAdaptation = (id) => reader.repairs.note(id);
    const members = source.writeRequest(request, profile, note);
    if (this.#fitLimit(members, profile, model, source, limit)) note("max-tokens");
    const body = bodyText(members);
    return typeof body === "string" ? withBody(body) : body.then(withBody);
  }

  /** What the server at this URL accepts for a model, which it calls `model`: what is set by hand, then what is known of the server. */
  #profileOf(model: string, url: string): ServerProfile {
    // Where the models are configured, their owner is this upstream's name, and says nothing.
    const owner = this.#options.models ? undefined : this.#models.find(({ id }) => id === model)?.ownedBy;
    const known = knownProfile(url, owner);
    return { ...known, ...(this.#native.reasons(model) && { reasoningEffort: true }), ...this.#options.profile, model };
  }

  /**
   * Lowers the limit on the answer's length in a request's body to what the model takes: to `limit`, which comes from a refusal, else to
   * what is left of the context by a prompt of one token. Returns whether the body was changed.
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
    // The request had no limit, and the server's own was too high.
    return typeof limit === "number" && setAnswerLimit(body, limit, source.answerLimit, profile);
  }

  /** See `GenerationPlan`. If neither the refusal names a limit nor the API can do without one, the server is asked to count the prompt. */
  #limitAfter(refused: RefusedLimit, request: GenerationRequest): number | null | Promise<number | null | undefined> {
    if (refused.max !== null) return refused.max;
    const { answerLimit, tokenCount } = this.#source;
    if (answerLimit.none !== "required") return null;
    if (!tokenCount) return Promise.resolve(undefined);
    return this.#countTokens(request, AbortSignal.timeout(countMs)).then(
      (tokens) => (tokens < refused.context ? refused.context - tokens : undefined),
      () => undefined,
    );
  }

  /**
   * A text is continued by OpenAI's legacy API; Responses and Messages have nothing for it. A model that is shown a text as a user's turn
   * answers it, and does not continue it.
   */
  #textSource(): SourcePort {
    if (this.#source === sourcePorts.chat) return completionsSource;
    throw modelOnlyChats();
  }

  #newWatch(): Watch {
    return new Watch(Math.min(this.#firstEventMs, this.#idleMs));
  }

  async #listedModels(): Promise<readonly UpstreamModel[]> {
    const { name, urls } = this.#options;
    const reasons: unknown[] = [];
    for (const target of this.#targets.targets) {
      try {
        const models = await listModels(target, this.#headers, this.#source, this.#native);
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

/** An attempt that somebody looks at, where somebody does. */
function inspected(attempt: AttemptOptions, inspection: Inspection | undefined): AttemptOptions {
  if (!inspection) return attempt;
  const { target, path, body, reader } = attempt;
  const url = new URL(path.replace(/\?.*/s, ""), target.url.replace(/\/\/[^/]*@/, "//")).href;
  return {
    ...attempt,
    inspect: (headers) => inspection.sent({ url, headers, body, repairs: reader.repairs.keepPlaces() }),
  };
}

/** The number of choices that a request asks for; the configuration may add an `n` of its own to the body. */
function requestedChoices({ prompt, n = 1 }: GenerationRequest, { add }: ServerProfile): number {
  const prompts = prompt.kind === "text" ? prompt.prompts.length : 1;
  const added = add?.["n"];
  return prompts * Math.max(n, typeof added === "number" ? added : 1);
}

/** A stage that changes the events of an answer. */
type Stage = Pick<TextStage, "transform"> | undefined;

/** Both stages as one. */
function inTurn(first: Stage, second: Stage): AttemptOptions["transform"] {
  if (first && second) return (events) => second.transform(first.transform(events));
  return (first ?? second)?.transform;
}

/** Only a server of the same API answers with tokens under the names that the client asked by. */
function refuseTokens({ wantsTokenIds, promptLogprobs }: GenerationRequest): void {
  if (wantsTokenIds) throw unsupportedParameter("return_token_ids");
  if (promptLogprobs) throw unsupportedParameter("prompt_logprobs");
}

function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
