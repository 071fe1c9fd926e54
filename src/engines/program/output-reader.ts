import { isObject } from "../../wire/core/json.ts";
import { ChoiceAssembler } from "../../wire/core/choice-assembler.ts";
import type { FinishReason, GenerationEvent, Timings, TokenAlternative, Usage } from "../../wire/core/events.ts";
import type { Format } from "../../text/formats/format.ts";
import { TextReader } from "../../text/formats/text-reader.ts";
import type { Tool } from "../../wire/core/message.ts";
import type { ProgramEvent, ProgramItem, ProgramLogprob, ProgramResult } from "../../wire/apis/chat/program.ts";

export interface OutputReaderOptions {
  readonly choice: number;
  readonly newCallId: () => string;
  /** How to read tool calls and reasoning that the program leaves in its text. */
  readonly format: Format;
  readonly tools?: readonly Tool[];
  readonly callsAllowed: boolean;
  readonly stop?: readonly string[];
  /** The prompt, to be sent before the answer. The client's stop strings do not apply to it. */
  readonly echo?: string;
  /** Called once, for the first tool call that is dropped. */
  readonly onDroppedCall?: (name: string) => void;
}

/**
 * Converts the items of one run of a program to the events of one choice, in their legal order: the first event opens the choice, an item
 * after an open call ends the call, and there is one finish. Drops tool calls if the request allows none.
 */
export class OutputReader {
  readonly #choice: number;
  readonly #newCallId: () => string;
  /** The names of custom tools, whose calls contain text in place of arguments. */
  readonly #custom: ReadonlySet<string>;
  readonly #callsAllowed: boolean;
  #onDroppedCall: (name: string) => void;
  readonly #newReader: () => TextReader;
  #text: TextReader;
  readonly #assembler: ChoiceAssembler;
  /** The number of calls so far, without those in the text. */
  #calls = 0;
  /** `index` is `null` for a call that is dropped. */
  #openCall: { readonly index: number | null; readonly isCustom: boolean; arguments: string[] } | undefined;
  #reason: FinishReason | undefined;
  usage: Usage | undefined;
  timings: Timings | undefined;

  constructor(options: OutputReaderOptions) {
    this.#choice = options.choice;
    this.#assembler = new ChoiceAssembler(options.choice);
    this.#newCallId = options.newCallId;
    this.#custom = new Set(options.tools?.filter(({ kind }) => kind === "custom").map(({ name }) => name));
    this.#callsAllowed = options.callsAllowed;
    this.#onDroppedCall = options.onDroppedCall ?? (() => {});
    this.#newReader = () =>
      new TextReader({
        format: options.format,
        choice: options.choice,
        newCallId: options.newCallId,
        callsAllowed: options.callsAllowed,
        ...(options.tools && { tools: options.tools }),
        ...(options.stop && { stop: options.stop }),
      });
    this.#text = this.#newReader();
    if (options.echo) this.#emit({ type: "text-delta", choice: options.choice, text: options.echo });
  }

  /** A stop string of the client was found: further output is ignored. */
  get stopped(): boolean {
    return this.#text.stopped !== null;
  }

  /** The events of one item. Throws `TypeError` for anything else, which is a bug of the program. */
  read(item: ProgramItem): GenerationEvent[] {
    if (item === null || item === undefined || this.stopped) return [];
    if (typeof item === "string") this.#readText(item);
    else if (typeof item !== "object") throw new TypeError(notAnItem(`a ${typeof item}`));
    else if (item.type === undefined) this.#readResult(item);
    else this.#readEvent(item);
    return this.#assembler.take();
  }

  /** The events that end the choice, its `finish` the last. */
  end(): GenerationEvent[] {
    this.#endCall();
    this.#assembler.add(this.#text.end());
    const stop = this.#text.stopped ?? undefined;
    this.#assembler.finish(stop === undefined ? this.#finishReason() : "stop", stop);
    return this.#assembler.take();
  }

  #finishReason(): FinishReason {
    const reason = this.#reason ?? "stop";
    const announcesCalls = reason === "tool-calls" || reason === "function-call";
    return announcesCalls && !this.#assembler.hasCalls ? "stop" : reason;
  }

  #readText(text: string): void {
    if (text === "") return;
    this.#endCall();
    this.#assembler.add(this.#text.push(text));
  }

  /** Throws `TypeError` if the tokens do not make up the text. */
  #readTokens(text: string, tokens: readonly ProgramLogprob[]): void {
    if (tokens.map(({ token }) => token).join("") !== text) {
      throw new TypeError("A program yielded text whose logprobs are of other tokens than the text consists of.");
    }
    this.#endCall();
    for (const { token, logprob, top = [] } of tokens) {
      this.#assembler.add(this.#text.push(token, { token, logprob, bytes: bytesOf(token), top: top.map(alternative) }));
    }
  }

  #readEvent(event: ProgramEvent): void {
    const choice = this.#choice;
    switch (event.type) {
      case "text":
        if (event.logprobs && event.logprobs.length > 0) this.#readTokens(event.text, event.logprobs);
        else this.#readText(event.text);
        break;
      case "reasoning":
        this.#endCall();
        if (event.text !== "") this.#emit({ type: "reasoning-delta", choice, text: event.text });
        break;
      case "refusal":
        this.#endCall();
        if (event.text !== "") this.#emit({ type: "refusal-delta", choice, text: event.text });
        break;
      case "tool-call":
        this.#startCall(event.name, event.id);
        this.#addArguments(argumentsText(event.arguments));
        this.#endCall();
        break;
      case "tool-call-start":
        this.#startCall(event.name, event.id);
        break;
      case "tool-call-delta":
        this.#addArguments(event.arguments);
        break;
      case "tool-call-end":
        this.#endCall();
        break;
      case "usage":
        this.usage = readProgramUsage(event.usage);
        this.timings = event.timings;
        break;
      case "extra":
        this.#emit({ type: "extra", choice, place: "delta", value: event.value });
        break;
      case "finish":
        this.#reason = event.reason;
        break;
      default:
        throw new TypeError(notAnItem(`an event of type ${JSON.stringify((event as { type: unknown }).type)}`));
    }
  }

  #readResult(result: ProgramResult): void {
    const known = ["text", "reasoning", "refusal", "object", "toolCalls", "finishReason", "usage"];
    if (!known.some((member) => member in result))
      throw new TypeError(notAnItem("an object with none of a result's members"));
    if (result.reasoning) this.#readEvent({ type: "reasoning", text: result.reasoning });
    if (result.text) this.#readText(result.text);
    if (result.object !== undefined) this.#readText(JSON.stringify(result.object));
    if (result.refusal) this.#readEvent({ type: "refusal", text: result.refusal });
    for (const call of result.toolCalls ?? []) this.#readEvent({ type: "tool-call", ...call });
    if (result.usage) this.usage = readProgramUsage(result.usage);
    if (result.finishReason) this.#reason = result.finishReason;
  }

  #startCall(name: string, id: string | undefined): void {
    if (typeof name !== "string" || name === "") throw new TypeError("A program made a tool call without a name.");
    this.#endCall();
    if (!this.#callsAllowed) {
      this.#openCall = { index: null, isCustom: false, arguments: [] };
      this.#onDroppedCall(name);
      this.#onDroppedCall = () => {};
      return;
    }
    // The text before the call is complete, so the rest in the reader is not a marker. A new reader parses the text after the call.
    this.#assembler.add(this.#text.end());
    this.#text = this.#newReader();
    const index = this.#calls++;
    const isCustom = this.#custom.has(name);
    this.#openCall = { index, isCustom, arguments: [] };
    const start = { type: "tool-call-start", choice: this.#choice, index, id: id ?? this.#newCallId(), name } as const;
    this.#emit(isCustom ? { ...start, kind: "custom" } : start);
  }

  #addArguments(text: string): void {
    if (this.#openCall === undefined)
      throw new TypeError("A program yielded a tool-call-delta without a tool-call-start.");
    const { index } = this.#openCall;
    if (text === "" || index === null) return;
    this.#openCall.arguments.push(text);
    this.#emit({ type: "tool-call-delta", choice: this.#choice, index, arguments: text });
  }

  #endCall(): void {
    const call = this.#openCall;
    if (call === undefined) return;
    const { index } = call;
    if (index === null) {
      this.#openCall = undefined;
      return;
    }
    // A call without arguments has `{}`, never an empty string (vLLM issue 28806).
    if (call.arguments.length === 0 && !call.isCustom) this.#addArguments("{}");
    this.#openCall = undefined;
    const raw = call.arguments.join("");
    const status = call.isCustom || isJsonObject(raw) ? "succeeded" : "failed";
    const end = { type: "tool-call-end", choice: this.#choice, index, status } as const;
    this.#emit(status === "failed" ? { ...end, raw } : end);
  }

  #emit(event: GenerationEvent): void {
    this.#assembler.add([event], "program");
  }
}

function alternative({ token, logprob }: { readonly token: string; readonly logprob: number }): TokenAlternative {
  return { token, logprob, bytes: bytesOf(token) };
}

function bytesOf(token: string): number[] {
  return [...new TextEncoder().encode(token)];
}

function argumentsText(value: string | object | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

function notAnItem(what: string): string {
  return `A program must yield or return text, an event or a result; it gave ${what}.`;
}

/**
 * The usage that a program reports: both counts, or one of them and the total. undefined if a count is missing: clients must not get
 * invented counts. A program may be untyped, so every member is checked.
 */
export function readProgramUsage(reported: unknown): Usage | undefined {
  if (!isObject(reported)) return undefined;
  const total = count(reported["totalTokens"]);
  const promptTokens = count(reported["promptTokens"]) ?? rest(total, count(reported["completionTokens"]));
  const completionTokens = count(reported["completionTokens"]) ?? rest(total, promptTokens);
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  const promptDetails = counts(reported["promptDetails"]);
  const completionDetails = counts(reported["completionDetails"]);
  return {
    promptTokens,
    completionTokens,
    ...(total !== undefined && { totalTokens: total }),
    ...(promptDetails && { promptDetails }),
    ...(completionDetails && { completionDetails }),
  };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}

function rest(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined || part === undefined || part > total ? undefined : total - part;
}

function counts(details: unknown): Record<string, number> | undefined {
  if (!isObject(details)) return undefined;
  const known = Object.entries(details).filter((entry): entry is [string, number] => count(entry[1]) !== undefined);
  return Object.fromEntries(known);
}
