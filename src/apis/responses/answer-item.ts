import type { Annotation, GenerationEvent, TokenLogprob } from "../../core/events.ts";
import { qualifiedName } from "../../core/qualified-name.ts";
import { JsonProgress } from "../tolerant/json-progress.ts";
import { chatTokens } from "../tolerant/read-logprobs.ts";
import type { RepairLog } from "../tolerant/repairs.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/** What items of an answer are to the waist; "native": only Responses has a place for it. */
export type ItemKind = "message" | "reasoning" | "function" | "custom" | "native";

export function kindOf(type: unknown): ItemKind {
  switch (type) {
    case "message":
    case "reasoning":
      return type;
    case "function_call":
      return "function";
    case "custom_tool_call":
      return "custom";
    default:
      return "native";
  }
}

/** What an item needs of the answer that it is part of. */
export interface ItemSurroundings {
  readonly repairs: RepairLog;
  readonly newCallId: () => string;
  /** The number of the next call. */
  readonly nextCall: () => number;
  /** The answer is one body: nothing comes in pieces. */
  readonly isWhole: boolean;
}

/**
 * One item of an answer, which tells what it is made of as events. While an item before it is not complete, its events wait. Whatever a
 * source sends twice (as deltas, as a whole part, as a whole item) is told once; what it never sent as deltas is told when it comes whole.
 */
export class AnswerItem {
  readonly kind: ItemKind;
  readonly id: string | undefined;
  /** All is told but what may stand in the whole item. */
  done = false;
  /** Nothing more is told. */
  closed = false;
  readonly #around: ItemSurroundings;
  #out: GenerationEvent[] = [];
  /** By `content_index`, or `summary_index`, and kind. */
  readonly #told = new Map<string, TextTold>();
  #openPart: string | null = null;
  #begun = false;
  #phase: string | undefined;
  #call: { index: number; text: string; name: string } | null = null;
  /** Follows a call's arguments, to know when they are complete. */
  readonly #progress = new JsonProgress();
  /** Input that came before the call's name. */
  #waiting = "";
  #encrypted: string | undefined;
  #native: JsonObject | null = null;
  /** The source says that it was cut. */
  #isCut = false;

  constructor(kind: ItemKind, id: string | undefined, around: ItemSurroundings) {
    this.kind = kind;
    this.id = id;
    this.#around = around;
  }

  /** What there is to tell. */
  take(): GenerationEvent[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  /** Whether the item may be taken for complete though nothing says so: another one has begun. */
  get looksComplete(): boolean {
    if (this.kind === "message" || this.kind === "reasoning") return true;
    return this.kind === "function" && this.#progress.complete;
  }

  /** The item as it was announced. */
  added(raw: JsonObject): void {
    this.#phase = text(raw["phase"]);
    if (this.kind === "reasoning") this.#beginThought();
    if (this.kind === "function" || this.kind === "custom") this.#beginCall(raw);
  }

  partAdded(index: number, part: JsonObject): void {
    if (this.kind !== "message") return;
    this.#beginPart(part["type"] === "refusal" ? "refusal" : "text", index);
  }

  text(kind: "text" | "refusal", index: number, piece: string, logprobs: unknown): void {
    const told = this.#beginPart(kind, index);
    const tokens = Array.isArray(logprobs) ? chatTokens(logprobs) : [];
    told.text += piece;
    if (kind === "refusal") this.#out.push({ type: "refusal-delta", choice: 0, text: piece });
    else this.#pushText(piece, tokens);
  }

  /** A whole part's text: what is missing is told. */
  wholeText(kind: "text" | "refusal", index: number, whole: string, logprobs: unknown): void {
    const told = this.#beginPart(kind, index);
    const rest = this.#rest(told, whole);
    if (rest !== "") this.text(kind, index, rest, told.text === "" ? logprobs : undefined);
  }

  annotation(index: number, raw: JsonObject): void {
    const told = this.#beginPart("text", index);
    told.annotations++;
    this.#out.push({ type: "annotation", choice: 0, annotation: annotationOf(raw) });
  }

  partDone(index: number, part: JsonObject): void {
    if (this.kind === "reasoning") {
      const whole = text(part["text"]);
      if (whole !== undefined) this.wholeThought(index, whole);
      return;
    }
    if (this.kind !== "message") return;
    this.#wholePart(index, part);
    this.#endPart();
  }

  thought(index: number, piece: string): void {
    this.#beginThought();
    this.#toldOf(`thought ${index}`).text += piece;
    this.#out.push({ type: "reasoning-delta", choice: 0, text: piece });
  }

  wholeThought(index: number, whole: string): void {
    const rest = this.#rest(this.#toldOf(`thought ${index}`), whole);
    if (rest !== "") this.thought(index, rest);
  }

  summary(index: number, piece: string): void {
    this.#beginThought();
    this.#toldOf(`summary ${index}`).text += piece;
    this.#out.push({ type: "reasoning-delta", choice: 0, text: piece, summary: index });
  }

  wholeSummary(index: number, whole: string): void {
    const rest = this.#rest(this.#toldOf(`summary ${index}`), whole);
    if (rest !== "") this.summary(index, rest);
  }

  input(piece: string): void {
    if (this.#call === null) {
      this.#waiting += piece;
      return;
    }
    this.#call.text += piece;
    if (this.kind === "function") this.#progress.push(piece);
    this.#out.push({ type: "tool-call-delta", choice: 0, index: this.#call.index, arguments: piece });
  }

  wholeInput(whole: string): void {
    const told = { text: this.#call?.text ?? this.#waiting, annotations: 0 };
    const rest = this.#rest(told, whole);
    if (rest !== "") this.input(rest);
  }

  /** The whole item: what is missing is told, and it ends. */
  whole(raw: JsonObject): void {
    this.done = true;
    this.#isCut = raw["status"] === "incomplete";
    this.#phase ??= text(raw["phase"]);
    switch (this.kind) {
      case "message": {
        const content = raw["content"];
        const parts = typeof content === "string" ? [{ type: "output_text", text: content }] : content;
        for (const [index, part] of list(parts).entries()) {
          this.#wholePart(index, part);
        }
        return;
      }
      case "reasoning":
        this.#beginThought();
        for (const [index, part] of list(raw["content"]).entries()) this.wholeThought(index, text(part["text"]) ?? "");
        for (const [index, part] of list(raw["summary"]).entries()) this.wholeSummary(index, text(part["text"]) ?? "");
        this.#encrypted = text(raw["encrypted_content"]) ?? this.#encrypted;
        return;
      case "function":
      case "custom": {
        this.#beginCall(raw);
        const input = raw[this.kind === "custom" ? "input" : "arguments"];
        if (typeof input === "string") this.wholeInput(input);
        else if (isObject(input)) this.wholeInput(JSON.stringify(input));
        return;
      }
      case "native":
        this.#native = raw;
    }
  }

  /** Ends the item with what it has. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (!this.done) this.#around.repairs.note("item-done");
    switch (this.kind) {
      case "message":
        return this.#endPart();
      case "reasoning":
        if (this.#begun) {
          const sealed = this.#encrypted !== undefined && { encrypted: this.#encrypted };
          this.#out.push({ type: "part-end", choice: 0, ...sealed });
        }
        return;
      case "function":
      case "custom":
        return this.#endCall();
      case "native":
        if (this.#native !== null) {
          const value = this.#native;
          this.#out.push({ type: "extra", choice: 0, place: "item", dialect: "responses", value });
        }
    }
  }

  #wholePart(index: number, part: JsonObject): void {
    const refusal = text(part["refusal"]);
    if (part["type"] === "refusal") return this.wholeText("refusal", index, refusal ?? "", undefined);
    this.wholeText("text", index, text(part["text"]) ?? "", part["logprobs"]);
    const told = this.#toldOf(`text ${index}`);
    for (const annotation of list(part["annotations"]).slice(told.annotations)) this.annotation(index, annotation);
  }

  #pushText(piece: string, tokens: readonly TokenLogprob[]): void {
    const event = { type: "text-delta", choice: 0, text: piece } as const;
    this.#out.push(tokens.length > 0 ? { ...event, logprobs: tokens } : event);
  }

  /** Opens a part of a message, unless it is open or was. */
  #beginPart(kind: "text" | "refusal", index: number): TextTold {
    const key = `${kind} ${index}`;
    const isNew = !this.#told.has(key);
    const told = this.#toldOf(key);
    if (isNew) {
      this.#endPart();
      this.#openPart = key;
      const phase = this.#phase !== undefined && { phase: this.#phase };
      this.#out.push({ type: "part-start", choice: 0, kind, ...(this.id !== undefined && { id: this.id }), ...phase });
    }
    return told;
  }

  #endPart(): void {
    if (this.#openPart === null) return;
    this.#openPart = null;
    this.#out.push({ type: "part-end", choice: 0 });
  }

  #beginThought(): void {
    if (this.#begun) return;
    this.#begun = true;
    const id = this.id !== undefined && { id: this.id };
    this.#out.push({ type: "part-start", choice: 0, kind: "reasoning", ...id });
  }

  /** Begins the call, once its name is known. */
  #beginCall(raw: JsonObject): void {
    const own = text(raw["name"]);
    if (this.#call !== null || own === undefined || own === "") return;
    const namespace = text(raw["namespace"]);
    let id = text(raw["call_id"]) ?? "";
    if (id === "") {
      this.#around.repairs.note("call-id");
      id = this.id ?? this.#around.newCallId();
    }
    const name = namespace === undefined ? own : qualifiedName(namespace, own);
    this.#call = { index: this.#around.nextCall(), text: "", name };
    this.#out.push({
      type: "tool-call-start",
      choice: 0,
      index: this.#call.index,
      id,
      name,
      ...(this.kind === "custom" && { kind: "custom" }),
      ...(namespace !== undefined && { namespace }),
      ...(this.id !== undefined && { itemId: this.id }),
    });
    const waiting = this.#waiting;
    this.#waiting = "";
    if (waiting !== "") this.input(waiting);
  }

  #endCall(): void {
    if (this.#call === null) {
      this.#around.repairs.note("nameless-call");
      if (this.#waiting !== "") this.#pushText(this.#waiting, []);
      return;
    }
    if (this.kind === "function" && this.#call.text.trim() === "") {
      this.#around.repairs.note("no-arguments");
      this.input("{}");
    }
    const { index, text: raw } = this.#call;
    // Half of a text looks like a whole one.
    const succeeded = this.kind === "custom" ? !this.#isCut : holdsObject(raw);
    this.#out.push(
      succeeded
        ? { type: "tool-call-end", choice: 0, index, status: "succeeded" }
        : { type: "tool-call-end", choice: 0, index, status: "failed", raw },
    );
  }

  /** What of a whole text was not told yet. */
  #rest(told: TextTold, whole: string): string {
    if (told.text === whole) return "";
    if (told.text === "" || whole.startsWith(told.text)) {
      if (whole !== "" && !this.#around.isWhole) this.#around.repairs.note("whole-text");
      return whole.slice(told.text.length);
    }
    this.#around.repairs.note("other-text");
    return "";
  }

  #toldOf(key: string): TextTold {
    let told = this.#told.get(key);
    if (!told) this.#told.set(key, (told = { text: "", annotations: 0 }));
    return told;
  }
}

interface TextTold {
  text: string;
  annotations: number;
}

function annotationOf(raw: JsonObject): Annotation {
  const url = text(raw["url"]);
  const title = text(raw["title"]);
  const [start, end] = [raw["start_index"], raw["end_index"]];
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(typeof start === "number" && { start }),
    ...(typeof end === "number" && { end }),
    native: { dialect: "responses", value: raw },
  };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function holdsObject(json: string): boolean {
  try {
    return isObject(JSON.parse(json));
  } catch {
    return false;
  }
}
