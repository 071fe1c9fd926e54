import type { GenerationEvent, StartEvent } from "../../core/events.ts";
import { ChoicesReader } from "../tolerant/choices-reader.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import type { ChoiceKind } from "../tolerant/choices-reader.ts";
import { type ChoiceState, newChoice } from "../tolerant/answer-choices.ts";
import { CallAssembler } from "../tolerant/call-assembler.ts";
import type { Hole } from "../tolerant/known-chunks.ts";
import { readLogprobs, tokensOfText } from "../tolerant/read-logprobs.ts";
import { isObject, nonEmpty } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { RepairLog } from "../tolerant/repairs.ts";
import { DetailsMerger, type ThinkingBlock, thinkingBlocks } from "./reasoning-details.ts";

interface ChatChoice extends ChoiceState {
  readonly calls: CallAssembler;
  roleSeen: boolean;
  legacyCall: boolean;
  /** The last content was reasoning, so that a signature belongs to it. */
  isReasoning: boolean;
  /** Reasoning has come under a name of its own, not only in `reasoning_details`. */
  namesReasoning: boolean;
  /** There is a text, a refusal or a call. */
  hasContent: boolean;
  /** `reasoning_details` that no event has yet; absent until there are some. */
  details: DetailsMerger | undefined;
}

type ChatReader = ChoicesReader<ChatChoice>;

const chatChoices: ChoiceKind<ChatChoice> = {
  chunkObject: "chat.completion.chunk",
  bodyObject: "chat.completion",
  create: (choice, { options, repairs }) => ({
    ...newChoice(choice),
    calls: new CallAssembler(choice, options, repairs),
    roleSeen: false,
    legacyCall: false,
    isReasoning: false,
    namesReasoning: false,
    hasContent: false,
    details: undefined,
  }),
  begins: ({ delta }) => isObject(delta) && nonEmpty(delta["role"]) !== undefined,
  read: readChatChoice,
  holePath: chatHole,
  callsOf: ({ calls }) => calls,
  isLegacyCall: ({ legacyCall }) => legacyCall,
  endContent: (state, { options: { source } }, out) => pushDetails(state, source, out),
};

/** Reads a chat answer of any server that is compatible with OpenAI's API into generation events. */
export function chatReader(options: AnswerReaderOptions): ChatReader {
  return new ChoicesReader(chatChoices, options);
}

/** Whether the logprobs may have other tokens than those of the text: in a stream, those of a chunk that has something else. */
function hasOtherTokens(raw: JsonObject, delta: JsonObject, { reasoning }: { readonly reasoning: string }): boolean {
  if (raw["message"] !== undefined || reasoning !== "") return true;
  return (delta["content"] ?? undefined) === undefined || Array.isArray(delta["tool_calls"]);
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
  // The details of reasoning that has come under a name of its own repeat it.
  const isRepeated = state.namesReasoning && delta["reasoning_details"] !== undefined;
  const content = readChatContent(isRepeated ? { ...delta, reasoning_details: undefined } : delta, reader.repairs);
  if (content.reasoning !== "") state.namesReasoning ||= reasoningNames.some((name) => plainText(delta[name]) !== "");
  const logprobs = readLogprobs(raw["logprobs"], content.text, reader.repairs);
  const { choice } = state;
  const blocks = thinkingBlocks(delta, reader.options.source);
  const isSigned = blocks.some(({ state }) => state !== undefined);
  if (isSigned && raw["message"] !== undefined) {
    reader.start(state, out);
    for (const block of blocks) pushReasoning(block, choice, out);
  } else if (content.reasoning !== "") {
    reader.start(state, out);
    out.push({ type: "reasoning-delta", choice, text: content.reasoning });
    state.isReasoning = true;
  }
  if (isSigned && raw["message"] === undefined) pushSignatures(blocks, state, reader, out);
  const hasText = content.text !== "" || content.refusal !== "";
  readDetails(raw, delta, { state, hasText }, reader, out);
  const textLogprobs = tokensOfText(
    logprobs?.text ?? [],
    content.text,
    hasOtherTokens(raw, delta, content),
    reader.repairs,
  );
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
  readCalls(raw, delta, state, reader, out);
  if (
    out.slice(before).some(({ type }) => type === "text-delta" || type === "refusal-delta" || type.startsWith("tool-"))
  ) {
    state.isReasoning = false;
    state.hasContent = true;
  }
  const count = out.slice(before).filter((event) => event.type !== "start").length;
  if (count > 1 && raw["message"] === undefined && kindsOf(out, before) > 1) reader.repairs.note("mixed-delta");
  if (count === 0 && !hasRole && raw["finish_reason"] === null && !hasOther(delta)) reader.repairs.note("empty-delta");
  return count > 0;
}

function pushReasoning({ text, state }: ThinkingBlock, choice: number, out: GenerationEvent[]): void {
  out.push({ type: "part-start", choice, kind: "reasoning" });
  if (text !== "") out.push({ type: "reasoning-delta", choice, text });
  out.push({ type: "part-end", choice, ...(state && { state }) });
}

/** Ends the reasoning of a stream with its signature, and adds encrypted reasoning. A signature whose reasoning is over is of no use. */
function pushSignatures(
  blocks: readonly ThinkingBlock[],
  state: ChatChoice,
  reader: ChatReader,
  out: GenerationEvent[],
): void {
  const { choice } = state;
  for (const block of blocks) {
    if (block.state?.kind === "redacted") {
      reader.start(state, out);
      pushReasoning(block, choice, out);
    } else if (block.state && state.isReasoning) out.push({ type: "part-end", choice, state: block.state });
    else continue;
    state.isReasoning = false;
  }
}

/**
 * Reads the `reasoning_details` of a delta or message. What has arrived ends the reasoning before the first text or call; further entries
 * end later reasoning, or come at the end of the choice.
 */
function readDetails(
  raw: JsonObject,
  delta: JsonObject,
  { state, hasText }: { readonly state: ChatChoice; readonly hasText: boolean },
  reader: ChatReader,
  out: GenerationEvent[],
): void {
  const list = delta["reasoning_details"];
  if (Array.isArray(list) && list.length > 0) {
    reader.start(state, out);
    state.details ??= new DetailsMerger();
    if (raw["message"] === undefined) state.details.add(list);
    else state.details.addWhole(list);
  }
  // A part within a call would not be in the legal order.
  if (!state.details?.hasSome || state.calls.started > 0) return;
  const calls = delta["tool_calls"] ?? delta["function_call"];
  const hasCall = isObject(calls) || (Array.isArray(calls) && calls.length > 0);
  if (hasCall || (hasText && (state.isReasoning || !state.hasContent))) pushDetails(state, reader.options.source, out);
}

/** Ends the open reasoning with the details that have arrived, or makes a part of them. */
function pushDetails(state: ChatChoice, source: string | undefined, out: GenerationEvent[]): void {
  const value = state.details?.take();
  if (!value) return;
  const { choice, isReasoning } = state;
  if (!isReasoning) out.push({ type: "part-start", choice, kind: "reasoning" });
  out.push({ type: "part-end", choice, state: { kind: "details", value, ...(source !== undefined && { source }) } });
  state.isReasoning = false;
}

function chatHole(raw: JsonObject, event: GenerationEvent): Hole | null {
  const delta = raw["delta"];
  if (!isObject(delta) || raw["logprobs"]) return null;
  // They repeat the text, or have more than that.
  if (["reasoning_details", "thinking_blocks"].some((name) => Array.isArray(delta[name]) && delta[name].length > 0))
    return null;
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

function readCalls(
  raw: JsonObject,
  delta: JsonObject,
  state: ChatChoice,
  reader: ChatReader,
  out: GenerationEvent[],
): void {
  const calls = delta["tool_calls"];
  if ((Array.isArray(calls) && calls.length > 0) || isObject(calls)) {
    reader.start(state, out);
    if (!Array.isArray(calls)) reader.repairs.note("call-index");
    // The calls of a whole message have no index: their order says it.
    const isWhole = Array.isArray(calls) && raw["message"] !== undefined;
    state.calls.add(isWhole ? calls.map((call, index) => (isObject(call) ? { index, ...call } : call)) : calls, out);
    // llama-cpp-python 0.3.36 has the same call in the legacy form, too.
    return;
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
  for (const type of ["start", "part-start", "part-end"] as const) kinds.delete(type);
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

/** The members that have the text of reasoning. */
const reasoningNames = ["reasoning", "reasoning_text", "thinking", "reasoning_content"];

function reasoningOf(delta: JsonObject, repairs: RepairLog): string {
  const own = delta["reasoning_content"];
  if (typeof own === "string" && own !== "") return own;
  for (const name of [...reasoningNames, "reasoning_details"]) {
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
