import { inWireOrder } from "../members.ts";
import { message as messageSchema } from "./schema.ts";
import type {
  AnnotationEvent,
  ChoiceEvent,
  ExtraEvent,
  FinishEvent,
  GenerationEnd,
  GenerationEvent,
  PartEndEvent,
  PartStartEvent,
  ReasoningDeltaEvent,
  SourceIdentity,
  ToolCallDeltaEvent,
  ToolCallEndEvent,
  ToolCallStartEvent,
  Usage,
} from "../../core/events.ts";
import { jsonString } from "../json-string.ts";
import type { StreamWriter } from "../port.ts";
import type { MessageContext } from "./asked-message.ts";
import { citationOf } from "./citation.ts";
import { errorObject } from "./error-object.ts";
import { eventText, padding, pingText } from "./event-text.ts";
import { callId, messageHead } from "./identity.ts";
import { itemEvents } from "./item-text.ts";
import { noNativeMembers, withNativeMembers } from "./native-members.ts";
import { ownSignature, sealThought } from "./sealed-thought.ts";
import { messageEnd } from "./stop-reason.ts";
import { estimatedUsage, finalUsage, messageUsage } from "./usage.ts";

/** The block that is being written. */
interface Block {
  readonly kind: "text" | "refusal" | "thinking" | "call";
  readonly index: number;
  /** Of a thought: the id of its item at the source. */
  readonly id: string | undefined;
  /** An event with a piece of it: this, the piece's JSON, and what closes the delta. */
  readonly before: string;
  /** Of a thought without text: what was thought, for the signature. */
  readonly unshown: string[];
  /** Of a thought: the part of its summary that is being told; undefined: it is the thought itself. */
  summary: number | undefined;
  /** Of a call: its arguments so far, as long as they may be those of an empty object; null once they are written. */
  empty: string | null;
  /** Of a call: how it ended, so that its stop is owed; null while it has not. */
  ended: ToolCallEndEvent["status"] | null;
}

/** So much of an answer may wait behind a call, in characters of its calls and texts; beyond that the call is closed. */
const mostHeld = 4 * 1024 * 1024;

/**
 * Writes an answer as the events of a message: a small state machine over prepared text. Blocks stand strictly one after another.
 *
 * A call's `content_block_stop` waits for the finish: clients (Claude Code) run a tool as soon as its block is closed, even if an error
 * follows, and would run it again when they ask anew. What comes behind a call waits with it. So no call of an answer that fails is ever
 * closed, nor is one that the limit of tokens has cut (recording of 2025-06). Choices but the first, deltas after the finish, and events
 * after the end write nothing.
 */
export class MessageStreamWriter implements StreamWriter {
  readonly #context: MessageContext;
  #source: SourceIdentity | undefined;
  #usage: Usage | undefined;
  /** Characters that the model has written, for an estimate of its tokens. */
  #characters = 0;
  #native = noNativeMembers;
  #begun = false;
  #blocks = 0;
  #block: Block | null = null;
  /** The part of the answer that the source has opened, while nothing of it is written. */
  #part: PartStartEvent | null = null;
  #refused = false;
  /** What came behind a call, until the finish shows that the answer is whole. */
  #held: (ChoiceEvent | ExtraEvent)[] = [];
  #heldCharacters = 0;
  #finish: FinishEvent | null = null;
  #ended = false;

  constructor(context: MessageContext) {
    this.#context = context;
  }

  write(events: readonly GenerationEvent[]): string {
    let text = "";
    for (const event of events) text += this.#event(event);
    return text;
  }

  open(): string {
    return this.#begun || this.#ended ? "" : this.#messageStart();
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
        if (event.choice === 0) this.#characters += charactersOf(event);
        break;
      case "end":
        return (event.end.kind === "done" ? this.#release() : "") + this.#end(event.end);
      case "finish":
        return this.#release() + this.#tell(event);
      case "prompt":
      case "progress":
      case "tokens":
        return "";
    }
    if (this.#held.length === 0 && !this.#mayFail()) return this.#tell(event);
    this.#held.push(event);
    this.#heldCharacters += charactersOf(event);
    return this.#heldCharacters > mostHeld ? this.#release() : "";
  }

  /** A call is whole, and what comes next would close it. */
  #mayFail(): boolean {
    return this.#block?.kind === "call" && this.#block.ended === "succeeded" && this.#heldCharacters <= mostHeld;
  }

  #release(): string {
    let text = "";
    for (const event of this.#held.splice(0)) text += this.#tell(event);
    return text;
  }

  #tell(event: ChoiceEvent | ExtraEvent): string {
    if (event.type === "extra") return this.#extra(event);
    return event.choice === 0 && this.#finish === null ? this.#choiceEvent(event) : "";
  }

  #choiceEvent(event: ChoiceEvent): string {
    switch (event.type) {
      case "start":
        this.#source ??= event.source;
        return "";
      case "text-delta":
        return this.#text(event.text, "text");
      case "reasoning-delta":
        return this.#thought(event);
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
      case "markup":
      case "tokens":
        return "";
      case "finish":
        return this.#finished(event);
    }
  }

  #text(text: string, kind: "text" | "refusal"): string {
    if (text === "") return "";
    const block = this.#block;
    if (block?.kind === kind) return this.#delta(block, jsonString(text));
    return this.#openText('{"type":"text","text":""}', kind) + this.#text(text, kind);
  }

  #openText(json: string, kind: "text" | "refusal" = "text"): string {
    return this.#open(kind, json, '"delta":{"type":"text_delta","text":');
  }

  #thought({ text, summary }: ReasoningDeltaEvent): string {
    const { thoughts } = this.#context.asked;
    if (text === "") return "";
    if (thoughts === "hidden") return this.#close();
    const opening = this.#block?.kind === "thinking" ? "" : this.#openThinking(summary);
    const block = this.#block;
    // A source that tells a thought and its summary: what it tells first is shown.
    if (block === null || (block.summary === undefined) !== (summary === undefined)) return opening;
    const piece = block.summary === summary ? text : `\n\n${text}`;
    block.summary = summary;
    if (thoughts === "shown") return opening + this.#delta(block, jsonString(piece));
    block.unshown.push(piece);
    return opening;
  }

  #openThinking(summary?: number): string {
    const json = '{"type":"thinking","thinking":"","signature":""}';
    const text = this.#open("thinking", json, '"delta":{"type":"thinking_delta","thinking":');
    if (this.#block) this.#block.summary = summary;
    return text;
  }

  #partStart(event: PartStartEvent): string {
    const text = this.#close();
    this.#part = event;
    return text;
  }

  /** A thought's end may tell what the thought did not: a signature, or all that there is to it. */
  #partEnd({ signature, encrypted }: PartEndEvent): string {
    const part = this.#part;
    if (this.#block !== null || part?.kind !== "reasoning" || this.#context.asked.thoughts === "hidden")
      return this.#close(signature, encrypted);
    if (encrypted !== undefined)
      return this.#redacted(part.id === undefined ? encrypted : sealThought({ encrypted, id: part.id }));
    return signature === undefined ? this.#close() : this.#openThinking() + this.#close(signature);
  }

  #redacted(data: string): string {
    return this.#whole({ type: "redacted_thinking", data });
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
    const id = callId(event.id, this.#context);
    const json = `{"type":"tool_use","id":"${id}","name":${jsonString(event.name)},"input":{},"caller":{"type":"direct"}}`;
    const opening = this.#open("call", json, '"delta":{"type":"input_json_delta","partial_json":');
    // The first piece of every recorded call is empty.
    return this.#block ? opening + this.#delta(this.#block, '""') : opening;
  }

  #callDelta({ arguments: text }: ToolCallDeltaEvent): string {
    const block = this.#block;
    if (text === "" || block?.kind !== "call") return "";
    if (block.empty === null) return this.#delta(block, jsonString(text));
    const begun = block.empty + text;
    // An object without members is told by the empty piece alone.
    block.empty = /^\s*(\{\s*\}?\s*)?$/.test(begun) ? begun : null;
    return block.empty === null ? this.#delta(block, jsonString(begun)) : "";
  }

  #callEnd({ status }: ToolCallEndEvent): string {
    const block = this.#block;
    if (block?.kind !== "call") return "";
    block.ended = status;
    if (status === "succeeded" || block.empty === null || block.empty === "") return "";
    const { empty } = block;
    block.empty = null;
    return this.#delta(block, jsonString(empty));
  }

  #finished(event: FinishEvent): string {
    this.#finish = event;
    // Some sources end a call that the limit has cut.
    if (event.reason === "length" && this.#block?.ended === "failed") this.#block = null;
    return this.#close();
  }

  #extra(event: ExtraEvent): string {
    this.#native = withNativeMembers(this.#native, event);
    if (event.place !== "item" || event.dialect !== "messages" || (event.choice ?? 0) !== 0 || this.#finish) return "";
    const start = this.#close() + (this.#begun ? "" : this.#messageStart());
    const index = this.#blocks++;
    const [first, ...others] = itemEvents(event.value, index).map(([type, members]) => this.#eventText(type, members));
    return `${start}${first ?? ""}${index === 0 ? pingText : ""}${others.join("")}`;
  }

  /** A block that is told at once. */
  #whole(block: Readonly<Record<string, unknown>>): string {
    return this.#extra({ type: "extra", choice: 0, place: "item", dialect: "messages", value: block });
  }

  /** Begins a block, and ends the one before it. `delta`: how its deltas begin. */
  #open(kind: Block["kind"], json: string, delta: string): string {
    const id = this.#part?.id;
    const start = this.#close() + (this.#begun ? "" : this.#messageStart());
    const index = this.#blocks++;
    this.#block = {
      kind,
      index,
      id,
      before: `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},${delta}`,
      unshown: [],
      summary: undefined,
      empty: "",
      ended: null,
    };
    return (
      start +
      this.#eventText("content_block_start", `"index":${index},"content_block":${json}`) +
      (index === 0 ? pingText : "")
    );
  }

  /** Ends the block that is open. One that is a call ends here only if it is complete. */
  #close(signature?: string, encrypted?: string): string {
    const block = this.#block;
    this.#part = null;
    this.#block = null;
    if (block === null || (block.kind === "call" && block.ended === null)) return "";
    let text = "";
    if (block.kind === "thinking") {
      const seal = signature ?? ownSignature(block.unshown.join(""), encrypted, block.id);
      text = this.#eventText(
        "content_block_delta",
        `"index":${block.index},"delta":${JSON.stringify({ type: "signature_delta", signature: seal })}`,
      );
    }
    return text + this.#eventText("content_block_stop", `"index":${block.index}`);
  }

  #delta(block: Block, json: string): string {
    const { profile, random } = this.#context;
    return `${block.before}${json}}${padding(profile, random)}}\n\n`;
  }

  #messageStart(): string {
    this.#begun = true;
    const message = {
      ...messageHead(this.#context, this.#source),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: messageUsage(this.#knownUsage(), this.#native.usage, this.#context.settings),
      ...this.#native.message,
    };
    return this.#eventText("message_start", `"message":${JSON.stringify(inWireOrder(messageSchema, message))}`);
  }

  #knownUsage(): Usage | undefined {
    return this.#usage ?? estimatedUsage(this.#context.asked, this.#characters);
  }

  #end(end: GenerationEnd): string {
    this.#ended = true;
    if (end.kind === "client-gone") return "";
    if (end.kind !== "done") {
      const { profile, random, asked } = this.#context;
      const json = JSON.stringify(errorObject(end.failure, asked.requestId));
      return eventText("error", json.slice(0, -1), padding(profile, random));
    }
    const { container, context_management: managed } = this.#native.message;
    const start = this.#begun ? "" : this.#messageStart();
    const ending = messageEnd(this.#finish, this.#refused, this.#native);
    const delta = { ...ending, ...(container !== undefined && { container }) };
    const members = `"delta":${JSON.stringify(delta)},"usage":${JSON.stringify(finalUsage(this.#knownUsage(), this.#native.usage))}`;
    const management = managed === undefined ? "" : `,"context_management":${JSON.stringify(managed)}`;
    const last = this.#eventText("message_delta", members + management);
    return start + this.#close() + last + this.#eventText("message_stop", "");
  }

  /** `members`: what follows the type, without a comma. */
  #eventText(type: string, members: string): string {
    const { profile, random } = this.#context;
    return eventText(type, `{"type":"${type}"${members === "" ? "" : ","}${members}`, padding(profile, random));
  }
}

function charactersOf(event: ChoiceEvent | ExtraEvent): number {
  if (event.type === "tool-call-delta") return event.arguments.length;
  return "text" in event ? event.text.length : 1;
}
