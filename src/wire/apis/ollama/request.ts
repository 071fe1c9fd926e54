import * as z from "zod";
import type { AssistantPart, ContentPart, Message, Tool } from "../../core/message.ts";
import { FailureError, invalidRequest } from "../../core/failure.ts";
import type { JsonObject } from "../../core/json.ts";
import { nearest } from "../../core/nearest.ts";
import type {
  AnswerLimits,
  ChatPrompt,
  GenerationRequest,
  OutputConstraint,
  ReasoningOptions,
  Sampling,
  TextPrompt,
} from "../../core/request.ts";
import { runSync, StepCounter, type Steps } from "../../core/steps.ts";
import { membersOf } from "../members.ts";
import type { ReadOptions } from "../port.ts";
import { lean, type Profile } from "../profile.ts";
import { checkedForServer, unknownValue } from "../request/parameter.ts";
import { OpenCalls } from "../request/open-calls.ts";
import { checkTotalLength, tooManyUnknown } from "../request/refusals.ts";
import { maxUnknownMembers } from "../request/shapes.ts";
import { checkGoTypes } from "./go-decoder.ts";
import { renderGoTemplate } from "./go-template.ts";
import { bodyFailure, goString, parseGoDuration } from "./go-values.ts";
import {
  ollamaChatRequest,
  ollamaGenerateRequest,
  ollamaOptions,
  type ollamaRequestMessage,
  type ollamaTool,
} from "./request-schema.ts";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type RequestMessage = z.infer<typeof ollamaRequestMessage>;
type ChatBody = z.infer<typeof ollamaChatRequest>;
type GenerateBody = z.infer<typeof ollamaGenerateRequest>;

/** What a request says about the form of its answer. */
export interface OllamaAnswer {
  readonly endpoint: "chat" | "generate";
  /** The request has no messages or prompt: it only loads the model, or unloads it. */
  readonly only?: "load" | "unload";
  /** Alternatives for each token; absent: no log probabilities. */
  readonly topLogprobs?: number;
  /** The conversation of `/api/generate`, to which the answer is added for the member `context`; absent: none. */
  readonly conversation?: readonly ContextMessage[];
}

export interface ReadOllamaRequest {
  readonly request: GenerationRequest;
  readonly answer: OllamaAnswer;
  readonly warnings: readonly string[];
  /** How long the model is to stay loaded after the answer, in milliseconds; `Infinity`: until it is unloaded. Absent: as configured. */
  readonly keepAliveMs?: number;
}

/** Reads the body of `POST /api/chat`. Throws `FailureError` in Ollama's words. */
export function readOllamaChat(body: unknown, requestId: string, options?: ReadOptions): ReadOllamaRequest {
  return runSync(ollamaChatInSteps(body, requestId, options));
}

/** The same in steps, so that a long body does not block other requests. */
export function* ollamaChatInSteps(
  body: unknown,
  requestId: string,
  options: ReadOptions = {},
): Steps<ReadOllamaRequest> {
  const draft = yield* draftOf<ChatBody>(ollamaChatRequest, body, options);
  const { read } = draft;
  if (!read.model) throw invalidRequest("model is required", "model");
  const { messages: sent, tools } = read;
  const { messages, thinks } = yield* conversationOf(sent ?? [], draft);
  const request: Mutable<GenerationRequest> = {
    ...(thinks && { reasoning: { mode: "on" } }),
    ...sharedMembers(draft, requestId, body as JsonObject, "ollama"),
    prompt: { kind: "chat", messages, template: prefillOf(messages) },
  };
  if (tools && tools.length > 0) request.tools = tools.map(toolOf);
  return complete(request, draft, { endpoint: "chat" }, messages.length === 0);
}

/** Reads the body of `POST /api/generate`. Throws `FailureError` in Ollama's words. */
export function readOllamaGenerate(body: unknown, requestId: string, options?: ReadOptions): ReadOllamaRequest {
  return runSync(ollamaGenerateInSteps(body, requestId, options));
}

/** The same in steps. */
export function* ollamaGenerateInSteps(
  body: unknown,
  requestId: string,
  options: ReadOptions = {},
): Steps<ReadOllamaRequest> {
  const draft = yield* draftOf<GenerateBody>(ollamaGenerateRequest, body, options);
  const { model, prompt, suffix, system, template, context, raw, images } = draft.read;
  if (!model) throw new FailureError({ kind: "not-found", status: 404, message: "model '' not found", param: "model" });
  if (raw === true && ((template ?? "") !== "" || (system ?? "") !== "" || (context?.length ?? 0) > 0))
    throw invalidRequest("raw mode does not support template, system, or context", "raw");
  const isEmpty = (prompt ?? "") === "";
  const isText = raw === true || (suffix ?? "") !== "" || (template ?? "") !== "";
  const shared = sharedMembers(draft, requestId, body as JsonObject, "ollama-generate");
  if (isText || isEmpty) {
    if (images && images.length > 0 && !isEmpty)
      throw invalidRequest("Images need a chat template: send them without 'raw', 'suffix' and 'template'.", "images");
    const own = isEmpty ? "" : (template ?? "");
    if (own !== "" && context && context.length > 0)
      throw invalidRequest("'context' goes with the model's own chat template: send it without 'template'.", "context");
    const text: TextPrompt =
      own === ""
        ? { kind: "text", prompts: [prompt ?? ""], ...(suffix && { suffix }) }
        : { kind: "text", prompts: [renderedPrompt(own, draft)] };
    return complete({ ...shared, prompt: text }, draft, { endpoint: "generate" }, isEmpty);
  }
  const before = context && context.length > 0 ? readContext(context) : [];
  const conversation: ContextMessage[] = [
    ...(system ? [{ role: "system", content: system }] : []),
    // Clients that send `context` repeat `system` in every request.
    ...before.filter(({ role }) => role !== "system" || !system),
    { role: "user", content: prompt ?? "" },
  ];
  const { messages } = yield* conversationOf(conversation, draft);
  const last = messages.length - 1;
  const chat: ChatPrompt = {
    kind: "chat",
    messages: messages.map((message, at): Message => {
      if (at < last || message.role !== "user") return { ...message, path: at < last ? "context" : "prompt" };
      const media = mediaOf(images ?? [], "images", options.profile ?? lean);
      const content: Message["content"] =
        media.length === 0 ? (prompt ?? "") : [{ type: "text", text: prompt ?? "" }, ...media];
      return { role: "user", content, path: "prompt" };
    }),
    template: {},
  };
  const answer: OllamaAnswer = { endpoint: "generate", conversation };
  return complete({ ...shared, prompt: chat }, draft, answer, false);
}

/** The prompt in the request's own template. An Ollama renders it itself. */
function renderedPrompt(template: string, { read, forwards, profile }: Draft<GenerateBody>): string {
  const { prompt, suffix, system } = read;
  const values = { System: system ?? "", Prompt: prompt ?? "", Suffix: suffix ?? "" };
  const rendered = renderGoTemplate(template, values, profile.judgesAsVendor ? 500 : 400);
  if (typeof rendered === "string") return rendered;
  if (forwards) return prompt ?? "";
  throw invalidRequest(
    `'template' may have .System, .Prompt, .Suffix and .Response, with if, else and end, but not '{{ ${rendered.foreign.slice(0, 64)} }}'. Send the whole prompt with "raw": true, or messages to /api/chat.`,
    "template",
  );
}

interface Draft<Body> {
  readonly read: Body;
  readonly profile: Profile;
  readonly forwards: boolean;
  readonly keepAliveMs: number | undefined;
  readonly warnings: string[];
}

/** Checks a body by its schema. */
function* draftOf<Body extends ChatBody | GenerateBody>(
  schema: z.ZodObject,
  body: unknown,
  { profile = lean, forwards = false }: ReadOptions,
): Steps<Draft<Body>> {
  if (profile.judgesAsVendor) checkGoTypes(schema, body);
  const { checked, unknown } = yield* checkedForServer(schema, body, forwards);
  if (!checked.success) throw bodyFailure(body, checked.error.issues);
  const read = checked.data as Body;
  const warnings = unknown.map(([name = "", ...path]) => unknownValue(String(name), path));
  const top = read.top_logprobs ?? 0;
  if (top < 0 || top > 20) throw invalidRequest("top_logprobs must be between 0 and 20", "top_logprobs");
  if (!forwards) warnings.push(...misspelled(schema, body as JsonObject));
  if (read._debug_render_only === true)
    throw invalidRequest(
      "'_debug_render_only' is not supported: POST /apply-template returns the prompt of a conversation.",
      "_debug_render_only",
    );
  const { keep_alive: keepAlive } = read;
  return { read, profile, forwards, keepAliveMs: keepAliveMs(keepAlive), warnings };
}

/** Go ignores unknown members. One that is nearly a known one is a mistake. */
function misspelled(schema: z.ZodObject, body: JsonObject): string[] {
  const names = membersOf(schema).map(({ name }) => name);
  const unknown = Object.keys(body).filter((name) => !names.includes(name));
  if (unknown.length > maxUnknownMembers) throw tooManyUnknown();
  return unknown.flatMap((name) => {
    const meant = nearest(name, names);
    return meant === undefined || meant in body
      ? []
      : [`'${name}' is not a member of the request and has no effect; did you mean '${meant}'?`];
  });
}

/** `keep_alive` in milliseconds. A number is in seconds; a negative value means forever. Source: `Duration.UnmarshalJSON`. */
export function keepAliveMs(value: string | number | null | undefined): number | undefined {
  if (value === undefined || value === null) return undefined;
  const ms = typeof value === "number" ? value * 1000 : parseGoDuration(value);
  return ms < 0 ? Infinity : ms;
}

function sharedMembers(
  { read, profile, forwards, warnings }: Draft<ChatBody | GenerateBody>,
  id: string,
  body: JsonObject,
  dialect: string,
): Omit<GenerationRequest, "prompt"> {
  const { sampling, limits, extra } = optionsOf(read.options ?? {}, { profile, forwards, warnings });
  if (read.truncate !== false) limits.overflow = "drop-oldest";
  const output = outputOf(read.format, profile);
  const reasoning = reasoningOf(read.think);
  return {
    id,
    model: read.model ?? "",
    sampling,
    limits,
    wantsUsage: true,
    wantsTimings: true,
    stream: read.stream ?? true,
    extra,
    passthrough: { dialect, body },
    ...(read.logprobs === true && { logprobs: { top: read.top_logprobs ?? 0 } }),
    ...(output && { output }),
    ...(reasoning && { reasoning }),
  };
}

function complete(
  request: GenerationRequest,
  { warnings, keepAliveMs: kept }: Draft<ChatBody | GenerateBody>,
  answer: OllamaAnswer,
  isEmpty: boolean,
): ReadOllamaRequest {
  const only = isEmpty ? (kept === 0 ? "unload" : "load") : undefined;
  return {
    // Ollama answers a request that loads or unloads without a stream, in one line.
    request: only ? { ...request, stream: false, limits: { ...request.limits, maxTokens: 0 } } : request,
    answer: {
      ...answer,
      ...(only && { only }),
      ...(request.logprobs && { topLogprobs: request.logprobs.top }),
    },
    warnings,
    ...(kept !== undefined && { keepAliveMs: kept }),
  };
}

function reasoningOf(think: ChatBody["think"]): ReasoningOptions | undefined {
  if (think === undefined || think === null) return undefined;
  if (typeof think === "boolean") return { mode: think ? "on" : "off" };
  return { mode: "on", effort: think };
}

/** Source: llm/llama_server.go, `llamaServerChatResponseFormat`. */
function outputOf(format: ChatBody["format"], { judgesAsVendor }: Profile): OutputConstraint | undefined {
  if (format === undefined || format === null || format === "") return undefined;
  if (format === "json") return { type: "json-object" };
  if (typeof format === "object" && !Array.isArray(format))
    return { type: "json-schema", name: "response", schema: format, strict: false, path: "format" };
  const shown = JSON.stringify(JSON.stringify(format).slice(0, 200));
  throw new FailureError({
    kind: "invalid-request",
    status: judgesAsVendor ? 500 : 400,
    message: `invalid format: ${shown}; expected "json" or a valid JSON Schema object`,
    param: "format",
  });
}

/** The range that every source takes; Ollama checks none. */
const ranges: Readonly<Record<string, readonly [least: number, most: number]>> = {
  temperature: [0, 2],
  top_p: [0, 1],
  min_p: [0, 1],
  top_k: [-1, Number.MAX_SAFE_INTEGER],
  repeat_last_n: [-1, Number.MAX_SAFE_INTEGER],
  repeat_penalty: [0, Number.MAX_SAFE_INTEGER],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
};

/** Reads `options`. Throws `FailureError` for a value of another type, in Ollama's words. */
function optionsOf(
  options: Readonly<Record<string, unknown>>,
  { profile, forwards, warnings }: { profile: Profile; forwards: boolean; warnings: string[] },
): { sampling: Sampling; limits: Mutable<AnswerLimits>; extra: Record<string, unknown> } {
  const known = new Map(membersOf(ollamaOptions).map((member) => [member.name, member]));
  const values = new Map<string, unknown>();
  const entries = Object.entries(options);
  if (entries.length > maxUnknownMembers) throw tooManyUnknown();
  for (const [name, value] of entries) {
    const member = known.get(name);
    const meant = member ? undefined : nearest(name, known.keys());
    const hint = meant === undefined ? "" : `; did you mean '${meant}'?`;
    if (!member) warnings.push(`invalid option provided: ${goString(name.slice(0, 64))}${hint}`);
    else if (value !== null && value !== undefined) {
      const { go, kind } = member.schema.meta() ?? {};
      if (!member.schema.safeParse(value).success) throw wrongOption(name, String(go), value, profile);
      if (kind === "runner") {
        if (!forwards) warnings.push(`options.${name} has no effect: it is set when the model is started`);
      } else values.set(name, typeof value === "number" ? ranged(name, value, go === "integer", warnings) : value);
    }
  }
  const number = (name: string): number | undefined => values.get(name) as number | undefined;
  const sampling: Mutable<Sampling> = {};
  const limits: Mutable<AnswerLimits> = {};
  const extra: Record<string, unknown> = {};
  const set = <Name extends keyof Sampling>(member: Name, value: Sampling[Name] | undefined): void => {
    if (value !== undefined) sampling[member] = value;
  };
  set("temperature", number("temperature"));
  set("topP", number("top_p"));
  set("minP", number("min_p"));
  set("topK", topKOf(number("top_k")));
  set("frequencyPenalty", number("frequency_penalty"));
  set("presencePenalty", number("presence_penalty"));
  set("repeatPenalty", number("repeat_penalty"));
  set("repeatLastN", number("repeat_last_n"));
  // A negative seed is a random one.
  set("seed", (number("seed") ?? -1) < 0 ? undefined : number("seed"));
  const most = number("num_predict") ?? -1;
  if (most > 0) limits.maxTokens = most;
  const stop = ((values.get("stop") ?? []) as readonly string[]).filter((text) => text !== "");
  checkTotalLength("options.stop", stop);
  if (stop.length > 0) limits.stop = stop;
  const typical = number("typical_p") ?? 1;
  // Servers of llama.cpp take it by the same name; local models have no such sampler.
  if (typical !== 1) {
    extra["typical_p"] = typical;
    warnings.push("options.typical_p has no effect on local models");
  }
  return { sampling, limits, extra };
}

function topKOf(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.max(0, value);
}

/** Cuts fractions of integers, as Ollama does, and limits a value to what every source takes. */
function ranged(name: string, value: number, isInteger: boolean, warnings: string[]): number {
  const whole = isInteger ? Math.trunc(value) : value;
  const [least, most] = ranges[name] ?? [-Infinity, Infinity];
  const used = Math.min(most, Math.max(least, whole));
  if (used !== whole) warnings.push(`options.${name}: ${whole} is out of range; ${used} is used`);
  return used;
}

/** Source: api/types.go, `FromMap`; server/routes.go, `handleScheduleError`, which answers with 500. */
function wrongOption(name: string, go: string, value: unknown, { judgesAsVendor }: Profile): FailureError {
  const type = go === "array" && Array.isArray(value) ? "an array of strings" : `type ${go}`;
  const message = `option "${name}" must be of ${type}`;
  const status = judgesAsVendor ? 500 : 400;
  return new FailureError({ kind: "invalid-request", status, message, param: `options.${name}` });
}

function toolOf({ function: { name, description, parameters } }: z.infer<typeof ollamaTool>, at: number): Tool {
  return {
    name,
    ...(typeof description === "string" && description !== "" && { description }),
    ...(parameters && { parameters }),
    path: `tools[${at}].function.parameters`,
  };
}

/** A last message of the assistant is continued, as Ollama's renderers do. */
function prefillOf(messages: readonly Message[]): ChatPrompt["template"] {
  const last = messages.at(-1);
  const isText = last?.role === "assistant" && typeof last.content === "string";
  return isText ? { addGenerationPrompt: false, continueFinalMessage: true } : {};
}

/**
 * Converts messages. Calls and results that have no ids are paired by name and order. Ollama takes any role, and leaves it to the template of
 * the model. `thinks`: by the role `control` of Granite's templates.
 */
function* conversationOf(
  sent: readonly RequestMessage[],
  { profile, forwards, warnings }: Draft<unknown>,
): Steps<{ messages: Message[]; thinks: boolean }> {
  const messages: Message[] = [];
  let thinks = false;
  let foreign: string | undefined;
  const pace = new StepCounter();
  const open = new OpenCalls();
  for (const [at, message] of sent.entries()) {
    const path = `messages[${at}]`;
    const { content: text, images, thinking, tool_calls: calls } = message;
    const media = mediaOf(images ?? [], `${path}.images`, profile);
    const content = media.length === 0 ? (text ?? "") : [...textParts(text), ...media];
    const role = (message.role ?? "").toLowerCase();
    if (role === "system" || role === "developer" || role === "user") messages.push({ role, content, path });
    else if (role === "assistant") {
      const parts: AssistantPart[] = [
        ...(thinking ? [{ type: "reasoning" as const, text: thinking }] : []),
        ...textParts(text),
        ...(calls ?? []).map(({ id, function: { name, arguments: input } }, index): AssistantPart => {
          const call = { id: id || `call_${at}_${index}`, name };
          open.add(call);
          return { type: "tool-call", ...call, arguments: JSON.stringify(input ?? {}) };
        }),
      ];
      messages.push({ role, content: !thinking && !calls?.length ? (text ?? "") : parts, path });
    } else if (role === "tool" || role === "function") {
      const { tool_call_id: id, tool_name: name } = message;
      const call = open.take(id, name);
      const toolName = name || call?.name;
      const toolCallId = id || call?.id || `call_${at}`;
      messages.push({ role: "tool", content, toolCallId, path, ...(toolName && { name: toolName }) });
    } else if (role === "control" && text === "thinking") thinks = true;
    else {
      messages.push({ role: "user", content, path });
      foreign ??= `${path}.role is ${role === "" ? "absent" : goString(role.slice(0, 64))}`;
    }
    if (pace.endsStep()) yield;
  }
  if (foreign !== undefined && !forwards) warnings.push(`${foreign}: the message is sent as a user's`);
  return { messages, thinks };
}

function textParts(text: string | null | undefined): { type: "text"; text: string }[] {
  return text ? [{ type: "text", text }] : [];
}

/** The beginnings of base64 by which Ollama's runner finds the type of an image; others count as JPEG. Source: llm/llama_server.go. */
const imageTypes: readonly (readonly [start: string, type: string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["R0lGOD", "image/gif"],
  ["Qk", "image/bmp"],
  ["UklGR", "image/webp"],
];

/** Images, and sounds: both are base64 in `images`. Throws `FailureError`. */
function mediaOf(images: readonly string[], path: string, { judgesAsVendor }: Profile): ContentPart[] {
  return images.map((data, at): ContentPart => {
    if (!judgesAsVendor && /^data:image\/[\w.+-]+;base64,/.test(data)) return { type: "image", url: data };
    const [{ length: legal }] = /^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*/.exec(data) as RegExpExecArray as [string];
    if (legal < data.length || data === "") {
      const where = judgesAsVendor ? "" : `${path}[${at}]: `;
      const words = data === "" ? "the image is empty" : `illegal base64 data at input byte ${legal}`;
      throw invalidRequest(where + words, `${path}[${at}]`);
    }
    // "RIFF", four bytes, "WAVE" or "WEBP".
    if (/^UklGR.{6}XQVZF/s.test(data)) return { type: "audio", data, format: "wav" };
    if (/^(?:SUQz|\/\/[sMI])/.test(data)) return { type: "audio", data, format: "mp3" };
    const [, type] = imageTypes.find(([start]) => data.startsWith(start)) ?? ["", "image/jpeg"];
    return { type: "image", url: `data:${type};base64,${data}` };
  });
}

/** A message in `context`. */
export interface ContextMessage {
  readonly role: string;
  readonly content: string;
}

/** The first number of a context of this server, so that tokens of another server are recognized. "truw" in ASCII. */
const contextMark = 0x74727577;

/**
 * The conversation as the numbers of `context`. Ollama puts the tokens there; clients send them back unread. Three bytes of the
 * conversation's JSON are one number, so that every kind of source can continue it.
 */
export function writeContext(messages: readonly ContextMessage[]): number[] {
  const bytes = new TextEncoder().encode(JSON.stringify(messages.map(({ role, content }) => [role, content])));
  const numbers = [contextMark, bytes.length];
  for (let at = 0; at < bytes.length; at += 3)
    numbers.push(((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0));
  return numbers;
}

/** The conversation in a `context` that `writeContext` has made. Throws `FailureError` for others. */
export function readContext([mark, length = 0, ...numbers]: readonly number[]): ContextMessage[] {
  const foreign = invalidRequest(
    "'context' is not from an answer of this server. Send the conversation's messages to /api/chat, or begin without a context.",
    "context",
  );
  if (mark !== contextMark || length < 0 || Math.ceil(length / 3) !== numbers.length) throw foreign;
  const bytes = new Uint8Array(numbers.length * 3);
  for (const [at, number] of numbers.entries()) {
    bytes[at * 3] = number >> 16;
    bytes[at * 3 + 1] = number >> 8;
    bytes[at * 3 + 2] = number;
  }
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length)));
    const pair = z.tuple([z.enum(["system", "user", "assistant"]), z.string()]);
    return z
      .array(pair)
      .parse(value)
      .map(([role, content]) => ({ role, content }));
  } catch {
    throw foreign;
  }
}
