import type { GenerationFailure } from "../../core/events.ts";
import { kindOfStatus } from "../../core/failure.ts";
import { isObject, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { knownError, waitInMessage } from "./error-codes.ts";

/**
 * The failure in a parsed body, or null. Reads `{error: {…}}`, `{error: "…"}`, vLLM's `{object: "error",
 * message, …}`, `{type: "error", error: {…}}`, FastAPI's `{detail: …}`, Gemini's list of one, and a bare `{message, code}`.
 * `status`: the response's, if not 200.
 */
export function readFailure(body: unknown, status?: number): GenerationFailure | null {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  if (!isObject(first)) return null;
  const error = first["error"];
  if (isObject(error)) {
    const id = shownOrNull(first["request_id"]);
    const failure = failureFrom(error, status);
    return id === null ? failure : { ...failure, sourceRequestId: id };
  }
  if (typeof error === "string" && error !== "")
    return failureFrom({ ...first, message: text(first["message"]) ?? error }, status);
  if (first["choices"] !== undefined) return null;
  if (first["object"] === "error" || first["type"] === "error") return failureFrom(first, status);
  const detail = first["detail"];
  if (detail !== undefined && detail !== null) return failureFrom({ message: detailText(detail) }, status);
  if (text(first["message"]) !== null && first["object"] === undefined) return failureFrom(first, status);
  return null;
}

/** The failure of an invalid answer. */
export function badAnswer(message: string, cause?: unknown): GenerationFailure {
  const failure: GenerationFailure = { kind: "bad-answer", message, status: 502, param: null, code: null };
  return cause === undefined ? failure : { ...failure, cause };
}

/** The failure of an answer that announces calls, and has neither a call nor a text: an agent would wait, or repeat its request without end. */
export function callsWithoutCall(): GenerationFailure {
  return badAnswer('The upstream said finish_reason "tool_calls" but sent neither a tool call nor a text.');
}

/** The failure in a body that is not JSON: a proxy's page, plain text, nothing. */
export function failureOfText(body: string, status?: number): GenerationFailure {
  const words = plainWords(body);
  const known = failureStatus(status);
  return {
    kind: kindOfStatus(known),
    message: words === "" ? `The upstream failed${status === undefined ? "" : ` with status ${status}`}.` : words,
    isForeign: true,
    status: known,
    sourceType: typeOfStatus(known),
    param: null,
    code: null,
  };
}

function failureFrom(error: JsonObject, responseStatus: number | undefined): GenerationFailure {
  const ownStatus = [error["status"], error["code"], error["status_code"]]
    .map((one) => Number(scalarText(one)))
    .find((n) => n >= 400 && n < 600);
  const ownType = text(error["type"]);
  const type = ownType !== null && /^[a-z_]+$/.test(ownType) && ownType !== "error" ? ownType : null;
  const { details } = error;
  // Anthropic's code is in `details`.
  const code = text(error["code"]) ?? (isObject(details) ? text(details["error_code"]) : null);
  const message = messageOf(error);
  const ownCode = code !== null && !/^\d+$/.test(code) ? code : null;
  const known = knownError(ownCode, type);
  const status = failureStatus(responseStatus ?? ownStatus ?? known?.status);
  const wait = status === 429 || status === 503 ? waitInMessage(message ?? "") : undefined;
  const failure: GenerationFailure = {
    kind: known?.kind ?? kindOfStatus(status),
    message: message === null ? "The upstream reported an error without a message." : shown(message, maxMessage),
    isForeign: true,
    status,
    sourceType: type ?? typeOfStatus(status),
    param: shownOrNull(error["param"]),
    code: ownCode === null ? null : shown(ownCode, maxName),
    ...(wait !== undefined && { retryAfterSeconds: wait }),
    ...(known?.isFinal && notAgain),
    ...(isObject(details) && { details }),
  };
  // A rate limit may also concern tokens.
  if (status === 401 || status === 403 || status === 429) return failure;
  const refusal =
    lengthRefusal(error, message) ?? (known?.kind === "context-overflow" ? { kind: "prompt" as const } : null);
  return refusal ? refusedLength(failure, refusal) : failure;
}

/** Read by OpenAI's and Anthropic's SDKs, and by this server: the same request would fail again. */
const notAgain = { headers: { "x-should-retry": "false" } } as const;

/** The lengths in an error. Xiaomi sends them in `param` (AQBot-Desktop/AQBot#93). */
function lengthRefusal(error: JsonObject, message: string | null): LengthRefusal | null {
  // llama.cpp sends the numbers as members (ggml-org/llama.cpp#15780).
  const { n_prompt_tokens: asked, n_ctx: most, param } = error;
  if (typeof asked === "number" && typeof most === "number") return { kind: "prompt", tokens: { asked, most } };
  return readLengthRefusal(message ?? "") ?? readLengthRefusal(text(param) ?? "");
}

/** The failure of a request whose prompt or limit is too long: the client's fault, even if the server's status is 5xx. */
function refusedLength(failure: GenerationFailure, refusal: LengthRefusal): GenerationFailure {
  const status = failure.status < 500 ? failure.status : 400;
  const own = { ...failure, status, ...(status !== failure.status && { sourceType: typeOfStatus(status) }) };
  if (refusal.kind === "prompt") {
    const { tokens } = refusal;
    // OpenAI's code, on which its clients compact their history.
    return { ...own, kind: "context-overflow", ...(tokens && { tokens }), code: "context_length_exceeded" };
  }
  const { kind: _, ...answerLimit } = refusal;
  // OpenAI also has the code of a long prompt here, on which a client would compact a history that fits.
  const code = own.code === "context_length_exceeded" ? null : (own.code ?? null);
  return { ...own, kind: "invalid-request", answerLimit, code };
}

/** The message of an error: also in Mistral's list of details, and in OpenRouter's error of its provider. */
function messageOf(error: JsonObject): string | null {
  const { message, metadata } = error;
  if (isObject(message) && message["detail"] !== undefined) return detailText(message["detail"]);
  const raw = isObject(metadata) ? text(metadata["raw"]) : null;
  if (raw !== null && message === "Provider returned error") return rawMessage(raw);
  return text(message) ?? text(error["detail"]) ?? text(error["msg"]);
}

/** The message of an error in text form: JSON, or the message itself. */
function rawMessage(raw: string): string {
  try {
    return readFailure(JSON.parse(raw))?.message ?? raw;
  } catch {
    return raw;
  }
}

/** In characters. A source may send a hundred megabytes as its error, or control sequences of a terminal. */
const maxMessage = 4000;
const maxName = 200;

/** Removes control characters, and cuts the text to `max` characters. */
function shown(words: string, max: number): string {
  // oxlint-disable-next-line no-control-regex -- the pattern looks for control characters
  const printable = words.slice(0, max + 1).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");
  return words.length > max ? `${printable.slice(0, max)}…` : printable;
}

function shownOrNull(value: unknown): string | null {
  const words = text(value);
  return words === null ? null : shown(words, maxName);
}

/** A failure's status: the source's if it is an error, else 502. */
function failureStatus(status: number | undefined): number {
  return status !== undefined && status >= 400 && status < 600 ? status : 502;
}

function typeOfStatus(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** FastAPI's `detail`: a text, or a list of `{loc, msg}`. */
function detailText(detail: unknown): string {
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) {
    const messages = detail.filter(isObject).flatMap((entry) => {
      const message = text(entry["msg"]);
      const place = Array.isArray(entry["loc"]) ? entry["loc"].map(scalarText).join(".") : "";
      return message === null ? [] : [place === "" ? message : `${place}: ${message}`];
    });
    if (messages.length > 0) return messages.join("; ");
  }
  return JSON.stringify(detail);
}

/** At most 300 characters of readable text: a page's title, or its text without tags. */
function plainWords(body: string): string {
  const start = body.slice(0, 20_000);
  const words = titleOf(start) ?? withoutTags(start);
  return shown(words.replace(/\s+/g, " ").trim().slice(0, 300), 300);
}

function titleOf(page: string): string | undefined {
  const open = page.search(/<title\b/i);
  const from = open === -1 ? -1 : page.indexOf(">", open);
  const to = from === -1 ? -1 : page.indexOf("<", from);
  return to !== -1 && /^<\/title>/i.test(page.slice(to, to + 8)) ? page.slice(from + 1, to) : undefined;
}

/** Replaces each tag, and each script and style with its content, by a space. Reads the page once, however many tags it leaves open. */
function withoutTags(page: string): string {
  const lower = page.toLowerCase();
  /** Elements whose content is no text, and which may still end. */
  const hidden = new Set(["script", "style"]);
  let text = "";
  let at = 0;
  for (let open = page.indexOf("<"); open !== -1; open = page.indexOf("<", at)) {
    text += `${page.slice(at, open)} `;
    const name = /^<(script|style)\b/.exec(lower.slice(open, open + 8))?.[1] ?? "";
    const close = hidden.has(name) ? lower.indexOf(`</${name}>`, open) : -1;
    if (close === -1) hidden.delete(name);
    const end = page.indexOf(">", Math.max(open, close));
    if (end === -1) return text + page.slice(open);
    at = end + 1;
  }
  return text + page.slice(at);
}

/** The lengths of a prompt and its answer in a server's refusal, in tokens. */
type LengthRefusal =
  /** The prompt alone fills or exceeds the context. `tokens`: absent if the server does not send both numbers. */
  | { readonly kind: "prompt"; readonly tokens?: { readonly asked: number; readonly most: number } }
  /**
   * The prompt fits, but the request's limit on the answer's length is too high. `max`: the highest limit that the server takes; null
   * if its message does not contain it. `context`: the maximum of prompt and answer together, where `max` is null.
   */
  | { readonly kind: "answer"; readonly max: number }
  | { readonly kind: "answer"; readonly max: null; readonly context: number };

/** In characters. Only the start of a longer message is read. */
const maxMessageLength = 4000;

/**
 * Refusals of a limit. Their groups, in tokens: `context` (for prompt and answer together), `prompt`, `total` (prompt and limit), `limit`
 * (as requested), `max` (the highest limit that is taken), `above` (the lowest that is not). `least`: the prompt was not read to its end,
 * so its number is a lower bound. `strict`: prompt and answer must be less than the context.
 */
const limitRefusals: readonly RegExp[] = [
  // SGLang, python/sglang/srt/managers/tokenizer_manager.py: refuses a sum that equals the context, too.
  /(?<strict>requested token count) exceeds the model's maximum context length of (?<context>\d+) tokens[^]{0,100}?total of (?<total>\d+) tokens[^]{0,100}? (?<limit>\d+) tokens for the completion/i,
  // OpenAI, DeepSeek and vLLM until 0.8 ("9224 tokens (1224 in the messages, 8000 in the completion)": ChatGPTNextWeb/NextChat#3195,
  // vllm-project/vllm#20409); OpenAI's completions ("6283 in your prompt; 256 for the completion"); OpenRouter ("about 141607 tokens
  // (10535 of text input, 131072 in the output)": Aider-AI/aider#3721).
  /maximum context length is (?<context>\d+) tokens[^]{0,40}?requested (?:about )?(?<total>\d+) tokens \([^)]{0,200}?(?<limit>\d+) (?:in|for) the (?:completion|output)\)/i,
  // vLLM 0.9 to 0.13, vllm/entrypoints/openai/serving_engine.py.
  /maximum context length is (?<context>\d+) tokens and your request has (?<prompt>\d+) input tokens/i,
  // vLLM since 0.16, vllm/renderers/params.py; the prompt is cut one token after what the limit leaves of the context (vllm-project/vllm#42474).
  /maximum context length is (?<context>\d+) tokens\. However, you requested (?<limit>\d+) output tokens and your prompt contains (?:(?<least>at least )?(?<prompt>\d+) input tokens|(?<characters>\d+) characters)/i,
  // vLLM 0.14 and 0.15, the same file.
  /(?<least>You passed) (?:(?<prompt>\d+) input tokens|(?<characters>\d+) input characters) and requested (?<limit>\d+) output tokens\. However, the model's context length is only (?<context>\d+) tokens/i,
  // The same file: a limit above the context, before the prompt is read (vllm-project/vllm#40324).
  /max_\w{1,40}=\d{1,20} ?cannot be greater than max_model_len=max_total_tokens=(?<context>\d+)/i,
  // text-generation-inference, router/src/validation.rs, and Together (stanford-crfm/helm#2079).
  /`inputs` tokens \+ `max_new_tokens` must be <= (?<context>\d+)\. Given: (?<prompt>\d+) `inputs` tokens/i,
  /`max_new_tokens` must be <= (?<max>\d+)/i,
  // Anthropic (anthropics/claude-code#4951, OpenHands/OpenHands#11090).
  /input length and `?max_tokens`? exceed context limit: (?<prompt>\d+) \+ \d+ > (?<context>\d+)/i,
  /max_tokens: \d+ > (?<max>\d+), which is the maximum allowed number of output tokens/i,
  // OpenAI and Azure ("max_tokens is too large: 8192. This model supports at most 4096 completion tokens": ChatGPTNextWeb/NextChat#3195).
  /supports at most (?<max>\d+) (?:completion|output) tokens/i,
  // DeepSeek (deepseek-ai/DeepSeek-V3#69) and DashScope (open-webui/open-webui#10507).
  /range of max_\w{0,40}tokens (?:is|should be) \[\d+, ?(?<max>\d+)\]/i,
  // Groq (anomalyco/opencode#1000, Alishahryar1/free-claude-code#955, skapadia3214/groq-moa#8).
  /max_\w{0,40}tokens`?(?: for `[^`]{1,200}`)? must be less than or equal to `?(?<max>\d+)/i,
  // Gemini (BerriAI/litellm#10548).
  /maxOutputTokens value of \d+ but the supported range is from \d+ \(inclusive\) to (?<above>\d+) \(exclusive\)/i,
  // Amazon Bedrock (langgenius/dify#10390: the named limit itself is taken).
  /maximum tokens you requested exceeds the model limit of (?<max>\d+)/i,
  // Fireworks, without a stream (nextlevelbuilder/goclaw#660).
  /requests with max_tokens > (?<max>\d+) must have stream=true/i,
  // Z.AI (diegosouzapw/OmniRoute#4518).
  /max_tokens parameter is illegal[^]{0,40}?\[\d+, ?(?<max>\d+)\]/i,
];

/** Refusals of a prompt; `prompt` and `context` in tokens. */
const promptRefusals: readonly RegExp[] = [
  // Anthropic.
  /prompt is too long: (?<prompt>\d+) tokens > (?<context>\d+) maximum/i,
  /request size exceeds model context window/i,
  // OpenAI: chat, Responses. OpenRouter, of a request without a limit.
  /maximum context length is (?<context>\d+) tokens[^]{0,40}?your messages resulted in (?<prompt>\d+) tokens/i,
  /input exceeds the context window of this model/i,
  /maximum context length is (?<context>\d+) tokens[^]{0,40}?requested (?:about )?(?<prompt>\d+) tokens \(\d+ of text input\)/i,
  // vLLM until 0.13, vllm/entrypoints/openai/serving_engine.py: chat; embeddings.
  /maximum context length is (?<context>\d+) tokens\. However, (?:your request has|you requested) (?<prompt>\d+) (?:input )?tokens/i,
  // vLLM 0.32, vllm/renderers/params.py, `_token_len_check`; the prompt is cut one token after the context.
  /maximum context length is (?<context>\d+) tokens\. However, your prompt contains (?:at least )?(?<prompt>\d+) input tokens, which exceeds/i,
  // SGLang, python/sglang/srt/managers/tokenizer_manager.py; Together.
  /input \((?<prompt>\d+) tokens\) is longer than the model's context length \((?<context>\d+) tokens\)/i,
  // vLLM's engine, and of multimodal prompts (vllm-project/vllm#12165).
  /prompt \((?:total )?length (?<prompt>\d+)\) is (?:longer than the maximum model length of|too long to fit into the model \(context length) (?<context>\d+)/i,
  // text-generation-inference, router/src/validation.rs.
  /`inputs` must have less than (?<context>\d+) tokens\. Given: (?<prompt>\d+)/i,
  // llama.cpp, tools/server/server-context.cpp; before 2025-10 without numbers. Ollama, llm/llama_server.go and x/mlxrunner/pipeline.go.
  /request \((?<prompt>\d+) tokens\) exceeds the available context size \((?<context>\d+) tokens\)/i,
  /exceeds the available context size/i,
  /prompt is longer than the context length currently available/i,
  /input length (?:\((?<prompt>\d+)(?: tokens)?\) )?exceeds (?:the )?(?:model's maximum )?context length(?: \((?<context>\d+))?/i,
  // LM Studio (Gitlawb/openclaude#353, lmstudio-ai/lmstudio-bug-tracker#546, anomalyco/opencode#11141).
  /tokens to keep from the initial prompt is greater than the context length(?: \(n_keep: (?<prompt>\d+) ?>= ?n_ctx: (?<context>\d+)\))?/i,
  /keep the first (?<prompt>\d+) tokens when context the overflows\. However, the model is loaded with context length of only (?<context>\d+) tokens/i,
  /cannot truncate prompt with n_keep \((?<prompt>\d+)\) >= n_ctx \((?<context>\d+)\)/i,
  // Mistral.
  /prompt contains (?<prompt>\d+) tokens[^]{0,60}? too large for model with (?<context>\d+) maximum context length/i,
  // xAI; Gemini (google-gemini/gemini-cli#4692); GitHub Copilot; DashScope; Bedrock.
  /maximum prompt length is (?<context>\d+) but the request contains (?<prompt>\d+) tokens/i,
  /input token count \((?<prompt>\d+)\) exceeds the maximum number of tokens allowed \((?<context>\d+)\)/i,
  /prompt token count of (?<prompt>\d+) exceeds the limit of (?<context>\d+)/i,
  /range of input length should be \[\d+, ?\d+\]/i,
  /input is too long for requested model/i,
];

/**
 * Reads the lengths in a refusal's message, in the wordings above; null for any other message. A message with a prompt and a context
 * results in `prompt` if and only if the prompt leaves less than one token of the context.
 */
export function readLengthRefusal(message: string): LengthRefusal | null {
  const words = message.slice(0, maxMessageLength);
  for (const pattern of limitRefusals) {
    const found = pattern.exec(words);
    if (found) return limitRefusal(found.groups ?? {});
  }
  for (const pattern of promptRefusals) {
    const found = pattern.exec(words);
    if (!found) continue;
    const { prompt, context } = found.groups ?? {};
    if (prompt === undefined || context === undefined) return { kind: "prompt" };
    if (Number(prompt) < Number(context)) continue;
    return { kind: "prompt", tokens: { asked: Number(prompt), most: Number(context) } };
  }
  return null;
}

type Groups = Readonly<Record<string, string | undefined>>;

function limitRefusal(groups: Groups): LengthRefusal {
  const { max, above, least, strict, characters } = groups;
  if (max !== undefined) return { kind: "answer", max: Number(max) };
  if (above !== undefined) return { kind: "answer", max: Number(above) - 1 };
  const context = Number(groups["context"]);
  const prompt = promptTokens(groups, context);
  if (prompt === null) return { kind: "answer", max: null, context };
  const free = context - prompt - (strict === undefined ? 0 : 1);
  if (free < 1) return { kind: "prompt", tokens: { asked: prompt, most: context } };
  const isExact = least === undefined && characters === undefined;
  return isExact ? { kind: "answer", max: free } : { kind: "answer", max: null, context };
}

/** The number of the prompt's tokens, or its lower bound; null if the message does not contain it. */
function promptTokens({ prompt, total, limit, characters }: Groups, context: number): number | null {
  if (prompt !== undefined) return Number(prompt);
  if (total !== undefined) return Number(total) - Number(limit);
  // According to the server these characters are more tokens than the limit leaves of the context.
  return characters === undefined ? null : context - Number(limit) + 1;
}
