import type { GenerationEvent, StartEvent } from "../../core/events.ts";
import { ChoicesReader } from "../tolerant/choices-reader.ts";
import type { ChoiceKind, ChoicesReaderOptions } from "../tolerant/choices-reader.ts";
import type { ChoiceState } from "../tolerant/answer-choices.ts";
import { CallAssembler } from "../tolerant/call-assembler.ts";
import type { Hole } from "../tolerant/known-chunks.ts";
import { readLogprobs } from "../tolerant/read-logprobs.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { RepairLog } from "../tolerant/repairs.ts";

interface ChatChoice extends ChoiceState {
  readonly calls: CallAssembler;
  roleSeen: boolean;
  legacyCall: boolean;
}

type ChatReader = ChoicesReader<ChatChoice>;

const chatChoices: ChoiceKind<ChatChoice> = {
  chunkObject: "chat.completion.chunk",
  bodyObject: "chat.completion",
  create: (choice, { options, repairs }) => ({
    choice,
    started: false,
    finish: null,
    stop: undefined,
    finished: false,
    calls: new CallAssembler(choice, options.newCallId, repairs),
    roleSeen: false,
    legacyCall: false,
  }),
  read: readChatChoice,
  holePath: chatHole,
  callsOf: ({ calls }) => calls,
  isLegacyCall: ({ legacyCall }) => legacyCall,
};

/** Reads a chat answer of any server that is compatible with OpenAI's API into generation events. */
export function chatReader(options: ChoicesReaderOptions): ChatReader {
  return new ChoicesReader(chatChoices, options);
}

function readChatChoice(raw: JsonObject, state: ChatChoice, reader: ChatReader, out: GenerationEvent[]): boolean {
  // A whole answer has a message, a chunk has a delta; the rest is the same. Some servers send `text` in chat.
  const delta = [raw["delta"], raw["message"]].find(isObject) ?? { content: raw["text"] };
  const hasRole = nonEmpty(delta["role"]) !== undefined;
  if (hasRole && state.roleSeen) reader.repairs.note("role-again");
  else if (hasRole && state.started) reader.repairs.note("late-role");
  if (!state.started) openChoice(raw, delta, state, hasRole, reader, out);
  state.roleSeen ||= hasRole;

  const before = out.length;
  const content = readChatContent(delta, reader.repairs);
  const logprobs = readLogprobs(raw["logprobs"], content.text, reader.repairs);
  const { choice } = state;
  if (content.reasoning !== "") {
    reader.start(state, out);
    out.push({ type: "reasoning-delta", choice, text: content.reasoning });
  }
  const textLogprobs = logprobs?.text ?? [];
  if (content.text !== "" || textLogprobs.length > 0) {
    reader.start(state, out);
    out.push({
      type: "text-delta",
      choice,
      text: content.text,
      ...(textLogprobs.length > 0 && { logprobs: textLogprobs }),
    });
  }
  if (content.refusal !== "") {
    const refusalLogprobs = logprobs?.refusal ?? [];
    reader.start(state, out);
    out.push({
      type: "refusal-delta",
      choice,
      text: content.refusal,
      ...(refusalLogprobs.length > 0 && { logprobs: refusalLogprobs }),
    });
  }
  readCalls(delta, state, reader, out);
  const count = out.slice(before).filter((event) => event.type !== "start").length;
  if (count > 1 && raw["message"] === undefined && kindsOf(out, before) > 1) reader.repairs.note("mixed-delta");
  if (count === 0 && !hasRole && raw["finish_reason"] === null && !hasOther(delta)) reader.repairs.note("empty-delta");
  return count > 0;
}

function chatHole(raw: JsonObject, event: GenerationEvent): Hole | null {
  const delta = raw["delta"];
  if (!isObject(delta) || raw["logprobs"]) return null;
  if (event.type === "text-delta" && delta["content"] === event.text)
    return { path: ["delta", "content"], kind: "text" };
  if (event.type === "reasoning-delta") {
    if (Object.values(delta).filter((value) => value === event.text).length > 1) return null;
    const name = ["reasoning_content", "reasoning"].find((name) => delta[name] === event.text);
    return name === undefined ? null : { path: ["delta", name], kind: "reasoning" };
  }
  if (event.type === "tool-call-delta") {
    const list = delta["tool_calls"];
    const fragment: unknown = Array.isArray(list) && list.length === 1 ? list[0] : undefined;
    if (!isObject(fragment) || nonEmpty(fragment["id"])) return null;
    const inner = fragment["function"];
    if (!isObject(inner) || nonEmpty(inner["name"]) || inner["arguments"] !== event.arguments) return null;
    return { path: ["delta", "tool_calls", 0, "function", "arguments"], kind: "arguments" };
  }
  return null;
}

/** Reads the first delta of a choice: emits its start if the delta has a role, with what the delta announces. */
function openChoice(
  raw: JsonObject,
  delta: JsonObject,
  state: ChatChoice,
  hasRole: boolean,
  reader: ChatReader,
  out: GenerationEvent[],
): void {
  const isStream = raw["message"] === undefined;
  if (!hasRole) {
    if (isStream && Object.keys(delta).length > 0) reader.repairs.note("no-role");
    return;
  }
  reader.start(state, out, isStream && reader.madeByOpenAi ? announcement(delta) : undefined);
}

function readCalls(delta: JsonObject, state: ChatChoice, reader: ChatReader, out: GenerationEvent[]): void {
  const calls = delta["tool_calls"];
  if ((Array.isArray(calls) && calls.length > 0) || isObject(calls)) {
    reader.start(state, out);
    if (!Array.isArray(calls)) reader.repairs.note("call-index");
    state.calls.add(calls, out);
  }
  const legacy = delta["function_call"];
  if (isObject(legacy) && (nonEmpty(legacy["name"]) || legacy["arguments"] !== undefined)) {
    reader.start(state, out);
    if (!state.legacyCall && reader.options.legacyFunctions !== true) reader.repairs.note("legacy-call");
    state.legacyCall = true;
    // The legacy form has one call and no id. Index 0 makes all its deltas the same call.
    state.calls.add([{ index: 0, type: "function", function: legacy }], out);
  }
}

/** Returns what OpenAI's first delta announces (recordings of 2024-09 to 2026-08 without a counterexample). */
function announcement(delta: JsonObject): StartEvent["announced"] {
  if (Array.isArray(delta["tool_calls"])) return "tool-call";
  if (delta["content"] === null && typeof delta["refusal"] === "string") return "refusal";
  return delta["content"] === null && !("refusal" in delta) ? "tool-calls" : undefined;
}

function kindsOf(events: readonly GenerationEvent[], from: number): number {
  const kinds = new Set(events.slice(from).map(({ type }) => (type.startsWith("tool-call") ? "call" : type)));
  kinds.delete("start");
  return kinds.size;
}

/** Returns whether a delta has other members than `content` and `refusal`: audio, or those of the source. */
function hasOther(delta: JsonObject): boolean {
  return Object.entries(delta).some(
    ([name, value]) => value !== null && value !== "" && name !== "content" && name !== "refusal",
  );
}

/** The text, reasoning and refusal of a delta or message; "" if it has none. */
interface ReadContent {
  text: string;
  reasoning: string;
  refusal: string;
}

/**
 * Reads `content` in its shapes (a string, parts, null, a number) and reasoning under its names: `reasoning_content` (DeepSeek, vLLM,
 * SGLang, llama.cpp), `reasoning` (OpenRouter, Groq, Ollama), `reasoning_text` (Copilot), `thinking`, `reasoning_details[]`
 * (OpenRouter), and parts of type "thinking" (Mistral). If a source sends the same text under two names, it is read once.
 */
export function readChatContent(delta: JsonObject, repairs: RepairLog): ReadContent {
  const content = delta["content"];
  const found: ReadContent = { text: "", reasoning: reasoningOf(delta, repairs), refusal: "" };
  if (typeof content === "string") found.text = content;
  else if (content !== null && content !== undefined) {
    repairs.note("content");
    if (Array.isArray(content)) for (const part of content) addPart(part, found);
    else if (isObject(content)) addPart(content, found);
    else found.text = String(content);
  }
  const refusal = delta["refusal"];
  if (typeof refusal === "string") found.refusal += refusal;
  return found;
}

function reasoningOf(delta: JsonObject, repairs: RepairLog): string {
  const own = delta["reasoning_content"];
  if (typeof own === "string" && own !== "") return own;
  for (const name of ["reasoning", "reasoning_text", "thinking", "reasoning_content", "reasoning_details"]) {
    const text = plainText(delta[name]);
    if (text === "") continue;
    repairs.note("reasoning-field");
    return text;
  }
  return "";
}

/** Adds one part of a content list. */
function addPart(part: unknown, found: ReadContent): void {
  if (!isObject(part)) {
    found.text += plainText(part);
    return;
  }
  const type = part["type"];
  if (type === "thinking" || type === "reasoning") found.reasoning += plainText(part);
  else if (type === "refusal") found.refusal += plainText(part["refusal"]);
  else found.text += plainText(part);
}

/** Returns the text of a string, a number, an object with text under a common name, or a list of these. */
function plainText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.map(plainText).join("");
  if (!isObject(value)) return "";
  for (const name of ["text", "content", "thinking", "reasoning", "summary"]) {
    const text = plainText(value[name]);
    if (text !== "") return text;
  }
  return "";
}
