import type { GenerationEvent, TokenLogprob } from "../../../wire/core/events.ts";
import { isSpace, TextBuffer } from "./cursor.ts";
import { CustomInput } from "./custom-input.ts";
import type { ToolTypes } from "./tool-types.ts";
import { MarkerSet } from "./marker-set.ts";

interface OutputOptions {
  readonly choice: number;
  readonly newCallId: () => string;
  /** The tools of the request, or null if every name is a tool. */
  readonly known: ToolTypes | null;
  /** Reasoning and its markers are content. */
  readonly mergeReasoning: boolean;
  /** With `mergeReasoning`: the reasoning that the end of the prompt has opened, which then belongs to the content. */
  readonly promptReasoning: string;
  /** White space at the ends of the text is content. */
  readonly keepSpace: boolean;
  readonly stop: StopFilter | null;
  /** Emit markup events. */
  readonly trace: boolean;
}

/** Maximum number of unknown tool names kept for the log: a model may invent any number. */
const maxUnknownTools = 20;

interface PendingToken {
  /** Length of the text up to and including this token. */
  readonly end: number;
  readonly logprob: TokenLogprob;
}

/**
 * Emits events in legal order for what the parsers find. The raw text passed to the methods is, in order, the whole text, so that nothing
 * is lost: text that is not visible becomes markup.
 */
export class EventOutput {
  phase: "reasoning" | "content" | "call" = "content";
  sawCalls = false;
  /** The stop string that ended the text, or null. */
  stopped: string | null = null;
  /** Names in calls that stayed text because the request has no such tool. */
  readonly unknownTools: Set<string> = new Set();
  readonly #options: OutputOptions;
  #events: GenerationEvent[] = [];
  /** White space that is visible only if visible text follows. */
  #space = new TextBuffer();
  /** What leading white space of the next text becomes: visible, or markup. null: not at the beginning of visible text. */
  #edge: "show" | "trim" | null;
  #visible = false;
  #callIndex = -1;
  /** Raw text of the current call. */
  #call = new TextBuffer();
  /** Decodes the arguments of the current call if it calls a custom tool. */
  #input: CustomInput | null = null;
  /** The current call names an unknown tool: all of it is text. */
  #callIsText = false;
  #lastCallWasText = false;
  #tokens: PendingToken[] = [];
  #received: number;
  #accounted = 0;
  /** `promptReasoning`, until it is clear whether the text continues the reasoning. */
  #promptReasoning: string;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.#promptReasoning = options.promptReasoning;
    // It counts as the first text received.
    this.#received = this.#promptReasoning.length;
    this.#edge = options.keepSpace ? null : "show";
  }

  /** Registers text before it is parsed. `logprob`: of the token that the text is. */
  received(text: string, logprob?: TokenLogprob): void {
    this.#received += text.length;
    if (logprob) this.#tokens.push({ end: this.#received, logprob });
  }

  /** Returns the events since the last call. */
  flush(): GenerationEvent[] {
    // Tokens without text (part of a character) are emitted immediately if nothing is held back.
    const loose = this.#takeTokens();
    if (loose && this.phase !== "call") {
      const type = this.phase === "reasoning" && !this.#options.mergeReasoning ? "reasoning-delta" : "text-delta";
      this.#events.push({ type, choice: this.#options.choice, text: "", logprobs: loose });
    }
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Visible text. */
  text(raw: string): void {
    if (raw === "" || this.stopped !== null) return;
    if (this.#edge === null) return this.#show(raw);
    const blank = leadingSpace(raw);
    if (this.#edge === "trim") this.#markup(raw.slice(0, blank));
    else this.#space.add(raw.slice(0, blank));
    if (blank === raw.length) return;
    this.#edge = null;
    this.#show(this.#space.take());
    this.#show(raw.slice(blank));
  }

  #show(text: string): void {
    if (text === "" || this.stopped !== null) return;
    this.#visible = true;
    const { stop } = this.#options;
    if (!stop) return this.#delta("text-delta", text);
    this.#delta("text-delta", stop.push(text));
    if (stop.hit === null) return;
    this.stopped = stop.hit;
    this.#markup(stop.rest);
  }

  /** Emits what the stop filter holds back: it can no longer become a stop string. */
  #releaseStop(): void {
    if (this.#options.stop && this.stopped === null) this.#delta("text-delta", this.#options.stop.release());
  }

  #delta(type: "text-delta" | "reasoning-delta", text: string): void {
    if (text === "") return;
    this.#accounted += text.length;
    const logprobs = this.#takeTokens();
    const { choice } = this.#options;
    const last = this.#events.at(-1);
    if (last?.type === type && !last.logprobs && !logprobs) {
      this.#events[this.#events.length - 1] = { type, choice, text: last.text + text };
    } else this.#events.push({ type, choice, text, ...(logprobs && { logprobs }) });
  }

  /** The logprobs of all tokens whose last character was emitted. */
  #takeTokens(): TokenLogprob[] | undefined {
    const first = this.#tokens[0];
    if (first === undefined || first.end > this.#accounted) return undefined;
    const done = this.#tokens.findIndex((token) => token.end > this.#accounted);
    return this.#tokens.splice(0, done < 0 ? this.#tokens.length : done).map((token) => token.logprob);
  }

  /** Hidden text: a marker or a stripped token. It belongs to the current call, if there is one. */
  markup(raw: string): void {
    if (this.#callIsText) return this.text(raw);
    if (this.#callIndex >= 0 && this.phase === "call") this.#call.add(raw);
    else {
      this.#releaseStop();
      this.#dropSpace();
    }
    this.#markup(raw);
  }

  #markup(raw: string): void {
    this.#accounted += raw.length;
    if (this.#tokens.length > 0) this.#takeTokens();
    if (raw !== "" && this.#options.trace) this.#events.push({ type: "markup", choice: this.#options.choice, raw });
  }

  closer(raw: string): void {
    if (this.#lastCallWasText) this.text(raw);
    else this.markup(raw);
  }

  /** Whether reasoning is visible text. */
  get mergesReasoning(): boolean {
    return this.#options.mergeReasoning;
  }

  isKnown(name: string): boolean {
    return this.#options.known?.has(name) ?? true;
  }

  unknown(name: string): void {
    if (this.unknownTools.size < maxUnknownTools) this.unknownTools.add(name);
  }

  /** Drops white space that no visible text followed. */
  #dropSpace(): void {
    if (this.#space.length > 0) this.#markup(this.#space.take());
  }

  /** `resumes`: it continues the reasoning before a call, with the white space between them. */
  startReasoning(raw: string, resumes = false): void {
    this.phase = "reasoning";
    if (this.#options.mergeReasoning) return this.text(raw);
    this.#releaseStop();
    this.#dropSpace();
    this.#markup(raw);
    this.#edge = resumes ? null : "trim";
  }

  /** A marker at the beginning of the reasoning, after its opener. */
  reasoningMarkup(raw: string): void {
    if (this.#options.mergeReasoning) this.text(raw);
    else this.#markup(raw);
  }

  reasoning(raw: string): void {
    if (this.#options.mergeReasoning) return this.#mergedReasoning(raw);
    let text = raw;
    if (this.#edge !== null) {
      const blank = leadingSpace(raw);
      this.#markup(raw.slice(0, blank));
      if (blank === raw.length) return;
      this.#edge = null;
      text = raw.slice(blank);
    }
    // White space at the end is emitted when the reasoning continues.
    const shown = text.length - trailingSpace(text);
    if (shown > 0) this.#delta("reasoning-delta", this.#space.take() + text.slice(0, shown));
    this.#space.add(text.slice(shown));
  }

  #mergedReasoning(raw: string): void {
    if (raw === "") return;
    if (this.#promptReasoning !== "") this.text(this.#promptReasoning);
    this.#promptReasoning = "";
    this.text(raw);
  }

  endReasoning(raw: string): void {
    this.phase = "content";
    if (this.#options.mergeReasoning) {
      this.#mergedReasoning(raw);
      // A call ended the reasoning before it began.
      this.#accounted += this.#promptReasoning.length;
      this.#promptReasoning = "";
      return;
    }
    this.#dropSpace();
    this.#markup(raw);
    this.#edge = "trim";
  }

  /** A call begins: its name is complete. `raw` is everything since its opener. */
  startCall(name: string, raw: string, id?: string): void {
    if (this.stopped !== null) return;
    this.#lastCallWasText = !this.isKnown(name);
    if (this.#lastCallWasText) {
      this.unknown(name);
      this.#callIsText = true;
      return this.text(raw);
    }
    this.#releaseStop();
    this.#dropSpace();
    this.sawCalls = true;
    this.#callIndex++;
    this.#call.clear();
    this.#call.add(raw);
    this.phase = "call";
    this.#markup(raw);
    const { choice, known, newCallId } = this.#options;
    const isCustom = known?.isCustom(name) === true;
    this.#input = isCustom ? new CustomInput() : null;
    this.#events.push({
      type: "tool-call-start",
      choice,
      index: this.#callIndex,
      id: id ?? newCallId(),
      name,
      ...(isCustom && { kind: "custom" }),
    });
  }

  /** The next part of the arguments' JSON, which the model wrote as `raw`. */
  callArguments(json: string, raw: string): void {
    if (this.stopped !== null) return;
    if (this.#callIsText) return this.text(raw);
    this.#call.add(raw);
    this.#markup(raw);
    this.#arguments(this.#input === null ? json : this.#input.push(json));
  }

  #arguments(text: string): void {
    if (text === "") return;
    const last = this.#events.at(-1);
    const { choice } = this.#options;
    const index = this.#callIndex;
    if (last?.type === "tool-call-delta") {
      this.#events[this.#events.length - 1] = { ...last, arguments: last.arguments + text };
    } else this.#events.push({ type: "tool-call-delta", choice, index, arguments: text });
  }

  endCall(status: "succeeded" | "failed", raw: string): void {
    if (this.stopped !== null) return;
    if (this.#callIsText) {
      this.text(raw);
      this.#callIsText = false;
      return;
    }
    this.#call.add(raw);
    this.#markup(raw);
    if (this.#input !== null) this.#arguments(this.#input.end());
    const { choice } = this.#options;
    const failed = status === "failed" ? { raw: this.#call.toString() } : undefined;
    this.#events.push({ type: "tool-call-end", choice, index: this.#callIndex, status, ...failed });
    this.#call.clear();
    this.phase = "content";
    this.#edge = this.#options.keepSpace ? null : "show";
  }

  /** Raw text of the current call, as far as it was consumed. */
  callSoFar(): string {
    return this.#call.toString();
  }

  /** The text has ended. */
  end(): void {
    this.#releaseStop();
    if (this.#space.length > 0) {
      const space = this.#space.take();
      if (!this.#visible && !this.sawCalls && this.#edge === "show") this.#show(space);
      else this.#markup(space);
      this.#releaseStop();
    }
  }
}

function leadingSpace(text: string): number {
  let i = 0;
  while (i < text.length && isSpace(text.charCodeAt(i))) i++;
  return i;
}

function trailingSpace(text: string): number {
  let i = text.length;
  while (i > 0 && isSpace(text.charCodeAt(i - 1))) i--;
  return text.length - i;
}

/** Ends the visible text at the first of the client's stop strings. Holds back only what may still become one. */
export class StopFilter {
  /** The stop string that was found. After that, `push` must not be called. */
  hit: string | null = null;
  /** After a hit: the stop string and what followed it in the same chunk. */
  rest = "";
  readonly #set: MarkerSet;
  #node = 0;
  #held = "";

  constructor(stops: readonly string[]) {
    this.#set = new MarkerSet(stops);
  }

  /** Returns the text that is visible now. */
  push(text: string): string {
    const set = this.#set;
    const all = this.#held + text;
    for (let i = this.#held.length; i < all.length; i++) {
      if (this.#node === 0) {
        i = set.skip(all, i);
        if (i === all.length) break;
      }
      this.#node = set.step(this.#node, all.charCodeAt(i));
      const end = set.ends[this.#node] ?? -1;
      if (end < 0) continue;
      this.hit = set.markers[end] ?? null;
      const from = i + 1 - set.length(end);
      this.rest = all.slice(from);
      this.#held = "";
      return all.slice(0, from);
    }
    const visible = all.length - (set.depth[this.#node] ?? 0);
    this.#held = all.slice(visible);
    return all.slice(0, visible);
  }

  /** Returns the held text: something that is not visible text follows. */
  release(): string {
    const held = this.#held;
    this.#held = "";
    this.#node = 0;
    return held;
  }
}
