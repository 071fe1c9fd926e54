import { FailureError, invalidImage, invalidRequest } from "../../../wire/core/failure.ts";
import { imageSize } from "../../../wire/core/image-size.ts";
import type { MessageRange } from "../../../wire/core/inspection.ts";
import type { Message } from "../../../wire/core/message.ts";
import type { ChatPrompt, TextPrompt } from "../../../wire/core/request.ts";
import { type Format, type PlainFormat, plainText } from "../../../text/formats/format.ts";
import { toolInstruction, writeCall } from "../../../text/formats/write-call.ts";
import { reasoningClosings } from "../../../text/formats/reasoning.ts";
import { type ChatTemplate, type RenderInput, requestedThinking } from "../../../text/templates/chat-template.ts";
import { maxImages } from "../vision/read-images.ts";
import type { RenderedMedium } from "../../../text/templates/rendered-prompt.ts";
import { outlineRendered, outlineRenderedText } from "../cache/rendered-outline.ts";
import { contextLengthExceeded } from "../context-length.ts";
import type { LlamaSettings } from "../options.ts";
import type { ModelRequest } from "../protocol.ts";
import type { ModelFacts } from "./model-facts.ts";
import type {
  AnswerParsing,
  PreparedRequest,
  MediaFile,
  PromptInput,
  ReasoningLimit,
  RequestedExtras,
} from "./prepared-request.ts";

/** Everything that requests to a model are prepared with. */
export interface PreparingContext {
  readonly facts: ModelFacts;
  /** null if the model has none. */
  readonly template: ChatTemplate | null;
  readonly format: Format;
  /** The format of calls for a template that does not support tools. */
  readonly genericFormat: Format;
  /** Stop strings of the model for conversations, in addition to the client's. */
  readonly stopStrings: readonly string[];
  readonly defaults: LlamaSettings["defaults"];
}

/** A request with rendered prompts, without its ids and its constraint. */
export interface RenderedRequest {
  readonly request: Omit<PreparedRequest, "id" | "requestId" | "preparingMs" | "constraint">;
  readonly warnings: readonly string[];
}

/** Renders a request's prompts. `now` is for templates that print a date. Throws `FailureError` for requests that cannot be served. */
export function renderRequest(request: ModelRequest, context: PreparingContext, now: Date): RenderedRequest {
  const { facts, defaults = {} } = context;
  const { maxTokens: _, maxStringTokens, maxReasoningTokens, ...sampling } = defaults;
  checkTokenIds(request, facts);
  const { prompt } = request;
  const { prompts, reading, warnings } =
    prompt.kind === "chat" ? chatParts(request, prompt, context, now) : textParts(prompt, facts, request.tokenizing);
  const promptParam = prompt.kind === "chat" ? "messages" : "prompt";
  if (!request.tokenizing) for (const input of prompts) checkTextLength(input, facts, promptParam);
  const n = request.n ?? 1;
  const bestOf = prompt.kind === "text" ? (prompt.bestOf ?? n) : n;
  const maxTokens = request.limits.maxTokens ?? defaults.maxTokens;
  return {
    request: {
      prompts,
      n,
      bestOf,
      reading,
      sampling: { ...sampling, ...request.sampling },
      limits: {
        ...request.limits,
        maxTokens,
        ...(prompt.kind === "chat" &&
          context.stopStrings.length > 0 && { stop: [...(request.limits.stop ?? []), ...context.stopStrings] }),
      },
      tier: request.tier,
      logprobs: request.logprobs,
      prediction: request.prediction,
      extras: extrasOf(request),
      ...reasoningLimit(request, reading, maxReasoningTokens),
      maxStringTokens,
      echo: prompt.kind === "text" && prompt.echo === true,
      inspected: request.inspected,
      promptParam,
    },
    warnings,
  };
}

function extrasOf({ wantsRunningUsage, wantsProgress, wantsTokenIds, promptLogprobs }: ModelRequest): RequestedExtras {
  return { wantsRunningUsage, wantsProgress, wantsTokenIds, promptLogprobs };
}

function reasoningLimit(
  { reasoning }: ModelRequest,
  reading: AnswerParsing,
  maxReasoningTokens: number | undefined,
): { reasoningLimit?: ReasoningLimit } {
  const closing = reasoningClosings(reading.format, reading.prefix);
  const tokens = reasoning?.budgetTokens ?? maxReasoningTokens;
  return closing.length === 0 ? {} : { reasoningLimit: { tokens, closing } };
}

/** Rejects a prompt that is too long for any tokenization: to tokenize megabytes would delay all other answers. */
function checkTextLength(prompt: PromptInput, facts: ModelFacts, param: "messages" | "prompt"): void {
  if (prompt.type === "tokens") return;
  const length = prompt.spans.reduce((sum, span) => sum + span.text.length, prompt.suffix?.length ?? 0);
  const minTokens = Math.ceil(length / facts.maxTokenLength);
  if (minTokens > facts.contextSize)
    throw new FailureError(contextLengthExceeded(facts.contextSize, minTokens, param, { atLeast: true }));
}

interface PromptParts {
  readonly prompts: readonly PromptInput[];
  readonly reading: AnswerParsing;
  readonly warnings: readonly string[];
}

function chatParts(
  request: ModelRequest,
  prompt: ChatPrompt,
  { template, format, genericFormat, facts }: PreparingContext,
  now: Date,
): PromptParts {
  if (!template) {
    throw new FailureError({
      message:
        "This model has no chat template, so it cannot answer a conversation. Set one for the model (--chat-template FILE, or chatTemplate in the configuration), or use /v1/completions.",
      status: 422,
      kind: "invalid-request",
      param: "messages",
      code: "no_chat_template",
    });
  }
  const { tools = [], toolChoice } = request;
  const { effort, mode } = request.reasoning ?? {};
  const variables: Readonly<Record<string, unknown>> = {
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...((mode === "on" || mode === "off") && { enable_thinking: mode === "on" }),
    ...prompt.template.variables,
  };
  const callsAllowed = tools.length > 0 && toolChoice?.type !== "none";
  const allowed = toolChoice?.type === "allowed" ? tools.filter((tool) => toolChoice.names.includes(tool.name)) : tools;
  const supportsTools = template.capabilities.tools && hasCalls(format);
  const input = {
    messages: prompt.messages,
    ...(callsAllowed && { tools: allowed }),
    ...(callsAllowed && !supportsTools && { toolInstruction: toolInstruction(allowed, toolChoice) }),
    ...(toolChoice && { toolChoice }),
    writeCall: (call) => writeCall(format, call),
    options: { ...prompt.template, variables },
    takes: facts.takes,
    imageHint: facts.imageHint ?? defaultImageHint,
    now,
  } satisfies RenderInput;
  const rendered = template.render(input);
  const media = rendered.media.map(mediaFile);
  if (media.length > 0 && request.promptLogprobs)
    throw invalidRequest(
      "Unsupported parameter: 'prompt_logprobs' is not supported for a prompt with images or audio.",
      "prompt_logprobs",
      "unsupported_parameter",
    );
  const quotes =
    request.inspected &&
    promptQuotes(prompt.messages, rendered.text, (messages) => template.render({ ...input, messages }).text);
  const thinking = requestedThinking(variables);
  const outline = outlineRendered({
    messages: prompt.messages,
    tools: callsAllowed ? allowed : [],
    options: [{ ...prompt.template, variables }, !supportsTools && toolChoice],
    rendered: rendered.text,
    opening: rendered.generationPrefix,
  });
  return {
    prompts: [
      {
        type: "spans",
        spans: rendered.spans,
        ...(media.length > 0 && { media }),
        bos: rendered.startsWithBos,
        outline,
        quotes,
      },
    ],
    reading: {
      format: callsAllowed && !supportsTools ? genericFormat : format,
      prefix: rendered.generationPrefix,
      callsAllowed,
      ...(callsAllowed && { tools: allowed }),
      thinking,
      ...(request.reasoning?.inText && { separateReasoning: false }),
    },
    warnings: rendered.warnings,
  };
}

/** The largest image file, in bytes. */
const maxImageBytes = 20 * 2 ** 20;
/** A file of a few kilobytes may have pixels for gigabytes. As many as in 8,000 by 8,000, which Anthropic takes. */
const maxPixels = 64_000_000;

const defaultImageHint =
  "It can read images if it is served with its projector: --mmproj FILE, or mmproj in the configuration.";

/** The file of an image or a recording. Throws `FailureError` for one that cannot be read. */
function mediaFile({ part, path }: RenderedMedium, index: number): MediaFile {
  return part.type === "image" ? imageFile(part.url, path, index) : audioFile(part.data, path);
}

function audioFile(base64: string, path: string): MediaFile {
  const data = Buffer.from(base64, "base64");
  if (data.length > maxAudioBytes)
    throw invalidRequest(
      `Invalid audio: it has ${data.length} bytes, and at most ${maxAudioBytes} are read.`,
      path,
      "audio_too_large",
    );
  if (!readableAudio.test(data.toString("latin1", 0, 12)))
    throw invalidRequest("Invalid audio: expected a WAV, MP3 or FLAC file.", path, "invalid_audio_format");
  return { data: new Uint8Array(data), path };
}

function imageFile(url: string, path: string, index: number): MediaFile {
  if (index >= maxImages)
    throw invalidRequest(`Too many images in the request: at most ${maxImages} are read.`, path, "too_many_images");
  const [, content] = /^data:[^,]*;base64,(.*)$/is.exec(url) ?? [];
  if (content === undefined)
    throw invalidImage(
      { why: "url", url: url.slice(0, 1000) },
      `Invalid image: expected a data URL such as 'data:image/png;base64,…', but got '${url.slice(0, 40)}'. This server cannot download images.`,
      path,
    );
  const data = Buffer.from(content, "base64");
  if (data.length === 0) throw invalidImage({ why: "base64" }, "Invalid image: its data is not base64.", path);
  if (data.length > maxImageBytes)
    throw invalidImage(
      { why: "bytes", bytes: data.length, most: maxImageBytes },
      `Invalid image: it has ${data.length} bytes, and at most ${maxImageBytes} are read.`,
      path,
    );
  if (!readableImage.test(data.toString("latin1", 0, 6)))
    throw invalidImage(
      { why: "format" },
      "Invalid image: expected a PNG, JPEG, GIF or BMP file. Other types are converted if the package sharp is installed: npm install sharp",
      path,
    );
  const size = imageSize(data);
  if (!size) throw invalidImage({ why: "damaged" }, "Invalid image: its header is damaged.", path);
  if (size[0] * size[1] > maxPixels)
    throw invalidImage(
      { why: "side", most: Math.sqrt(maxPixels) },
      `Invalid image: it has ${size.join(" × ")} pixels, and at most ${maxPixels / 1_000_000} million are read.`,
      path,
    );
  return { data: new Uint8Array(data), path };
}

/** The largest recording, in bytes, as in OpenAI's transcriptions. */
const maxAudioBytes = 25 * 2 ** 20;
/** What miniaudio reads, by which libmtmd reads recordings (mtmd-helper.cpp, `is_audio_file`): WAV, MP3, FLAC. */
const readableAudio = /^(?:RIFF[^]{4}WAVE|ID3|\xff[\xe0-\xff]|fLaC)/;

/** What stb_image reads, by which libmtmd reads images: PNG, JPEG, GIF, BMP. */
const readableImage = /^(?:\x89PNG|\xff\xd8\xff|GIF8[79]a|BM)/;

function textParts(prompt: TextPrompt, facts: ModelFacts, tokenizing: ModelRequest["tokenizing"]): PromptParts {
  const { suffix } = prompt;
  if (suffix !== undefined && (!facts.fillsInMiddle || prompt.prompts.some((entry) => typeof entry !== "string")))
    throw invalidRequest(
      facts.fillsInMiddle
        ? "Unsupported parameter: 'suffix' is not supported with a prompt of token ids."
        : "Unsupported parameter: 'suffix' is not supported with this model, which has no tokens to fill in the middle.",
      "suffix",
      "unsupported_parameter",
    );
  return {
    prompts: prompt.prompts.map((entry) =>
      typeof entry === "string"
        ? {
            type: "spans",
            spans: [{ text: entry, special: tokenizing?.parseSpecial ?? true }],
            bos: false,
            ...(tokenizing ? { addSpecial: tokenizing.addSpecial } : { outline: outlineRenderedText(entry) }),
            suffix,
          }
        : { type: "tokens", tokens: entry },
    ),
    reading: { format: plainText, prefix: "", callsAllowed: false },
    warnings: [],
  };
}

function checkTokenIds(request: ModelRequest, facts: ModelFacts): void {
  const most = facts.vocabularySize - 1;
  for (const key of Object.keys(request.sampling.logitBias ?? {}))
    if (Number(key) > most)
      throw invalidRequest(
        `Invalid key in 'logit_bias': ${key}. Maximum value is ${most}.`,
        "logit_bias",
        "invalid_value",
      );
  for (const token of request.limits.stopTokenIds ?? [])
    if (token > most)
      throw invalidRequest(`Invalid token id: ${token}. Maximum value is ${most}.`, "stop_token_ids", "invalid_value");
}

/** Longer prompts are not rendered again for inspection. In characters. */
const maxQuotedLength = 512 * 1024;

/** Private-use characters that mark the beginning of a message's text, by its role, and the end. */
const roles = ["system", "developer", "user", "assistant", "tool"] as const;
const firstMark = 0x10f000;
const endMark = String.fromCodePoint(firstMark + roles.length);
const mark = /[\u{10f000}-\u{10f005}]/gu;

/**
 * Returns the ranges of messages' texts in a rendered prompt. The conversation is rendered again, by `render`, with marks around the texts;
 * if the template then renders another prompt, because it changes or measures texts, no ranges are returned.
 */
export function promptQuotes(
  messages: readonly Message[],
  text: string,
  render: (messages: readonly Message[]) => string,
): readonly MessageRange[] {
  if (text.length > maxQuotedLength || text.search(mark) !== -1) return [];
  // Templates search the assistant's text for reasoning.
  for (const isMarked of [() => true, ({ role }: Message) => role !== "assistant"]) {
    const found = quotesIn(
      rendered(() => render(messages.map((message) => (isMarked(message) ? marked(message) : message)))),
      text,
    );
    if (found) return found;
  }
  return [];
}

function rendered(render: () => string): string {
  try {
    return render();
  } catch {
    return "";
  }
}

function marked(message: Message): Message {
  const { content, role } = message;
  const start = String.fromCodePoint(firstMark + roles.indexOf(role));
  // White space that a template trims stays outside of the marks.
  const withMarks = (text: string): string => text.replace(/\S(?:.*\S)?/s, (words) => `${start}${words}${endMark}`);
  if (typeof content === "string") return { ...message, content: withMarks(content) } as Message;
  if (content === null) return message;
  const parts = content.map((part) => (part.type === "text" ? { ...part, text: withMarks(part.text) } : part));
  return { ...message, content: parts } as Message;
}

/** Returns undefined if `text` without marks is not the expected prompt. */
function quotesIn(text: string, expected: string): MessageRange[] | undefined {
  const quotes: MessageRange[] = [];
  let open: { readonly start: number; readonly role: string } | undefined;
  let marks = 0;
  for (const match of text.matchAll(mark)) {
    const at = match.index - marks;
    marks += match[0].length;
    if (match[0] !== endMark) {
      open = { start: at, role: roles[(match[0].codePointAt(0) ?? firstMark) - firstMark] ?? "user" };
    } else if (open) {
      quotes.push({ ...open, end: at });
      open = undefined;
    }
  }
  return text.replace(mark, "") === expected ? quotes : undefined;
}

/** Whether the format has a syntax for calls. */
export function hasCalls(format: Format): boolean {
  return format.kind === "routed" || format.calls.length > 0;
}

/** The format of calls for a template that does not support tools: one JSON object after the model's reasoning. */
export function genericCalls(format: Format): PlainFormat {
  const { reasoning, strip, drop } = format;
  return {
    kind: "plain",
    id: "generic-json",
    ...(reasoning && { reasoning }),
    ...(strip && { strip }),
    ...(drop && { drop }),
    calls: [
      {
        form: "object",
        bare: "start",
        list: "one",
        name: ["name"],
        arguments: ["arguments", "parameters"],
        argumentsRequired: true,
      },
    ],
  };
}
