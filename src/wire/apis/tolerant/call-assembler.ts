import type { GenerationEvent, ToolCallStartEvent } from "../../core/events.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { callStateOf } from "./call-state.ts";
import type { RepairLog } from "./repairs.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/**
 * Assembles one choice's tool calls from a source's fragments, and emits them as events in their legal order: one call after the other,
 * with indices 0, 1, 2, …
 *
 * No member of a fragment identifies its call reliably: see `#find`. Fragments of a later call wait while an earlier one is incomplete
 * (sources that interleave calls).
 */
export class CallAssembler {
  readonly #choice: number;
  readonly #options: Pick<AnswerReaderOptions, "newCallId" | "source">;
  /** Ids in this choice: OpenAI itself repeats ids across choices. */
  #takenIds: Set<string> | undefined;
  readonly #repairs: RepairLog;
  #calls: Call[] = [];
  /** The latest call with a source's index or id. Absent until there is one: most of many open streams have no calls. */
  #byIndex: Map<number, Call> | undefined;
  #byId: Map<string, Call> | undefined;
  /** The index in `#calls` of the first call that has not ended. */
  #head = 0;
  #started = 0;

  constructor(choice: number, options: Pick<AnswerReaderOptions, "newCallId" | "source">, repairs: RepairLog) {
    this.#choice = choice;
    this.#options = options;
    this.#repairs = repairs;
  }

  /** The number of calls that have begun. */
  get started(): number {
    return this.#started;
  }

  /** Adds the `tool_calls` of a delta or message, of any shape. */
  add(list: unknown, out: GenerationEvent[]): void {
    const fragments = (Array.isArray(list) ? list : [list]).filter(isObject).map(readFragment);
    const touched = new Set<Call>();
    for (const [position, fragment] of fragments.entries()) {
      const call = this.#find(fragment, position, fragments.length, touched);
      touched.add(call);
      this.#extend(call, fragment);
      this.#advance(out);
    }
  }

  /**
   * Appends `text` to the arguments of the latest call, for a chunk that a `ChunkTemplate` has matched. Returns false without changes if
   * only `add` can interpret the fragment.
   */
  continueLatest(text: string, out: GenerationEvent[]): boolean {
    const call = this.#calls[this.#head];
    if (!call || this.#head !== this.#calls.length - 1 || call.number === -1 || call.progress.complete) return false;
    const whole = call.arguments + text;
    if (call.unsent !== "" || mayBeNull(whole)) return false;
    call.arguments = whole;
    call.progress.push(text);
    out.push({ type: "tool-call-delta", choice: this.#choice, index: call.number, arguments: text });
    return true;
  }

  /** Ends all calls at the end of the choice. Calls without a name become text. */
  close(out: GenerationEvent[]): void {
    for (const call of this.#calls) {
      if (call.name !== "") continue;
      this.#repairs.note("nameless-call");
      const text = call.arguments;
      if (text !== "") out.push({ type: "text-delta", choice: this.#choice, text });
    }
    this.#calls = this.#calls.filter((call) => call.name !== "");
    for (const call of this.#calls.slice(this.#head)) {
      this.#emitBegun(call, out);
      this.#end(call, out);
    }
    this.#head = this.#calls.length;
  }

  /**
   * The call that a fragment continues, or a new one.
   *
   * A fragment with its own index belongs to the call with that index, unless it clearly opens another one there (servers that give
   * every call index 0): another name or id, while the known call's arguments are complete. A fragment without index belongs to the
   * call with its id, else it opens a call if it brings a name, else it continues the latest. An id that changes while the arguments
   * are incomplete is noise (servers that make a new id per fragment).
   */
  #find(fragment: Fragment, position: number, siblings: number, touched: ReadonlySet<Call>): Call {
    const { index, id, name } = fragment;
    const byIndex = index === null ? undefined : this.#byIndex?.get(index);
    if (byIndex && beginsAgain(byIndex, fragment)) return this.#open(fragment, byIndex.name);
    if (byIndex) return this.#opensAnother(byIndex, fragment, touched) ? this.#open(fragment) : byIndex;
    if (index !== null) {
      // A bare continuation under an index that no call has: the latest call's, if there is one.
      const latest = this.#calls.at(-1);
      if (id === null && name === null && latest && siblings === 1) {
        this.#repairs.note("call-index");
        return latest;
      }
      return this.#open(fragment);
    }
    this.#repairs.note("call-index");
    const byId = id === null ? undefined : this.#byId?.get(id);
    if (byId) return this.#opensAnother(byId, fragment, touched) ? this.#open(fragment) : byId;
    const latest = siblings > 1 ? this.#calls.at(position - siblings) : this.#calls.at(-1);
    if (name === null) return latest ?? this.#open(fragment);
    return !latest || this.#opensAnother(latest, fragment, touched) ? this.#open(fragment) : latest;
  }

  #opensAnother(call: Call, fragment: Fragment, touched: ReadonlySet<Call>): boolean {
    const { id, name } = fragment;
    if (name === null || call.name === "") return false;
    const otherId = id !== null && call.sourceId !== null && id !== call.sourceId;
    if (name !== call.name) return true;
    if (touched.has(call)) return otherId || call.progress.complete;
    if (!call.progress.complete) return otherId && holdsNothing(call.arguments) && holdsNothing(fragment.arguments);
    return otherId || (!holdsNothing(fragment.arguments) && fragment.arguments !== call.arguments);
  }

  /** `name`: known before the fragment. */
  #open(fragment: Fragment, name = ""): Call {
    const expected = this.#calls.length;
    if (fragment.index !== null && fragment.index !== expected) this.#repairs.note("call-index");
    const call: Call = {
      index: fragment.index,
      sourceId: null,
      id: "",
      name,
      isNamedAgain: false,
      kind: fragment.kind,
      members: undefined,
      number: -1,
      arguments: "",
      unsent: "",
      progress: new JsonProgress(),
    };
    this.#calls.push(call);
    if (call.index !== null) (this.#byIndex ??= new Map()).set(call.index, call);
    if (this.#calls.length - 1 > this.#head) {
      const before = this.#calls[this.#calls.length - 2];
      if (before && before.name !== "" && before.arguments !== "" && !isComplete(before)) {
        this.#repairs.note("interleaved-calls");
      }
    }
    return call;
  }

  #extend(call: Call, fragment: Fragment): void {
    if (fragment.id !== null) {
      if (call.sourceId === null) {
        call.sourceId = fragment.id;
        (this.#byId ??= new Map()).set(fragment.id, call);
      } else if (call.sourceId !== fragment.id) this.#repairs.note("changing-call-id");
    }
    if (fragment.name !== null) {
      if (call.name === "") {
        call.name = fragment.name;
        if (call.arguments !== "") this.#repairs.note("call-name");
      } else {
        this.#repairs.note("call-name");
        call.isNamedAgain ||= call.progress.complete;
      }
    } else if (fragment.emptyName) this.#repairs.note("call-name");
    if (!fragment.hasText) this.#repairs.note("call-arguments");
    for (const [name, value] of fragment.others) (call.members ??= new Map()).set(name, value);
    if (fragment.arguments === "") return;
    if (call.kind === "function") {
      if (call.progress.complete && (fragment.arguments === call.arguments || isNull(fragment.arguments))) {
        this.#repairs.note("repeated-arguments");
        return;
      }
      if (isNull(call.arguments)) {
        // The fragment before held the word in place of no arguments, and the arguments begin here.
        this.#repairs.note("call-arguments");
        call.arguments = call.unsent = "";
      }
    }
    call.arguments += fragment.arguments;
    call.unsent += fragment.arguments;
    call.progress.push(fragment.arguments);
  }

  /** Emits the first open call while it grows, and each further call when the previous ones are complete. */
  #advance(out: GenerationEvent[]): void {
    for (let call = this.#calls[this.#head]; call && call.name !== ""; call = this.#calls[this.#head]) {
      this.#emitBegun(call, out);
      const isLast = this.#head === this.#calls.length - 1;
      if (isLast || !isComplete(call)) return;
      this.#end(call, out);
      this.#head++;
    }
  }

  #emitBegun(call: Call, out: GenerationEvent[]): void {
    if (call.number === -1) {
      call.number = this.#started++;
      call.id = this.#idFor(call);
      const { id, name, kind } = call;
      out.push({
        type: "tool-call-start",
        choice: this.#choice,
        index: call.number,
        id,
        name,
        ...(kind === "custom" && { kind }),
        ...this.#takeMembers(call),
      });
    }
    if (call.kind === "function" && mayBeNull(call.arguments)) return;
    this.#send(call, out);
  }

  /** The members that the source adds to a call: those that it demands back, and others. */
  #takeMembers(call: Call): Pick<ToolCallStartEvent, "native" | "state"> {
    const { members } = call;
    if (!members) return {};
    call.members = undefined;
    const state = callStateOf(Object.fromEntries(members), this.#options.source);
    const others = [...members].filter(([name]) => !state || !Object.hasOwn(state.value, name));
    return {
      ...(others.length > 0 && { native: { dialect: "chat", value: Object.fromEntries(others) } }),
      ...(state && { state }),
    };
  }

  #send(call: Call, out: GenerationEvent[]): void {
    if (call.unsent === "") return;
    out.push({ type: "tool-call-delta", choice: this.#choice, index: call.number, arguments: call.unsent });
    call.unsent = "";
  }

  #end(call: Call, out: GenerationEvent[]): void {
    const { number: index } = call;
    if (call.kind === "function") {
      if (isNull(call.arguments)) {
        this.#repairs.note("call-arguments");
        call.arguments = call.unsent = "";
      }
      if (call.arguments.trim() === "") {
        this.#repairs.note("no-arguments");
        call.arguments = call.unsent = "{}";
      }
    }
    this.#send(call, out);
    const succeeded = call.kind === "custom" || holdsObject(call.arguments);
    const status = succeeded
      ? ({ status: "succeeded" } as const)
      : ({ status: "failed", raw: call.arguments } as const);
    out.push({ type: "tool-call-end", choice: this.#choice, index, ...status, ...this.#takeMembers(call) });
  }

  #idFor(call: Call): string {
    const own = call.sourceId;
    const taken = (this.#takenIds ??= new Set());
    if (own !== null && !taken.has(own)) {
      taken.add(own);
      return own;
    }
    this.#repairs.note("call-id");
    return distinctId(this.#options.newCallId, taken);
  }
}

interface Call {
  /** The source's index. */
  readonly index: number | null;
  sourceId: string | null;
  /** The emitted id; "" before `tool-call-start`. */
  id: string;
  /** "" until it is received. */
  name: string;
  /** The name came once more after the arguments were complete: what follows may be another call. */
  isNamedAgain: boolean;
  readonly kind: "function" | "custom";
  /** Members that the source adds to OpenAI's, such as Gemini's `extra_content`, that no event has yet. */
  members: Map<string, unknown> | undefined;
  /** The emitted index; −1 before `tool-call-start`. */
  number: number;
  arguments: string;
  /** The end of `arguments` that has not been emitted. */
  unsent: string;
  readonly progress: JsonProgress;
}

interface Fragment {
  readonly index: number | null;
  readonly id: string | null;
  readonly name: string | null;
  /** The name is present, but empty or null. */
  readonly emptyName: boolean;
  readonly kind: "function" | "custom";
  readonly arguments: string;
  /** False: the arguments are a JSON value instead of a string. */
  readonly hasText: boolean;
  /** The members that are not OpenAI's. */
  readonly others: readonly (readonly [name: string, value: unknown])[];
}

/** OpenAI's members of a call, and those that servers send in place of `function`. */
const callMembers: ReadonlySet<string> = new Set([
  "index",
  "id",
  "type",
  "function",
  "custom",
  "name",
  "arguments",
  "parameters",
  "input",
]);

/**
 * Whether the arguments of a fragment are those of another call, which has neither an id nor an index of its own: the known call is
 * complete, and its name came once more, without arguments.
 */
function beginsAgain(call: Call, { id, name, arguments: text }: Fragment): boolean {
  if (call.kind !== "function" || !call.isNamedAgain || id !== null || name !== null) return false;
  return text.trimStart().startsWith("{") && text !== call.arguments;
}

function readFragment(raw: JsonObject): Fragment {
  const kind = raw["type"] === "custom" || isObject(raw["custom"]) ? "custom" : "function";
  const nested = raw[kind];
  const inner = isObject(nested) ? nested : raw;
  const rawArguments = inner[kind === "custom" ? "input" : "arguments"] ?? inner["parameters"];
  const text = typeof rawArguments === "string" ? rawArguments : argumentsText(rawArguments);
  return {
    index: readIndex(raw["index"]),
    id: nonEmpty(raw["id"]) ?? null,
    name: nonEmpty(inner["name"]) ?? null,
    emptyName: inner["name"] !== undefined,
    kind,
    arguments: text,
    hasText: rawArguments === undefined || typeof rawArguments === "string",
    others: Object.entries(raw).filter(([name, value]) => !callMembers.has(name) && value !== null),
  };
}

function argumentsText(value: unknown): string {
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

/**
 * Whether a function's arguments are `null`, which some servers send for a call without arguments (vLLM #28806). Within arguments, a
 * fragment `null` is ordinary JSON.
 */
function isNull(text: string): boolean {
  return text.length <= maxNullLength && text.trim() === "null";
}

function holdsNothing(text: string): boolean {
  return text === "" || isNull(text);
}

/** Whether `isNull` is true, or may become true with the next fragment: such arguments are held back. */
function mayBeNull(text: string): boolean {
  return text.length <= maxNullLength && /^\s*n(u(l(l\s*)?)?)?$/.test(text);
}

/** In characters. Longer arguments are not examined: that would flatten V8's rope with every fragment. */
const maxNullLength = 16;

function readIndex(raw: unknown): number | null {
  const index = typeof raw === "string" && raw !== "" ? Number(raw) : raw;
  return typeof index === "number" && Number.isInteger(index) && index >= 0 ? index : null;
}

/** A custom tool's input has no end of its own: the next call ends it. */
function isComplete(call: Call): boolean {
  return call.kind === "custom" || call.progress.complete;
}

function holdsObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/**
 * Makes an id that `taken` does not contain, and adds it there. Where `make` returns one that is taken, a number is appended: the function
 * of a caller may always return the same id, so calling it until the id is free may never end.
 */
export function distinctId(make: () => string, taken: Set<string>): string {
  const made = make();
  let id = made;
  for (let number = taken.size + 1; taken.has(id); number++) id = `${made}_${number}`;
  taken.add(id);
  return id;
}

/** Scans streamed JSON text until its outermost object, array or string is closed. Reads each character once. */
export class JsonProgress {
  #depth = 0;
  #inString = false;
  #escaped = false;

  /** The outermost value is closed. Its content may still be malformed. */
  complete = false;

  push(text: string): void {
    for (let i = 0; i < text.length && !this.complete; i++) {
      const code = text.charCodeAt(i);
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (code === backslash) this.#escaped = true;
        else if (code === quote) {
          this.#inString = false;
          this.complete = this.#depth === 0;
        }
      } else if (code === quote) this.#inString = true;
      else if (code === openBrace || code === openBracket) this.#depth++;
      else if (code === closeBrace || code === closeBracket) this.complete = --this.#depth <= 0;
    }
  }
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
