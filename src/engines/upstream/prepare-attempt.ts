import type { GenerationEvent } from "../../wire/core/events.ts";
import type {
  AdaptationPlace,
  AnswerHeaders,
  AnswerReading,
  Inspection,
  SentRequest,
} from "../../wire/core/inspection.ts";
import { estimateTokens } from "../../wire/core/estimate-tokens.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { isLong, jsonChunks } from "../../wire/core/json-chunks.ts";
import { assistantCalls, type Message, type ToolCall } from "../../wire/core/message.ts";
import type { TurnStateCounts } from "../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { FittedTurns, RequestTurns } from "./request-turns.ts";
import { completionsSource } from "../../wire/apis/completions/port.ts";
import { ollamaTextSource } from "../../wire/apis/ollama/send.ts";
import { modelOnlyChats } from "../../wire/apis/failures.ts";
import { toolCallId } from "../../wire/apis/ids.ts";
import { type AdaptationName, textOfAdaptation } from "../../wire/apis/adapt/adaptation-names.ts";
import { notAdapted } from "../../wire/apis/adapt/adaptations.ts";
import { unfitParts } from "../../wire/apis/adapt/fit-media.ts";
import { asksToShorten, overflowFailure } from "../../wire/apis/adapt/truncation.ts";
import {
  isOn,
  type NoteAdaptation,
  type RequestBody,
  type ServerProfile,
} from "../../wire/apis/adapt/server-profile.ts";
import { isShortToolName, shortToolNames, withToolNames } from "../../wire/apis/adapt/tool-names.ts";
import { lowerAnswerLimit, setAnswerLimit, sourcePath, type SourcePort } from "../../wire/apis/source-port.ts";
import { demandsJson } from "../../wire/apis/tolerant/json-answer.ts";
import { readResponseBody } from "../../wire/apis/tolerant/read-response.ts";
import { unsupportedParameter } from "../../wire/apis/request/refusals.ts";
import { addHeaders, type AttemptOptions, requestIdHeader, Watch } from "./attempt.ts";
import type { Background } from "./background/background.ts";
import {
  asksForUsage,
  CustomCalls,
  type EventStage,
  JsonStage,
  OneCall,
  TextStage,
  ToolNames,
  TruncationStage,
} from "./event-stages.ts";
import { fitMedia } from "./fit-media.ts";
import type { PlannedAttempt, RefusedLimit } from "./generation-stream.ts";
import type { UpstreamOptions } from "./options.ts";
import type { OllamaModels } from "./ollama-models.ts";
import type { UpstreamQuestions } from "./questions.ts";
import { stateSource } from "./targets.ts";
import type { RequestLessons, UpstreamProfiles } from "./learned-profiles.ts";
import { random } from "../../wire/random/random.ts";

const defaults = { firstEventMs: 600_000, idleMs: 120_000 };
/** How long a server may take to count the tokens of a prompt before the prompt is generated from. */
const countTimeoutMs = 10_000;
/** The maximum number of adaptations of one request that its inspection shows. */
const maxShownAdaptations = 100;
/** The maximum number of warnings about one request. */
const maxWarnings = 10;
/** The maximum number of adaptations that are logged: models may be many. */
const maxLoggedAdaptations = 1000;

export interface AttemptPreparation extends PlannedAttempt {
  readonly request: GenerationRequest;
  /** The upstream's name of the model. */
  readonly model: string;
  /** Present if the request is inspected. */
  readonly inspection: Inspection | undefined;
  /** False: the generation has several answers, or corrects this one. */
  readonly isWhole: boolean;
  readonly lessons: RequestLessons;
  readonly turns: RequestTurns;
  /** See `GenerationObserver`. */
  readonly countStates: ((counts: TurnStateCounts) => void) | undefined;
}

/** What the reader of an answer depends on. */
interface AskedAnswer {
  readonly source: SourcePort;
  /** See `AnswerReaderOptions.source`. */
  readonly maker: string;
  readonly request: GenerationRequest;
  readonly profile: ServerProfile;
  /** The client's names of tools, by those that were sent; undefined: all are sent as they are. */
  readonly toolNames: Map<string, string> | undefined;
  /** The ids that were made for calls of the answer. */
  readonly callIds: string[];
}

type OpenedReader = Pick<AttemptOptions, "reader" | "transform">;

/** A request for one target, and the reader of its answer. */
interface Draft {
  readonly preparation: AttemptPreparation;
  readonly turns: FittedTurns;
  readonly asked: AskedAnswer;
  readonly answer: OpenedReader;
  readonly adaptations: RequestAdaptations;
  readonly note: NoteAdaptation;
}

export interface PreparerContext {
  readonly options: UpstreamOptions;
  readonly source: SourcePort;
  readonly headers: Readonly<Record<string, string>>;
  /** See `UpstreamOptions`. */
  readonly answerLimit: number;
  readonly questions: UpstreamQuestions;
  /** Only where the servers speak Ollama's own API. */
  readonly ollama: OllamaModels | undefined;
  /** undefined: this runtime has no processes. */
  openBackground(): Background | undefined;
  readonly profiles: UpstreamProfiles;
  /** Whether a server of the upstream takes only `n: 1`. */
  takesOneChoice(asked: { readonly request: GenerationRequest; readonly lessons: RequestLessons }): boolean;
  /** The highest limit on the answer's length that a model takes, in tokens. */
  highestLimit(model: string): number | undefined;
}

/** Writes requests for servers, adapted to what they accept, and opens the readers of their answers. */
export class AttemptPreparer {
  readonly #context: PreparerContext;
  /** The headers of a generation, without its id. */
  readonly #streamHeaders: Readonly<Record<string, string>>;
  readonly #answerHeaders: Readonly<Record<string, string>>;
  readonly #firstEventMs: number;
  readonly #idleMs: number;
  readonly #watch: Watch;
  /** Adaptations that change the meaning of a request and were logged, by model. */
  readonly #loggedAdaptations = new Set<string>();

  constructor(context: PreparerContext) {
    const { options, headers } = context;
    this.#context = context;
    const posted = { ...headers, "content-type": "application/json" };
    this.#streamHeaders = { ...posted, accept: context.source.streams?.contentType ?? "text/event-stream" };
    this.#answerHeaders = { ...posted, accept: "application/json" };
    this.#firstEventMs = options.timeouts?.firstEvent ?? defaults.firstEventMs;
    this.#idleMs = options.timeouts?.idle ?? defaults.idleMs;
    this.#watch = this.#newWatch();
  }

  /** Throws or rejects with `FailureError` if the request cannot be written for the target. */
  prepare(preparation: AttemptPreparation): AttemptOptions | Promise<AttemptOptions> {
    const { model, target, lessons } = preparation;
    const maker = stateSource(target, model);
    const turns = preparation.turns.fitted(preparation.request, maker);
    const { request } = turns;
    const { name, log, strict } = this.#context.options;
    const source = request.prompt.kind === "chat" ? this.#context.source : this.#textSource();
    if (request.passthrough?.dialect !== source.name) refuseTokens(request);
    const ollama = this.#context.ollama?.stateOf(model, target);
    const ownProfile = this.#context.profiles.of(model, target.url, lessons);
    const profile = ollama ? { ...ownProfile, ollama, truncates: ollama.cutsPrompts === true } : ownProfile;
    const callIds: string[] = [];
    const newCallId = (): string => {
      const id = toolCallId(random);
      callIds.push(id);
      return id;
    };
    const asked = { source, maker, request, profile, toolNames: shortensNames(request, profile), callIds };
    const answer = this.#openReader(asked, newCallId, (warning) => log?.(warning, "warn", { req: request.id }));
    const adaptations = new RequestAdaptations();
    const note: NoteAdaptation = (id, place) => {
      if (strict === true) throw notAdapted(id, place, name);
      answer.reader.repairs.note(id);
      if (textOfAdaptation(id).changesMeaning) this.#logAdaptation(id, model, request);
      adaptations.add(id, place);
    };
    const draft = { preparation, turns, asked, answer, adaptations, note };
    const write = (fitted: GenerationRequest): AttemptOptions | Promise<AttemptOptions> => {
      const body = requestBodyText(this.#members(draft, fitted));
      return typeof body === "string" ? this.#attempt(draft, body) : body.then((text) => this.#attempt(draft, text));
    };
    const fitted = this.#fitted(draft);
    return fitted instanceof Promise ? fitted.then(write) : write(fitted);
  }

  /** The members of the body. `fitted`: the request with the files and images that the server takes. */
  #members({ preparation, turns, asked, adaptations, note }: Draft, fitted: GenerationRequest): RequestBody {
    const { model, target, limit } = preparation;
    const { request, source, profile } = asked;
    const { strict, onTruncation: mode = "error" } = this.#context.options;
    const hasChoices = request.prompt.kind === "chat" && (request.n ?? 1) > 1;
    if (strict === true && hasChoices && this.#context.takesOneChoice(preparation)) note("one-choice", "n");
    for (const { name, place } of turns.changes) note(name, place);
    const wantsUsage = request.wantsUsage || asksForUsage(request, profile, mode);
    const written = wantsUsage === fitted.wantsUsage ? fitted : { ...fitted, wantsUsage };
    const members = this.#withShortNames(source.writeRequest(written, profile, note), asked, note);
    if (turns.counts) preparation.countStates?.({ ...turns.counts, standIns: adaptations.standIns });
    if (this.#fitLimit(members, profile, model, source, limit)) note("max-tokens");
    this.#context.ollama?.sent(model, target, members);
    return source.rewrite ? source.rewrite(members, profile, note) : members;
  }

  #attempt({ preparation, asked, answer, adaptations }: Draft, body: string): AttemptOptions {
    const { model, target, fresh, inspection, isWhole } = preparation;
    const { request, source, profile } = asked;
    const { stream, passthrough } = request;
    const clientKey = this.#context.options.passKey === true ? request.clientKey : undefined;
    const { places, warnings } = adaptations;
    const path = sourcePath(source.path, profile.model ?? model, stream);
    return {
      body,
      target,
      model,
      profile,
      path: target.path(path, profile.model ?? model),
      headers: Object.assign(
        // Not a spread: V8 gives each object with a spread and further members a hidden class of its own.
        {},
        stream ? this.#streamHeaders : this.#answerHeaders,
        requestIdHeader(request.id),
        passthrough?.dialect === source.name && passthrough.headers,
        clientKey?.headers(source),
      ),
      stream,
      fresh,
      reader: answer.reader,
      decoder: stream ? source.streams?.decoder : undefined,
      transform: answer.transform,
      upstream: this.#context.options.name,
      firstEventMs: this.#firstEventMs,
      idleMs: this.#idleMs,
      answerLimit: this.#context.answerLimit,
      warnings,
      secret: clientKey ?? target.credential,
      watch: target.transport.sharesTimers ? this.#watch : this.#newWatch(),
      inspect:
        inspection &&
        ((headers) =>
          inspection.sent({
            url: target.endpointUrl(path),
            headers,
            body,
            adaptations: places,
            reread: this.#rereader(asked),
            isWhole,
          })),
    };
  }

  /** `warn` is called with warnings about the answer. */
  #openReader(asked: AskedAnswer, callId: () => string, warn: ((warning: string) => void) | undefined): OpenedReader {
    const { source, maker, request, profile, toolNames } = asked;
    const { name, onTruncation: mode = "error" } = this.#context.options;
    const format = this.#context.options.format ?? (profile.callsInText === true ? "auto" : undefined);
    const { prompt } = request;
    const isChat = prompt.kind === "chat";
    const reader = source.reader({
      newCallId: callId,
      source: maker,
      legacyFunctions: isChat && prompt.legacyFunctions === true,
      callsInText: format !== undefined,
      choices: requestedChoices(request, profile),
      frameLimit: this.#context.answerLimit,
    });
    const stages: EventStage[] = [];
    const report = ({ message }: { readonly message: string }): void => {
      reader.repairs.note("prompt-truncated");
      warn?.(message);
    };
    if (mode !== "allow" && isChat && profile.truncates !== false && !asksToShorten(request, source.name))
      stages.push(new TruncationStage({ request, profile, mode, upstream: name, report }));
    if (toolNames) stages.push(new ToolNames(toolNames));
    const customTools = request.tools?.filter(({ kind }) => kind === "custom") ?? [];
    if (customTools.length > 0) stages.push(new CustomCalls(new Set(customTools.map(({ name }) => name))));
    if (format !== undefined && isChat)
      stages.push(new TextStage(format, request, callId, warn, (repair) => reader.repairs.note(repair)));
    if (request.parallelToolCalls === false) stages.push(new OneCall((repair) => reader.repairs.note(repair)));
    if (isChat && demandsJson(request)) stages.push(new JsonStage(request, (repair) => reader.repairs.note(repair)));
    return { reader, transform: transformOf(stages) };
  }

  /** The body with the names of tools that its server takes. The client's names come back in the calls. */
  #withShortNames(body: RequestBody, { toolNames }: AskedAnswer, note: NoteAdaptation): RequestBody {
    if (!toolNames) return body;
    const names = shortToolNames(body);
    for (const [name, short] of names) {
      note("tool-name", "tools");
      toolNames.set(short, name);
    }
    return withToolNames(body, names);
  }

  /** Inspect keeps this function: it holds neither the reader of the answer nor the client's own body. */
  #rereader(asked: AskedAnswer): SentRequest["reread"] {
    const { passthrough: _, ...request } = asked.request;
    const kept = { ...asked, request };
    return (headers) => {
      let calls = 0;
      const callId = (): string => kept.callIds[calls++] ?? toolCallId(random);
      return rereading(this.#openReader(kept, callId, undefined), request.stream, headers);
    };
  }

  /** Converts files and images, and counts the prompt. Rejects with `FailureError` if one cannot be read, or the prompt is too long. */
  #fitted({ preparation, asked, note }: Draft): GenerationRequest | Promise<GenerationRequest> {
    const { request, profile } = asked;
    const unfit = unfitParts(request, profile);
    const background = unfit.length > 0 ? this.#context.openBackground() : undefined;
    const fitted = background
      ? fitMedia(request, unfit, profile, background, note, { owner: request.owner, signal: preparation.signal() })
      : request;
    return this.#mayOverflow(request, profile) ? this.#counted(fitted, profile) : fitted;
  }

  async #counted(
    fitted: GenerationRequest | Promise<GenerationRequest>,
    { contextSize = Infinity }: ServerProfile,
  ): Promise<GenerationRequest> {
    const request = await fitted;
    const tokens = await this.#context.questions.countPrompt(request, AbortSignal.timeout(countTimeoutMs));
    const failure = tokens !== undefined && overflowFailure(tokens, contextSize, this.#context.options.name);
    if (failure) throw new FailureError(failure);
    return request;
  }

  /** Whether a prompt is counted before it is sent: to a server that cuts prompts, and can count, if the prompt may be too long. */
  #mayOverflow(request: GenerationRequest, { truncates, contextSize, tokenizer }: ServerProfile): boolean {
    const { onTruncation: mode = "error" } = this.#context.options;
    if (mode !== "error" || request.prompt.kind !== "chat" || truncates !== true || contextSize === undefined)
      return false;
    const canCount = tokenizer !== undefined || this.#context.source.tokenCount !== undefined;
    return canCount && estimateTokens(request) > contextSize / 2;
  }

  /** Logs the first adaptation of each kind for a model that changes what the model reads or does. */
  #logAdaptation(name: AdaptationName, model: string, { id }: GenerationRequest): void {
    const key = JSON.stringify([model, name]);
    if (this.#loggedAdaptations.has(key) || this.#loggedAdaptations.size >= maxLoggedAdaptations) return;
    this.#loggedAdaptations.add(key);
    const { log } = this.#context.options;
    log?.("adapted the request", "warn", { req: id, model, adaptation: name, what: textOfAdaptation(name).sentence });
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
    const max = limit === undefined ? this.#context.highestLimit(model) : limit;
    if (max === undefined) return false;
    if (lowerAnswerLimit(body, max, source.answerLimit, profile)) return true;
    // The request had no limit, and the server's default was too high.
    return typeof limit === "number" && setAnswerLimit(body, limit, source.answerLimit, profile);
  }

  /**
   * The API that continues a text: OpenAI's legacy completions, or Ollama's own. Responses and Messages have no equivalent: a model that
   * gets a text as a user's message answers it.
   */
  #textSource(): SourcePort {
    if (this.#context.source.name === "chat") return completionsSource;
    if (this.#context.ollama) return ollamaTextSource;
    throw modelOnlyChats();
  }

  /** See `GenerationPlan`. If the refusal names no limit and the API requires one, the server counts the prompt. */
  async limitAfter(refused: RefusedLimit, request: GenerationRequest): Promise<number | null | undefined> {
    if (refused.max !== null) return refused.max;
    const { answerLimit, tokenCount } = this.#context.source;
    if (answerLimit.none !== "required") return null;
    if (!tokenCount) return undefined;
    const counting = this.#context.questions.countTokens(request, AbortSignal.timeout(countTimeoutMs));
    const left = refused.context - (await counting.catch(() => Infinity));
    return left > 0 ? left : undefined;
  }

  #newWatch(): Watch {
    return new Watch(Math.min(this.#firstEventMs, this.#idleMs));
  }
}

/** The adaptations of one request. */
class RequestAdaptations {
  /** For its inspection. */
  readonly places: AdaptationPlace[] = [];
  /** What the request does not have any more, for the client. */
  readonly warnings: string[] = [];
  /** What was sent in place of states that the server requires. */
  standIns = 0;

  add(id: AdaptationName, place: string | undefined): void {
    const warning = omissionOf(id, place);
    if (warning !== undefined && this.warnings.length < maxWarnings && !this.warnings.includes(warning))
      this.warnings.push(warning);
    if (this.places.length < maxShownAdaptations) this.places.push({ id, place });
    if (id === "state-stand-in" || id === "reasoning-demand") this.standIns++;
  }
}

/** A warning for the client, if an adaptation leaves a part of its request out. */
function omissionOf(id: AdaptationName, place: string | undefined): string | undefined {
  const { omits, sentence } = textOfAdaptation(id);
  if (omits !== true) return undefined;
  // One warning for all messages.
  const where = place?.replaceAll(/\[\d+\]/g, "");
  return where === undefined ? sentence : `${where}: ${sentence}`;
}

/** Whether names of tools must be shortened: a place for them. */
function shortensNames(request: GenerationRequest, profile: ServerProfile): Map<string, string> | undefined {
  if (profile.toolNames !== "short" || !isOn(profile, "tool-name")) return undefined;
  const called = request.prompt.kind === "chat" ? request.prompt.messages.flatMap(callsOf) : [];
  return [...(request.tools ?? []), ...called].some(({ name }) => !isShortToolName(name)) ? new Map() : undefined;
}

function callsOf(message: Message): readonly ToolCall[] {
  return message.role === "assistant" ? assistantCalls(message) : [];
}

function rereading({ reader, transform }: OpenedReader, isStream: boolean, headers: AnswerHeaders): AnswerReading {
  const repairs = reader.repairs.keepPlaces();
  let hasHeaders = false;
  const changed = (read: GenerationEvent[]): GenerationEvent[] => {
    const events = transform ? transform(read) : read;
    if (!hasHeaders) hasHeaders = addHeaders(events, headers);
    return events;
  };
  const body: string[] = [];
  return {
    repairs,
    push(text) {
      if (isStream) return changed(reader.push(text));
      body.push(text);
      return [];
    },
    end(error) {
      if (isStream) return changed(reader.end(error));
      // Of an answer without a stream that was cut off, nothing was read.
      return error ? [] : changed(readResponseBody(body.join(""), reader));
    },
    abandon: (end) => changed(reader.abandon(end)),
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

/** Bodies up to this many characters are serialized in one step, which takes a few milliseconds. */
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
