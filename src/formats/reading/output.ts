import type { GenerationEvent, TokenLogprob } from "../../core/events.ts";
import { isSpace, Pile } from "./cursor.ts";
import { CustomInput } from "./custom-input.ts";
import type { ToolTypes } from "./tool-types.ts";
import { MarkerSet } from "./marker-set.ts";

export interface OutputOptions {
  readonly choice: number;
  readonly newCallId: () => string;
  /** Names that are tools; null: every name is. */
  readonly known: ToolTypes | null;
  /** Reasoning and its markers are content. */
  readonly mergeReasoning: boolean;
  /** Where they are: what the prompt's end has of the thought that it opened, which then belongs to the content, too. */
  readonly begunThought: string;
  /** White space at the edges is content as well. */
  readonly keepSpace: boolean;
  readonly stop: StopFilter | null;
  /** Make markup events. */
  readonly trace: boolean;
}

/** At most this many names of unknown tools are kept for the log: a model may invent any number. */
const mostUnknown = 20;

interface PendingToken {
  /** How much text there was with this token. */
  readonly end: number;
  readonly logprob: TokenLogprob;
}

/**
 * Turns what the reading finds into events in their legal order. Every method takes the raw text that it stands for, in order, so
 * that nothing is lost: text that is not shown becomes markup.
 */
export class Output {
  phase: "reasoning" | "content" | "call" = "content";
  sawCalls = false;
  /** The stop string that was hit. */
  stopped: string | null = null;
  /** Names in calls that stayed text because the request has no such tool. */
  readonly unknownTools: Set<string> = new Set();
  readonly #options: OutputOptions;
  #events: GenerationEvent[] = [];
  /** White space at an edge, not yet decided, and what it becomes when something visible follows. */
  #space = new Pile();
  #edge: "show" | "trim" | null;
  #visible = false;
  #callIndex = -1;
  /** Raw text of the call at hand. */
  #call = new Pile();
  /** Of a custom tool's call at hand: what its arguments say. */
  #input: CustomInput | null = null;
  /** The call at hand has an unknown name: all of it is text. */
  #demoted = false;
  #lastDemoted = false;
  #tokens: PendingToken[] = [];
  #received: number;
  #accounted = 0;
  /** What the prompt has begun of a thought, until it is clear whether the text has a thought at all. */
  #begun: string;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.#begun = options.begunThought;
    // As if it were the first that came.
    this.#received = this.#begun.length;
    this.#edge = options.keepSpace ? null : "show";
  }

  /** Announces text before it is read, with the logprob of the token that it is. */
  received(text: string, logprob?: TokenLogprob): void {
    this.#received += text.length;
    if (logprob) this.#tokens.push({ end: this.#received, logprob });
  }

  /** The events since the last call. */
  flush(): GenerationEvent[] {
    // Tokens without text of their own (an unfinished character) go out at once where nothing is held back.
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

  /** Lets out what the stop filter holds back: it can no longer become a stop string. */
  #settleStop(): void {
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

  /** The logprobs of all tokens whose last character is accounted for. */
  #takeTokens(): TokenLogprob[] | undefined {
    const first = this.#tokens[0];
    if (first === undefined || first.end > this.#accounted) return undefined;
    const done = this.#tokens.findIndex((token) => token.end > this.#accounted);
    return this.#tokens.splice(0, done < 0 ? this.#tokens.length : done).map((token) => token.logprob);
  }

  /** Text that shows nowhere: a marker, a stripped token. Of the call at hand, if there is one. */
  markup(raw: string): void {
    if (this.#demoted) return this.text(raw);
    if (this.#callIndex >= 0 && this.phase === "call") this.#call.add(raw);
    else {
      this.#settleStop();
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
    if (this.#lastDemoted) this.text(raw);
    else this.markup(raw);
  }

  isKnown(name: string): boolean {
    return this.#options.known?.has(name) ?? true;
  }

  unknown(name: string): void {
    if (this.unknownTools.size < mostUnknown) this.unknownTools.add(name);
  }

  /** White space at an edge that nothing visible followed. */
  #dropSpace(): void {
    if (this.#space.length > 0) this.#markup(this.#space.take());
  }

  openThought(raw: string): void {
    this.phase = "reasoning";
    if (this.#options.mergeReasoning) return this.text(raw);
    this.#settleStop();
    this.#dropSpace();
    this.#markup(raw);
    this.#edge = "trim";
  }

  /** A marker at the beginning of a thought, behind its opener. */
  thoughtMarkup(raw: string): void {
    if (this.#options.mergeReasoning) this.text(raw);
    else this.#markup(raw);
  }

  thought(raw: string): void {
    if (this.#options.mergeReasoning) return this.#mergedThought(raw);
    let text = raw;
    if (this.#edge !== null) {
      const blank = leadingSpace(raw);
      this.#markup(raw.slice(0, blank));
      if (blank === raw.length) return;
      this.#edge = null;
      text = raw.slice(blank);
    }
    // White space at the end is shown when the thought goes on.
    const shown = text.length - trailingSpace(text);
    if (shown > 0) this.#delta("reasoning-delta", this.#space.take() + text.slice(0, shown));
    this.#space.add(text.slice(shown));
  }

  #mergedThought(raw: string): void {
    if (raw === "") return;
    if (this.#begun !== "") this.text(this.#begun);
    this.#begun = "";
    this.text(raw);
  }

  closeThought(raw: string): void {
    this.phase = "content";
    if (this.#options.mergeReasoning) {
      this.#mergedThought(raw);
      // A call ended the thought before it began.
      this.#accounted += this.#begun.length;
      this.#begun = "";
      return;
    }
    this.#dropSpace();
    this.#markup(raw);
    this.#edge = "trim";
  }

  /** A call begins: its name is complete; `raw` is all since its opener. */
  startCall(name: string, raw: string, id?: string): void {
    if (this.stopped !== null) return;
    this.#lastDemoted = !this.isKnown(name);
    if (this.#lastDemoted) {
      this.unknown(name);
      this.#demoted = true;
      return this.text(raw);
    }
    this.#settleStop();
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

  /** A further piece of the arguments' JSON, written as `raw`. */
  callArguments(json: string, raw: string): void {
    if (this.stopped !== null) return;
    if (this.#demoted) return this.text(raw);
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
    if (this.#demoted) {
      this.text(raw);
      this.#demoted = false;
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

  /** Raw text of the call at hand, as far as it is accounted for. */
  callSoFar(): string {
    return this.#call.toString();
  }

  /** The text has ended. */
  end(): void {
    this.#settleStop();
    if (this.#space.length > 0) {
      const space = this.#space.take();
      if (!this.#visible && !this.sawCalls && this.#edge === "show") this.#show(space);
      else this.#markup(space);
      this.#settleStop();
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

/** Ends the visible text at the first of the client's stop strings. What may still become one is held back, nothing else. */
export class StopFilter {
  /** The stop string that was found; nothing may be pushed any more. */
  hit: string | null = null;
  /** Once hit: the stop string and what stood behind it in the same piece. */
  rest = "";
  readonly #set: MarkerSet;
  #node = 0;
  #held = "";

  constructor(stops: readonly string[]) {
    this.#set = new MarkerSet(stops);
  }

  /** Gives the text that is visible now. */
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
      const from = i + 1 - (this.hit?.length ?? 0);
      this.rest = all.slice(from);
      this.#held = "";
      return all.slice(0, from);
    }
    const visible = all.length - (set.depth[this.#node] ?? 0);
    this.#held = all.slice(visible);
    return all.slice(0, visible);
  }

  /** Something that is no visible text follows: what was held is visible. */
  release(): string {
    const held = this.#held;
    this.#held = "";
    this.#node = 0;
    return held;
  }
}
