import type { FinishReason, GenerationEvent, GenerationFailure, Usage } from "../../wire/core/events.ts";
import { isObject, scalarText } from "../../wire/core/json.ts";
import type { JsonObject } from "../../wire/core/json.ts";
import { Changing } from "../parts/changing.ts";
import { TextLog } from "./text-log.ts";

/** A call of a tool, as far as it has come. */
export interface Call {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: TextLog;
  ended: boolean;
}

/** A call that the server has run. */
export interface HostedCall {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  status: "running" | "completed" | "failed";
  /** What came back, as the model reads it. */
  output: string;
  /** How long it took, as the page measured it; undefined while it runs. */
  ms: number | undefined;
  readonly startedAt: number;
}

/** A page that the answer cites. */
export interface Source {
  readonly url: string;
  readonly title: string;
}

/** One of the `n` choices of an answer. */
export class Choice extends Changing {
  readonly text: TextLog = new TextLog();
  readonly reasoning: TextLog = new TextLog();
  readonly refusal: TextLog = new TextLog();
  readonly calls: Call[] = [];
  readonly hostedCalls: HostedCall[] = [];
  /** By their URLs. */
  readonly sources = new Map<string, Source>();
  finish: FinishReason | undefined;

  /** Applies an event of this choice. Calls `changed` only if the structure of the choice changes: texts have their own listeners. */
  take(event: GenerationEvent): void {
    switch (event.type) {
      case "text-delta":
        this.#grow(this.text, event.text, event.logprobs);
        break;
      case "reasoning-delta":
        this.#grow(this.reasoning, event.text, event.logprobs);
        break;
      case "refusal-delta":
        this.#grow(this.refusal, event.text, event.logprobs);
        break;
      case "tool-call-start":
        this.calls.push({ id: event.id, name: event.name, arguments: new TextLog(), ended: false });
        this.changed();
        break;
      case "tool-call-delta":
        this.calls[event.index]?.arguments.push(event.arguments);
        break;
      case "tool-call-end": {
        const call = this.calls[event.index];
        if (call) call.ended = true;
        this.changed();
        break;
      }
      case "finish":
        this.finish = event.reason;
        this.changed();
        break;
      default:
    }
  }

  /** Reads the member `hosted_call` of a chunk (`include_hosted_calls`). `now`: of the page's clock. */
  takeHosted(call: JsonObject, now: number): void {
    const id = scalarText(call["id"]);
    const { status } = call;
    const known = this.hostedCalls.find((one) => one.id === id);
    if (!known)
      this.hostedCalls.push({
        id,
        name:
          call["kind"] === "mcp"
            ? `${scalarText(call["tool"])}: ${scalarText(call["name"])}`
            : scalarText(call["name"]),
        arguments: scalarText(call["arguments"]),
        status: "running",
        output: "",
        ms: undefined,
        startedAt: now,
      });
    else if (status === "completed" || status === "failed")
      Object.assign(known, { status, output: scalarText(call["output"]), ms: now - known.startedAt });
    this.changed();
  }

  /** Reads OpenAI's `annotations` of a delta: the pages that the text cites. */
  takeAnnotations(annotations: readonly unknown[]): void {
    for (const annotation of annotations) {
      const { url, title } =
        isObject(annotation) && isObject(annotation["url_citation"]) ? annotation["url_citation"] : {};
      if (typeof url === "string" && /^https?:\/\//i.test(url))
        this.sources.set(url, { url, title: scalarText(title) || url });
    }
    this.changed();
  }

  /** Adds a complete call. */
  addCall(id: string, name: string, text: string): void {
    const log = new TextLog();
    log.push(text);
    this.calls.push({ id, name, arguments: log, ended: true });
  }

  #grow(log: TextLog, text: string, tokens: Parameters<TextLog["push"]>[1]): void {
    const opens = log.empty;
    log.push(text, tokens);
    if (opens) this.changed();
  }
}

/** What came back for one request. Times are of the page's own clock (`performance.now()`), in milliseconds. */
export class Answer extends Changing {
  readonly choices: Choice[] = [];
  /** "interrupted": the page was closed while the answer was received. */
  state: "running" | "done" | "stopped" | "failed" | "interrupted" = "running";
  usage: Usage | undefined;
  failure: Pick<GenerationFailure, "message" | "code" | "param"> | undefined;
  /** The HTTP status; undefined before the response. */
  status: number | undefined;
  /** From the header `retry-after`; NaN if it has no number. */
  retryAfterSeconds = Number.NaN;
  requestId: string | null = null;
  /** Time in which the server processed the prompt, in milliseconds; undefined: not reported. */
  prefillMs: number | undefined;
  /** As the server reports it; undefined: not reported. */
  reportedTokensPerSecond: number | undefined;
  /** Why the prompt was read again, in words. */
  cacheMiss: string | undefined;
  /** The server keeps its stream for a while when the connection is lost. */
  resumable = false;
  /** Its times, and the tokens of a part, would say nothing of the whole: it was interrupted and continues. */
  #isTimed = true;
  #isCounted = true;
  readonly #sentAt: number;
  #firstAt: number | undefined;
  #lastAt = 0;

  constructor(sentAt: number) {
    super();
    this.#sentAt = sentAt;
  }

  take(event: GenerationEvent, now: number): void {
    if (event.type === "usage" && this.#isCounted) this.usage = event.usage;
    if (event.type === "extra" && event.place === "chunk") {
      this.#readTimings(event.value["timings"]);
      const { hosted_call: call } = event.value;
      if (isObject(call)) this.#choiceAt(0).takeHosted(call, now);
    }
    if (event.type === "extra" && event.place === "delta") {
      const { annotations } = event.value;
      if (Array.isArray(annotations)) this.#choiceAt(event.choice ?? 0).takeAnnotations(annotations);
    }
    if (event.type === "end") this.#end(event.end);
    if (!("choice" in event) || event.choice === undefined) return;
    this.#choiceAt(event.choice).take(event);
    if (!event.type.endsWith("-delta") || !this.#isTimed) return;
    if (this.#firstAt === undefined) {
      this.#firstAt = now;
      this.changed();
    }
    this.#lastAt = now;
  }

  #choiceAt(index: number): Choice {
    for (;;) {
      const choice = this.choices[index];
      if (choice) return choice;
      this.choices.push(new Choice());
      this.changed();
    }
  }

  /** Continues after an interruption: with the whole stream again, or with what follows the text. */
  goOn(from: "start" | "text"): void {
    this.state = "running";
    this.failure = undefined;
    this.usage = undefined;
    this.#isTimed = false;
    this.#isCounted = from === "start";
    this.#firstAt = undefined;
    if (from === "start" || !this.hasText) this.choices.length = 0;
    else for (const choice of this.choices) choice.finish = undefined;
    this.changed();
  }

  /** Whether its only choice has a text that a model can continue. */
  get hasText(): boolean {
    const [choice, ...others] = this.choices;
    return choice !== undefined && others.length === 0 && choice.calls.length === 0 && !choice.text.empty;
  }

  stop(): void {
    this.state = "stopped";
    this.changed();
  }

  fail(failure: NonNullable<Answer["failure"]>): void {
    this.state = "failed";
    this.failure = failure;
    this.changed();
  }

  /** When the first and the last words arrived, in milliseconds after the question; undefined before. For `restoreTimes`. */
  get times(): readonly [firstMs: number, lastMs: number] | undefined {
    return this.#firstAt === undefined ? undefined : [this.#firstAt - this.#sentAt, this.#lastAt - this.#sentAt];
  }

  restoreTimes([firstMs, lastMs]: readonly [firstMs: number, lastMs: number]): void {
    this.#firstAt = this.#sentAt + firstMs;
    this.#lastAt = this.#sentAt + lastMs;
  }

  /** From the question to the first words, reasoning and calls included; undefined before. */
  get firstAfterMs(): number | undefined {
    return this.#firstAt === undefined ? undefined : this.#firstAt - this.#sentAt;
  }

  /** From the question to the latest words; undefined before the first ones. */
  get lastAfterMs(): number | undefined {
    return this.#firstAt === undefined ? undefined : this.#lastAt - this.#sentAt;
  }

  /** Of all choices, from the first token to the last; `undefined` if it is unknown or the answer came as one chunk. */
  get tokensPerSecond(): number | undefined {
    const { usage } = this;
    const ms = this.#lastAt - (this.#firstAt ?? 0);
    if (!usage || usage.completionTokens < 2 || this.#firstAt === undefined || ms < 20) return undefined;
    return ((usage.completionTokens - 1) * 1000) / ms;
  }

  /** llama.cpp's `timings`, which this server has, too. */
  #readTimings(timings: unknown): void {
    const { prompt_ms: ms, predicted_per_second: speed } = isObject(timings) ? timings : {};
    if (typeof ms === "number") this.prefillMs = ms;
    if (typeof speed === "number") this.reportedTokensPerSecond = speed;
  }

  #end(end: Extract<GenerationEvent, { type: "end" }>["end"]): void {
    if (end.kind === "done") {
      this.state = "done";
      this.changed();
    } else if (end.kind === "client-gone") this.stop();
    else this.fail(end.failure);
  }
}
