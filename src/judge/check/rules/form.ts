import { chatChunk } from "../../../wire/apis/chat/schema.ts";
import { memberSince } from "../../../wire/apis/members.ts";
import { isOpenAiId } from "../../../wire/apis/tolerant/source-reader.ts";
import { type Exchange, isStream, vendorOf } from "./exchange.ts";
import { isObject } from "../../../wire/core/json.ts";
import { answerDate } from "./profile/member-order.ts";
import { type BodyView, bodyView, type ChoicePart, type StreamView, streamView } from "./view.ts";

/**
 * The legal forms of a chat stream: `lean` of `truewire serve`, OpenAI's current form (`exact`), and OpenAI's older forms. Source: 409
 * recorded streams of 2023-04 to 2026-08. Answers of the other APIs have the form of the month in which their newest member came:
 * `Anthropic's of 2026-09`.
 */
export type Form = "lean" | "exact" | `${"OpenAI's" | "Anthropic's"} of ${string}` | "none of OpenAI's";

/**
 * Returns the form of a chat stream, a response or a message; `undefined` for another exchange, or an answer that does not show its form.
 *
 * @example
 * import { formOf } from "truewire/rules";
 *
 * const choices = [{ index: 0, delta: { role: "assistant" } }];
 * const first = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices };
 * console.log(
 *   formOf({
 *     endpoint: "chat",
 *     request: { method: "POST", path: "/v1/chat/completions", body: { stream: true } },
 *     response: { status: 200, headers: null, body: `data: ${JSON.stringify(first)}\n\n`, complete: true },
 *   }),
 * );
 * // → OpenAI's of early 2023
 */
export function formOf(exchange: Exchange): Form | undefined {
  if (exchange.response.status >= 400) return undefined;
  if (exchange.endpoint !== "chat") return datedForm(exchange);
  return isStream(exchange) ? chatForm(streamView(exchange)) : undefined;
}

function chatForm(view: StreamView): Form | undefined {
  const first = [...view.choices.values()][0]?.[0];
  return first && (firstDeltas(view).every(isRoleAlone) ? roleForm(first) : openaiForm(view, first));
}

function datedForm(exchange: Exchange): Form | undefined {
  const vendor = vendorOf(exchange);
  if (vendor === "Ollama" || vendor === "Google") return undefined;
  const view = isStream(exchange) ? streamView(exchange) : bodyView(exchange);
  const date = answerDate(view);
  if (date === "") return undefined;
  // Only `lean` ends streams of responses with [DONE], and pads no event of a message.
  if ("done" in view && (view.done >= 0 || (exchange.endpoint === "messages" && !/ \}$/m.test(exchange.response.body))))
    return "lean";
  return `${vendor}'s of ${date.slice(0, "2026-09".length)}`;
}

/**
 * Returns whether a chat answer is OpenAI's own of before August 2025. Profile `exact` describes the answers since then; `formOf` names
 * the older forms.
 */
export function isBeforeExact(view: StreamView | BodyView): boolean {
  const first = "chunks" in view ? view.chunks[0]?.value : view.value;
  if (!isObject(first) || view.exchange.endpoint !== "chat") return false;
  const { id, created } = first;
  if (typeof id !== "string" || typeof created !== "number") return false;
  if (created >= memberSince(chatChunk, "obfuscation") || !isOpenAiId(id, created, false)) return false;
  return !("chunks" in view) || chatForm(view)?.startsWith("OpenAI's of") === true;
}

function firstDeltas(view: StreamView): ChoicePart[] {
  return [...view.choices.values()].flatMap((track) => track.slice(0, 1));
}

function isRoleAlone({ delta }: ChoicePart): boolean {
  return Object.keys(delta).join() === "role";
}

function roleForm({ chunk, choice }: ChoicePart): Form {
  if ("system_fingerprint" in chunk.value && "logprobs" in choice) return "lean";
  return "system_fingerprint" in chunk.value ? "none of OpenAI's" : "OpenAI's of early 2023";
}

function openaiForm(view: StreamView, { chunk, delta }: ChoicePart): Form {
  const keys = Object.keys(delta).join();
  // The first deltas of one call, parallel calls, a refusal, and audio.
  const special = [
    "role,content,tool_calls,refusal",
    "role,content,tool_calls",
    "role,content,refusal",
    "role,refusal",
  ].includes(keys);
  const isOpening = special || (keys === "role,content" && (delta.content === "" || delta.content === null));
  if (!isOpening || delta.role !== "assistant") return "none of OpenAI's";
  const options = view.exchange.request.body?.stream_options;
  // Without obfuscation on request, the current form is the same but for that member.
  const isWithoutObfuscation = isObject(options) && options.include_obfuscation === false;
  if (view.chunks.some((one) => "obfuscation" in one.value)) return "exact";
  if (isWithoutObfuscation && "service_tier" in chunk.value && ("refusal" in delta || delta.content === null))
    return "exact";
  if ("service_tier" in chunk.value)
    return isObject(delta) && "refusal" in delta ? "OpenAI's of early 2025" : partial(delta.content);
  if (keys.includes("refusal")) return "OpenAI's of late 2024";
  return "system_fingerprint" in chunk.value ? "OpenAI's of 2024" : "OpenAI's of late 2023";
}

/** Streams of parallel calls, each with its own header, have never had a `refusal` member. */
function partial(content: unknown): Form {
  return content === null ? "OpenAI's of early 2025" : "none of OpenAI's";
}
