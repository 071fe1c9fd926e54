import type {
  AnnotationEvent,
  ChoiceEvent,
  ExtraEvent,
  FinishEvent,
  GenerationEnd,
  GenerationEvent,
  HostedCallDeltaEvent,
  HostedCallStartEvent,
  HostedFunctionsEvent,
  HostedResultEvent,
  PartEndEvent,
  PartStartEvent,
  ReasoningDeltaEvent,
  SourceIdentity,
  ToolCallDeltaEvent,
  ToolCallEndEvent,
  ToolCallStartEvent,
  Usage,
} from "../../core/events.ts";
import { isObject, objectIn } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { jsonString } from "../json-text.ts";
import { inWireOrder, orderedMembers } from "../members.ts";
import type { StreamWriter } from "../port.ts";
import { openSeal } from "../turn-seal.ts";
import type { ReasoningState } from "../../core/turn-state.ts";
import type { Profile } from "../profile.ts";
import { errorJson } from "./error-object.ts";
import { messageForms } from "./form.ts";
import { functionsBlock, hostedResultBlock, HostedIds, HostedUsage, hostedUseBlock } from "./hosted-blocks.ts";
import { noNativeMembers, withNativeMembers } from "./native-members.ts";
import * as schema from "./schema.ts";
import { estimatedUsage } from "../usage.ts";
import {
  callMembers,
  writtenCallId,
  citationOf,
  diagnosticsMember,
  managedContext,
  writeDeltaUsage,
  messageEnd,
  messageHead,
  redactedBlock,
  reportedUsage,
  signatureOf,
  unsetMembers,
  writeUsage,
} from "./write.ts";
import type { MessageContext } from "./write.ts";

/** The beginning of the deltas of a call's input. */
const inputDelta = '"delta":{"type":"input_json_delta","partial_json":';

/** The block that is being written. */
interface Block {
  readonly kind: "text" | "refusal" | "thinking" | "call" | "hosted";
  readonly index: number;
  /** The id of the source's reasoning item. */
  readonly id: string | undefined;
  /** The beginning of the block's delta events, up to the JSON of the delta's text. */
  readonly deltaPrefix: string;
  /** Reasoning that is not shown, for the signature. */
  readonly hidden: string[];
  /** The part of the reasoning summary that is being written; `undefined`: the reasoning itself. */
  summary: number | undefined;
  /** The arguments of a call while they may be those of an empty object; `null` as soon as arguments are written. */
  empty: EmptyArguments | null;
  /** The status of a call that has ended. */
  ended: ToolCallEndEvent["status"] | null;
}

/** The maximum length of the events that wait for a call to be confirmed, in characters. The call is closed when they are longer. */
const maxHeld = 4 * 1024 * 1024;

/**
 * Writes an answer as the events of a message: a state machine over prepared text. Blocks come strictly one after another.
 *
 * A call's `content_block_stop` waits for the finish event: clients (Claude Code) run a tool as soon as its block is closed, even if an
 * error follows, and would run it again when they retry. Events after the call wait with it. So a call is never closed if the answer
 * fails, or if the token limit has cut the call (recording of 2025-06). Events of other choices, deltas after the finish event, and events
 * after the end write nothing.
 */
export class MessageStreamWriter implements StreamWriter {
  readonly #context: MessageContext;
  #source: SourceIdentity | undefined;
  #usage: Usage | undefined;
  /** The number of characters that the model has generated, to estimate its tokens. */
  #characters = 0;
  #native = noNativeMembers;
  #started = false;
  #blocks = 0;
  #block: Block | null = null;
  /** The part that the source has opened, until its block is closed. */
  #part: PartStartEvent | null = null;
  #refused = false;
  readonly #hostedIds: HostedIds;
  readonly #hostedUsage = new HostedUsage();
  /** Events after a call, until the finish event shows that the answer is complete. */
  #held: (ChoiceEvent | ExtraEvent)[] = [];
  #heldCharacters = 0;
  #finish: FinishEvent | null = null;
  #ended = false;

  constructor(context: MessageContext) {
    this.#context = context;
    this.#hostedIds = new HostedIds(context.random);
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) text += this.#event(event);
    return text;
  }

  open(): string {
    return this.#started || this.#ended ? "" : this.#messageStart();
  }

  keepAlive(): string {
    return pingText;
  }

  #event(event: GenerationEvent): string {
    if (this.#ended) return "";
    switch (event.type) {
      case "usage":
        this.#usage = event.usage;
        return "";
      case "text-delta":
      case "refusal-delta":
      case "reasoning-delta":
      case "tool-call-delta":
      case "hosted-call-delta":
        if (event.choice === 0) this.#characters += charactersOf(event);
        break;
      case "end":
        return (event.end.kind === "done" ? this.#release() : "") + this.#end(event.end);
      case "finish":
        return this.#release() + this.#write(event);
      case "prompt":
      case "progress":
      case "tokens":
        return "";
    }
    if (this.#held.length === 0 && !this.#isUnconfirmed()) return this.#write(event);
    this.#held.push(event);
    this.#heldCharacters += charactersOf(event);
    return this.#heldCharacters > maxHeld ? this.#release() : "";
  }

  /** True while the open block is a complete call that the next event would close. */
  #isUnconfirmed(): boolean {
    return this.#block?.kind === "call" && this.#block.ended === "succeeded" && this.#heldCharacters <= maxHeld;
  }

  #release(): string {
    let text = "";
    for (const event of this.#held.splice(0)) text += this.#write(event);
    return text;
  }

  #write(event: ChoiceEvent | ExtraEvent): string {
    if (event.type === "extra") return this.#extra(event);
    if (event.choice !== 0 || this.#finish !== null) return "";
    switch (event.type) {
      case "start":
        this.#source ??= event.source;
        return "";
      case "text-delta":
        return this.#text(event.text, "text");
      case "reasoning-delta":
        return this.#reasoning(event);
      case "refusal-delta":
        this.#refused = true;
        return this.#text(event.text, "refusal");
      case "part-start":
        return this.#partStart(event);
      case "part-end":
        return this.#partEnd(event);
      case "annotation":
        return this.#annotation(event);
      case "tool-call-start":
        return this.#callStart(event);
      case "tool-call-delta":
        return this.#callDelta(event);
      case "tool-call-end":
        return this.#callEnd(event);
      case "hosted-call-start":
        return this.#hostedStart(event);
      case "hosted-call-delta":
        return this.#callDelta(event);
      case "hosted-call-end":
        return this.#hostedEnd();
      case "hosted-result":
        return this.#hostedResult(event);
      case "hosted-functions":
        return event.isPending ? "" : this.#functions(event);
      case "hosted-approval":
      case "markup":
      case "tokens":
        return "";
      case "finish":
        return this.#finished(event);
    }
  }

  #text(text: string, kind: "text" | "refusal"): string {
    if (text === "") return "";
    const opening = this.#block?.kind === kind ? "" : this.#openText('{"type":"text","text":""}', kind);
    return this.#block ? opening + this.#delta(this.#block, jsonString(text)) : opening;
  }

  #openText(json: string, kind: "text" | "refusal" = "text"): string {
    return this.#openBlock(kind, json, '"delta":{"type":"text_delta","text":');
  }

  #reasoning({ text, summary }: ReasoningDeltaEvent): string {
    const display = this.#context.options.reasoning;
    if (text === "") return "";
    if (display === "hidden") return this.#closeBlock();
    const opening = this.#block?.kind === "thinking" ? "" : this.#openThinking(summary);
    const block = this.#block;
    // If a source sends both reasoning and a summary, the one that comes first is shown.
    if (block === null || (block.summary === undefined) !== (summary === undefined)) return opening;
    const delta = block.summary === summary ? text : `\n\n${text}`;
    block.summary = summary;
    if (display === "shown") return opening + this.#delta(block, jsonString(delta));
    block.hidden.push(delta);
    return opening;
  }

  #openThinking(summary?: number): string {
    const json = '{"type":"thinking","thinking":"","signature":""}';
    const text = this.#openBlock("thinking", json, '"delta":{"type":"thinking_delta","thinking":');
    if (this.#block) this.#block.summary = summary;
    return text;
  }

  #partStart(event: PartStartEvent): string {
    const text = this.#closeBlock();
    this.#part = event;
    return text;
  }

  /** The end of reasoning may bring its signature, or its encrypted form where there is no text. */
  #partEnd({ state }: PartEndEvent): string {
    const part = this.#part;
    const isHidden = part?.kind !== "reasoning" || this.#context.options.reasoning === "hidden";
    if (this.#block !== null || state === undefined || isHidden) return this.#closeBlock(state);
    if (state.kind === "signature") return this.#openThinking() + this.#closeBlock(state);
    return this.#wholeBlock(redactedBlock({ state, id: part.id }, this.#context));
  }

  #annotation({ annotation }: AnnotationEvent): string {
    const citation = citationOf(annotation);
    if (citation === undefined) return "";
    const opening = this.#block?.kind === "text" ? "" : this.#openText('{"citations":[],"type":"text","text":""}');
    const index = this.#block?.index ?? 0;
    const delta = JSON.stringify({ type: "citations_delta", citation });
    return `${opening}${this.#eventText("content_block_delta", `"index":${index},"delta":${delta}`)}`;
  }

  #callStart(event: ToolCallStartEvent): string {
    const id = writtenCallId(event.id, this.#context);
    const { state } = event;
    const isCarried = state && this.#context.options.reasoning !== "hidden";
    const carrier = state && isCarried ? this.#wholeBlock(redactedBlock({ state, callId: id }, this.#context)) : "";
    const members = event.native
      ? JSON.stringify(callMembers(event.native)).slice(1, -1)
      : '"caller":{"type":"direct"}';
    const json = `{"type":"tool_use","id":"${id}","name":${jsonString(event.name)},"input":{},${members}}`;
    const opening = this.#openBlock("call", json, inputDelta);
    // The first delta of every recorded call is empty.
    return carrier + (this.#block ? opening + this.#delta(this.#block, '""') : opening);
  }

  #hostedStart(event: HostedCallStartEvent): string {
    const block = hostedUseBlock(event, {}, this.#hostedIds);
    if (!block) return "";
    const opening = this.#openBlock("hosted", JSON.stringify(block), inputDelta);
    return this.#block ? opening + this.#delta(this.#block, '""') : opening;
  }

  #hostedEnd(): string {
    const block = this.#block;
    if (block?.kind !== "hosted") return "";
    const begun = block.empty?.text ?? "";
    block.empty = null;
    return (objectIn(begun) ? "" : this.#callDelta({ arguments: begun })) + this.#closeBlock();
  }

  #hostedResult(event: HostedResultEvent): string {
    this.#hostedUsage.add(event);
    const block = hostedResultBlock(event, this.#hostedIds, this.#context.turnSeal ?? openSeal);
    return block ? this.#wholeBlock(block) : "";
  }

  #functions(event: HostedFunctionsEvent): string {
    const block = functionsBlock(event);
    return block ? this.#wholeBlock(block) : "";
  }

  #callDelta({ arguments: text }: Pick<ToolCallDeltaEvent | HostedCallDeltaEvent, "arguments">): string {
    const block = this.#block;
    if (text === "" || (block?.kind !== "call" && block?.kind !== "hosted")) return "";
    if (block.empty === null) return this.#delta(block, jsonString(text));
    // Anthropic sends only the empty delta for an object without members.
    if (block.empty.push(text)) return "";
    const { text: begun } = block.empty;
    block.empty = null;
    return this.#delta(block, jsonString(begun));
  }

  #callEnd({ status }: ToolCallEndEvent): string {
    const block = this.#block;
    if (block?.kind !== "call") return "";
    block.ended = status;
    const begun = block.empty?.text ?? "";
    if (status === "succeeded" || begun === "") return "";
    block.empty = null;
    return this.#delta(block, jsonString(begun));
  }

  #finished(event: FinishEvent): string {
    this.#finish = event;
    // Some sources end a call that the limit has cut.
    if (event.reason === "length" && this.#block?.ended === "failed") this.#block = null;
    return this.#closeBlock();
  }

  #extra(event: ExtraEvent): string {
    this.#native = withNativeMembers(this.#native, event);
    const isBlock = event.place === "item" && event.dialect === "messages" && (event.choice ?? 0) === 0;
    return isBlock && this.#finish === null ? this.#wholeBlock(event.value) : "";
  }

  /** Writes a block of this API with all its events. */
  #wholeBlock(block: JsonObject): string {
    const { type, input } = block;
    const { start, index } = this.#beginBlock();
    const begin = (shown: unknown) => this.#blockStart(index, JSON.stringify(shown));
    const delta = (delta: unknown) =>
      this.#eventText("content_block_delta", `"index":${index},"delta":${JSON.stringify(delta)}`);
    const inputDelta = (partial_json: string) => delta({ type: "input_json_delta", partial_json });
    let text = start;
    if (isObject(input) || Array.isArray(input))
      text += begin({ ...block, input: {} }) + inputDelta("") + inputDelta(JSON.stringify(input));
    else if (type === "compaction") {
      const { type: _, ...members } = block;
      const nulls = Object.fromEntries(Object.keys(members).map((name) => [name, null]));
      text += begin({ type, ...nulls }) + delta({ ...members, type: "compaction_delta" });
    } else text += begin(block);
    return text + this.#eventText("content_block_stop", `"index":${index}`);
  }

  /** Opens a block of deltas and closes the previous block. `delta`: the beginning of its deltas. */
  #openBlock(kind: Block["kind"], json: string, delta: string): string {
    const id = this.#part?.id;
    const { start, index } = this.#beginBlock();
    this.#block = {
      kind,
      index,
      id,
      deltaPrefix: `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},${delta}`,
      hidden: [],
      summary: undefined,
      empty: new EmptyArguments(),
      ended: null,
    };
    return start + this.#blockStart(index, json);
  }

  #beginBlock(): { readonly start: string; readonly index: number } {
    const start = this.#closeBlock() + (this.#started ? "" : this.#messageStart());
    return { start, index: this.#blocks++ };
  }

  #blockStart(index: number, json: string): string {
    const text = this.#eventText("content_block_start", `"index":${index},"content_block":${json}`);
    return index === 0 ? text + pingText : text;
  }

  /** Closes the open block. A call is closed only if it is complete. */
  #closeBlock(state?: ReasoningState): string {
    const block = this.#block;
    this.#part = null;
    this.#block = null;
    if (block === null || (block.kind === "call" && block.ended === null)) return "";
    let text = "";
    if (block.kind === "thinking") {
      const signature = signatureOf({ text: block.hidden.join(""), state, id: block.id }, this.#context);
      const delta = JSON.stringify({ type: "signature_delta", signature });
      text = this.#eventText("content_block_delta", `"index":${block.index},"delta":${delta}`);
    }
    return text + this.#eventText("content_block_stop", `"index":${block.index}`);
  }

  #delta(block: Block, json: string): string {
    const { profile, random } = this.#context;
    return `${block.deltaPrefix}${json}}${padding(profile, random)}}\n\n`;
  }

  #messageStart(): string {
    this.#started = true;
    const head = messageHead(this.#context, this.#source);
    const message = {
      ...unsetMembers(schema.message, this.#context.profile),
      ...head,
      ...diagnosticsMember(this.#context.options, head.id, this.#usage),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: orderedMembers(
        schema.messageStartUsage,
        writeUsage(this.#knownUsage(), this.#native.usage, this.#context.settings),
      ),
      ...this.#native.message,
    };
    return this.#eventText("message_start", `"message":${JSON.stringify(inWireOrder(schema.message, message))}`);
  }

  #knownUsage(): Usage | undefined {
    const { options } = this.#context;
    return reportedUsage(this.#usage ?? estimatedUsage(options.estimatePrompt, this.#characters), {
      native: this.#native,
      options,
    });
  }

  #end(end: GenerationEnd): string {
    this.#ended = true;
    if (end.kind === "client-gone") return "";
    const { profile, random, options, settings } = this.#context;
    if (end.kind !== "done") {
      const json = errorJson(end.failure, options.requestId);
      return messageEventText("error", json.slice(0, -1), padding(profile, random));
    }
    const { container = unsetMembers(schema.messageEnding, profile)["container"], context_management: management } = {
      ...managedContext(options),
      ...this.#native.message,
    };
    const start = this.#started ? "" : this.#messageStart();
    const ending = messageEnd(this.#finish, this.#refused, this.#native);
    const delta = JSON.stringify({ ...ending, container });
    const usage = JSON.stringify(
      writeDeltaUsage(this.#knownUsage(), { ...this.#hostedUsage.members, ...this.#native.usage }, settings),
    );
    const managed = management === undefined ? "" : `,"context_management":${JSON.stringify(management)}`;
    const last = this.#eventText("message_delta", `"delta":${delta},"usage":${usage}${managed}`);
    return start + this.#closeBlock() + last + this.#eventText("message_stop", "");
  }

  /** `members`: the JSON of the members after the type, without a leading comma. */
  #eventText(type: string, members: string): string {
    const { profile, random } = this.#context;
    return messageEventText(type, `{"type":"${type}"${members === "" ? "" : ","}${members}`, padding(profile, random));
  }
}

/** Follows the arguments of a call while they may be those of an object without members. Reads each character once. */
class EmptyArguments {
  text = "";
  /** What must follow, white space aside. */
  #rest = "{}";

  /** Adds arguments. Returns false if they are not those of an empty object, or are too long to wait. */
  push(text: string): boolean {
    this.text += text;
    if (this.text.length > maxEmpty) return false;
    for (const character of text) {
      if (" \t\n\r".includes(character)) continue;
      if (!this.#rest.startsWith(character)) return false;
      this.#rest = this.#rest.slice(1);
    }
    return true;
  }
}

/** The maximum length of the arguments that wait because they may be an empty object, in characters. */
const maxEmpty = 1024;

function charactersOf(event: ChoiceEvent | ExtraEvent): number {
  if (event.type === "tool-call-delta" || event.type === "hosted-call-delta") return event.arguments.length;
  return "text" in event ? event.text.length : 1;
}

const spaces = " ".repeat(Math.max(...Object.values(messageForms).map(({ maxPadding }) => maxPadding)));

/**
 * Returns the spaces before an event's last brace: 0 to 15, by which Anthropic hides the length of tokens from observers of the encrypted
 * stream. Source: 14,388 recorded events of 2024 to 2026, in which each number of spaces is equally frequent.
 */
export function padding({ name }: Profile, random: () => number): string {
  const { maxPadding } = messageForms[name];
  return maxPadding === 0 ? "" : spaces.slice(0, Math.floor(random() * (maxPadding + 1)));
}

/** Writes one event of a stream. `json`: a compact object without its last brace. `type`: the event's name and the object's `type`. */
export function messageEventText(type: string, json: string, pad: string): string {
  return `event: ${type}\ndata: ${json}${pad}}\n\n`;
}

/** The one event that has no padding, and that has a space after its colon (570 of 570 recorded). */
export const pingText = 'event: ping\ndata: {"type": "ping"}\n\n';
