import { Digest, digestJson, digestText } from "./digest.ts";
import { estimateTokens, tokensInCharacters } from "./estimate-tokens.ts";
import { assistantParts } from "./message.ts";
import type { AssistantPart, ContentPart, Message, Tool } from "./message.ts";
import { StepCounter } from "./steps.ts";
import type { Steps } from "./steps.ts";

/**
 * The parts of a prompt in order: each with its path in the client's request, digests and an estimate of its tokens, but without its text.
 * Two outlines show where two prompts diverge (`compare-outlines.ts`).
 */
export interface PromptOutline {
  readonly tools: readonly ToolOutline[];
  readonly messages: readonly MessageOutline[];
  /** The digest of everything else that changes how the prompt is written. */
  readonly options: string;
}

export interface ToolOutline {
  /** Of the name, the description and the parameters. */
  readonly definition: string;
  readonly tokens: number;
}

export interface MessageOutline extends OutlinedMessage {
  readonly path: string;
  /** Of the messages whose texts are compared more closely. */
  readonly details?: TextDetails;
}

/** What is the same for a message wherever it is. */
export interface OutlinedMessage {
  readonly role: string;
  readonly tokens: number;
  /** Of the whole message: two messages are the same if this is. */
  readonly digest: string;
  /** Of everything but the reasoning. */
  readonly text: string;
  /** One digest for each part, after one of the message's members. The first letter is the part's kind (`kindOf`). */
  readonly parts: readonly string[];
}

/** What shows how the texts of two messages differ. */
export interface TextDetails {
  /** Of the text without one kind of what software changes with each request; absent for a message that only ends the prompt. */
  readonly masked?: Readonly<Record<ChangingPart, string>>;
  /** Of the sentences and lines at its beginning, with their lengths in characters. */
  readonly sentences: readonly (readonly [digest: string, length: number])[];
}

/** Text that software changes with each request. */
export type ChangingPart = "billing-header" | "date" | "id" | "counter";

/** Claude Code writes it first into the system prompt. Source: https://github.com/ggml-org/llama.cpp/issues/20623. */
export const billingHeader = /\bx-[a-z0-9-]{0,40}(?:billing|header)[a-z0-9-]{0,40}:/i;

const month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";

/** The patterns of each kind, in the order in which they are tried. */
export const changingParts: readonly (readonly [ChangingPart, readonly RegExp[]])[] = [
  [
    "id",
    [
      /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi,
      // A long word of letters and digits.
      /(?<![\w-])(?=[\w-]*[A-Za-z])(?=[\w-]*\d[\w-]*\d)(?!\d{4}-\d\d-\d\d)[\w-]{12,}/g,
    ],
  ],
  [
    "date",
    [
      /\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?/g,
      /\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}/g,
      /\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?/g,
      new RegExp(`\\b${month}\\.? \\d{1,2}(?:st|nd|rd|th)?(?:,? \\d{4})?`, "gi"),
      new RegExp(`\\b\\d{1,2}(?:st|nd|rd|th|\\.)? ${month}\\.?(?:,? \\d{4})?`, "gi"),
      /\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b/gi,
      // Unix time in seconds or milliseconds.
      /(?<!\d)1[4-9]\d{8}(?:\d{3})?(?!\d)/g,
    ],
  ],
  ["counter", [/\d+(?:[.,]\d+)*/g]],
];

/** The characters of a message in which changing parts are searched for, and those that are split into sentences. */
const maxMasked = 64 * 1024;
const maxSplit = 8 * 1024;
/** Of a longer image, recording or file, samples are digested: this many, each of this many characters. */
const mediaSamples = 16;
const sampleLength = 4096;

export function isSystem({ role }: Pick<MessageOutline, "role">): boolean {
  return role === "system" || role === "developer";
}

/** Outlines the prompt of a conversation, in steps. `options`: everything else that changes how it is written. */
export function* outlinePrompt(prompt: {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[] | undefined;
  readonly options?: unknown;
}): Steps<PromptOutline> {
  const { messages } = prompt;
  const pace = new StepCounter();
  const tools: ToolOutline[] = [];
  for (const { name, description = "", parameters, inputGrammar } of prompt.tools ?? []) {
    const { value, length } = yield* digestJson([name, description, parameters ?? null, inputGrammar ?? null]);
    tools.push({ definition: value, tokens: tokensInCharacters(length) });
    if (pace.endsStep()) yield;
  }
  const outlines = yield* outlineMessages(messages);
  const first = messages.findIndex((message) => !isSystem(message));
  const withPaths: MessageOutline[] = [];
  for (const [at, outline] of outlines.entries()) {
    const { path = `messages[${at}]` } = messages[at] ?? {};
    const isMasked = at === first || isSystem(outline);
    const isDetailed = isMasked || at === outlines.length - 1;
    withPaths.push({ ...outline, path, ...(isDetailed && { details: detailsOf(wordsOf(messages[at]), isMasked) }) });
    if (pace.endsStep(isDetailed ? 1 : 1 / 16)) yield;
  }
  const options = (yield* digestJson(prompt.options ?? null)).value;
  return { tools, messages: withPaths, options };
}

/** Outlines messages without their paths and details, in steps. */
export function* outlineMessages(messages: readonly Message[]): Steps<OutlinedMessage[]> {
  const pace = new StepCounter();
  const outlines: OutlinedMessage[] = [];
  for (const message of messages) {
    const known = outlined.get(message);
    outlines.push(known ?? (yield* outlineMessage(message)));
    if (pace.endsStep(known ? 1 / 64 : 1)) yield;
  }
  return outlines;
}

/** Outlines a prompt that is not a conversation: as one message of the role `prompt`. */
export function outlineText(text: string): PromptOutline {
  const digest = digestText(text);
  const tokens = tokensInCharacters(text.length);
  const details = detailsOf(text, true);
  const message = { role: promptRole, path: "prompt", tokens, digest, text: digest, parts: [digest], details };
  return { tools: [], messages: [message], options: "" };
}

/** Role of the only message of a prompt that is not a conversation. */
export const promptRole = "prompt";

/** The history of a chain of responses consists of the same objects in each request. */
const outlined = new WeakMap<Message, OutlinedMessage>();

function* outlineMessage(message: Message): Steps<OutlinedMessage> {
  const { role, name } = message;
  const head = digestText(JSON.stringify([role, name, role === "tool" && message.isError === true]));
  const parts = [`h${head}`];
  for (const part of partsOf(message)) {
    const isPlain = part.type === "text" && part.phase === undefined;
    const { value } = yield* digestJson(isPlain ? part.text : sampled(inPrompt(part)));
    parts.push(kindOf(part) + value);
  }
  const outline = {
    role,
    tokens: estimateTokens({ prompt: { kind: "chat", messages: [message], template: {} } }),
    digest: beginningsOf(parts).at(-1) ?? "",
    text: digestText(parts.filter((part) => !part.startsWith("r")).join(" ")),
    parts,
  };
  outlined.set(message, outline);
  return outline;
}

/** The digests of a message without parts, with its first part, and so on; the last one is that of the whole message. */
export function beginningsOf(parts: readonly string[]): readonly string[] {
  const digest = new Digest();
  return parts.map((part) => digest.add(`${part} `).value);
}

function kindOf(part: AssistantPart | ContentPart): "r" | "m" | "t" {
  if (part.type === "reasoning") return "r";
  const isMedia = part.type === "image" || part.type === "audio" || (part.type === "file" && part.text === undefined);
  return isMedia ? "m" : "t";
}

function partsOf(message: Message): readonly (AssistantPart | ContentPart)[] {
  if (message.role === "assistant") return assistantParts(message);
  const { content } = message;
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

/**
 * Returns a part without what no prompt contains: marks of what is to be cached, which clients move, states, which some clients do not return,
 * and ids, which servers may count.
 */
export function inPrompt(part: AssistantPart | ContentPart): object {
  const { cacheMinutes: _, id, state: __, ...rest } = part as AnyPart;
  return part.type === "file" && id !== undefined ? { ...rest, id } : rest;
}

interface AnyPart {
  readonly cacheMinutes?: number;
  readonly id?: string;
  readonly state?: unknown;
}

/** Of the megabytes of an image, its length and samples are digested. */
function sampled(part: object): object {
  const shortened = Object.entries(part).filter(
    ([name, value]) => (name === "url" || name === "data") && String(value).length > mediaSamples * sampleLength,
  );
  if (shortened.length === 0) return part;
  const samplesOf = (text: string): readonly unknown[] => {
    const step = (text.length - sampleLength) / (mediaSamples - 1);
    const starts = Array.from({ length: mediaSamples }, (_, at) => Math.floor(at * step));
    return [text.length, ...starts.map((start) => text.slice(start, start + sampleLength))];
  };
  return { ...part, ...Object.fromEntries(shortened.map(([name, value]) => [name, samplesOf(String(value))])) };
}

/** The texts of a message, without its reasoning and its calls. */
export function wordsOf(message: Message | undefined): string {
  return (message ? partsOf(message) : [])
    .flatMap((part) => {
      if (part.type === "text") return [part.text];
      if (part.type === "refusal") return [part.refusal];
      return part.type === "file" ? [[part.name, part.text].filter((text) => text !== undefined).join("\n\n")] : [];
    })
    .join("\n");
}

function detailsOf(words: string, isMasked: boolean): TextDetails {
  const sentences = words.slice(0, maxSplit).match(/[^\n.!?]+[\n.!?]*|[\n.!?]+/g) ?? [];
  return {
    ...(isMasked && { masked: maskedDigests(words.slice(0, maxMasked)) }),
    sentences: sentences
      .map((sentence) => sentence.trim())
      .filter(({ length }) => length > 1)
      .map((sentence) => [digestText(sentence), sentence.length]),
  };
}

/** The digests of a text from which one kind of changing text was removed. */
function maskedDigests(text: string): Record<ChangingPart, string> {
  const masked = (patterns: readonly RegExp[]): string =>
    digestText(patterns.reduce((rest, pattern) => rest.replace(pattern, "…"), text));
  const withoutHeader = text
    .split("\n")
    .filter((line) => !billingHeader.test(line))
    .join("\n");
  const digests: Partial<Record<ChangingPart, string>> = { "billing-header": digestText(withoutHeader) };
  for (const [kind, patterns] of changingParts) digests[kind] = masked(patterns);
  return digests as Record<ChangingPart, string>;
}
