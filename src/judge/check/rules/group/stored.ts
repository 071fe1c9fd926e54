import { isObject } from "../../../../wire/core/json.ts";
import type { Exchange } from "../exchange.ts";
import { shown } from "../place.ts";
import { lastResponse } from "../responses/response-content.ts";
import { bodyView, type Json } from "../view.ts";
import { type GroupVerdict, notShown, verdictOn } from "./group-rule.ts";

/** The statuses of a server without this path or method. */
const unsupported: ReadonlySet<number> = new Set([404, 405, 501]);

/** True for the refusal of an optional feature. Any other failure violates a rule. */
function isRefused({ response }: Exchange): boolean {
  return (response.status >= 400 && response.status < 500) || response.status === 501;
}

/** `created`: the answer of POST; `found`: the answer of GET after it. */
export function judgeShown(created: Exchange, found: Exchange): GroupVerdict {
  const { status } = found.response;
  if (unsupported.has(status)) return notShown(`a stored response is not shown (status ${status})`);
  if (status !== 200) return verdictOn("stored/shown", `status ${status}`);
  const [before, after] = [lastResponse(created) ?? {}, lastResponse(found) ?? {}];
  const member = ["id", "model", "status", "output", "usage"].find(
    (name) => JSON.stringify(sorted(before[name])) !== JSON.stringify(sorted(after[name])),
  );
  return verdictOn(
    "stored/shown",
    member && `${member} is ${shown(after[member])}, ${shown(before[member])} was answered`,
  );
}

/** `text`: a text of the input. */
export function judgeInputItems(text: string, found: Exchange): GroupVerdict {
  const { status } = found.response;
  if (unsupported.has(status)) return notShown(`input items are not listed (status ${status})`);
  if (status !== 200) return verdictOn("stored/input-items", `status ${status}`);
  const { value } = bodyView(found);
  const data = isObject(value) ? value.data : undefined;
  const holds = JSON.stringify(data ?? null).includes(JSON.stringify(text));
  return verdictOn("stored/input-items", holds ? undefined : `${shown(data)} without the input`);
}

/** A prompt of thirty words has more tokens than this, unless the server does not count. */
const minTokens = 20;

/** `first`: a request of at least thirty words; `next`: a short one that continues it. */
export function judgeContinued(first: Exchange, next: Exchange): GroupVerdict {
  const { status } = next.response;
  if (isRefused(next)) return notShown(`previous_response_id is refused (status ${status})`);
  if (status !== 200) return verdictOn("stored/continued", `status ${status}`);
  return judgeLongerPrompt("stored/continued", first, next);
}

/** Judges the same by WebSocket, where the feature is not optional. */
export function judgeContinuedBySocket(first: Exchange, next: Exchange): GroupVerdict {
  if (next.endpoint === "response-socket-error")
    return verdictOn("socket/continued", `refused: ${shown(messageIn(next))}`);
  return judgeLongerPrompt("socket/continued", first, next);
}

function judgeLongerPrompt(rule: string, first: Exchange, next: Exchange): GroupVerdict {
  const [before, after] = [promptOf(first), promptOf(next)];
  if (before === undefined || after === undefined || before < minTokens) return notShown("the tokens are not counted");
  return verdictOn(rule, after > before ? undefined : `a prompt of ${after} tokens after one of ${before}`);
}

/** `deletion`: the answer of DELETE; `after`: the answers of GET and of a request with previous_response_id after it. */
export function judgeDeleted(deletion: Exchange, after: readonly Exchange[]): GroupVerdict {
  const { status } = deletion.response;
  if (isRefused(deletion)) return notShown(`a stored response is not deleted (status ${status})`);
  if (status >= 300) return verdictOn("stored/deleted", `status ${status}`);
  const found = after.find((exchange) => !isRefused(exchange));
  return verdictOn(
    "stored/deleted",
    found && `status ${found.response.status} of ${found.request.method} ${found.request.path} after it was deleted`,
  );
}

/** `found`: the answer of GET for a response with store: false. */
export function judgeNotKept(found: Exchange): GroupVerdict {
  return verdictOn("stored/not-kept", found.response.status < 300 ? "it is shown all the same" : undefined);
}

/**
 * `begun`: the answer to a request with background: true; `shownThen`: the answers of GET after it, the last one from when the response
 * had ended or the time was up.
 */
export function judgeBackground(begun: Exchange, shownThen: readonly Exchange[]): GroupVerdict {
  const { id, status } = lastResponse(begun) ?? {};
  const rule = "stored/background";
  if (isRefused(begun)) return notShown(`background is refused (status ${begun.response.status})`);
  if (begun.response.status !== 200) return verdictOn(rule, `status ${begun.response.status}`);
  if (!isRunning(status)) return notShown("the response was complete immediately");
  const lost = shownThen.find(({ response }) => response.status !== 200);
  if (lost) return verdictOn(rule, `status ${lost.response.status} while it is ${shown(status)}`);
  const responses = shownThen.map((exchange) => lastResponse(exchange) ?? {});
  const other = responses.find((response) => response.id !== id);
  if (other) return verdictOn(rule, `the id ${shown(other.id)} in place of ${shown(id)}`);
  const last = responses.at(-1)?.status;
  return verdictOn(rule, isRunning(last) || last === undefined ? `still ${shown(last)} in the end` : undefined);
}

/** True for the status of a response that is still generated. */
export function isRunning(status: unknown): boolean {
  return status === "queued" || status === "in_progress";
}

/** `compaction`: the answer of /responses/compact; `next`: the answer to a request with its output as input. */
export function judgeCompacted(compaction: Exchange, next: Exchange | undefined): GroupVerdict {
  const { status } = compaction.response;
  if (isRefused(compaction)) return notShown(`histories are not compacted (status ${status})`);
  if (status !== 200 || !next) return verdictOn("stored/compacted", `status ${status}`);
  const found = next.response.status === 200 ? undefined : `status ${next.response.status} when it is given back`;
  return verdictOn("stored/compacted", found);
}

/**
 * `first`: a response of at least thirty words in a conversation, with the input `text`; `next`: a short one after it; `items`: the items
 * of the conversation then.
 */
export function judgeConversation(
  text: string,
  first: Exchange,
  next: Exchange,
  items: Exchange | undefined,
): GroupVerdict {
  const rule = "stored/conversation";
  if (isRefused(first)) return notShown(`the parameter conversation is refused (status ${first.response.status})`);
  const failed = [first, next].find(({ response }) => response.status !== 200);
  if (failed) return verdictOn(rule, `status ${failed.response.status}`);
  const continued = judgeLongerPrompt(rule, first, next);
  if (continued.findings.length > 0 || !items) return continued;
  if (items.response.status !== 200) return verdictOn(rule, `status ${items.response.status} of its items`);
  const { value } = bodyView(items);
  const data = isObject(value) && Array.isArray(value.data) ? value.data : [];
  const holds = JSON.stringify(data).includes(JSON.stringify(text));
  const isAnswered = data.some((item) => isObject(item) && item.role === "assistant");
  return verdictOn(rule, holds && isAnswered ? undefined : `${shown(data)} without what was said`);
}

/** `answer`: the answer to a request by WebSocket that continues an unknown response. */
export function judgeUnknownBySocket(answer: Exchange): GroupVerdict {
  const rule = "socket/unknown";
  if (answer.endpoint !== "response-socket-error") return verdictOn(rule, "it is answered");
  const { value } = bodyView(answer);
  const error = isObject(value) && isObject(value.error) ? value.error : {};
  return verdictOn(
    rule,
    error.code === "previous_response_not_found" ? undefined : `the code ${shown(error.code)}: ${shown(error.message)}`,
  );
}

function messageIn(exchange: Exchange): unknown {
  const { value } = bodyView(exchange);
  return isObject(value) && isObject(value.error) ? value.error.message : value;
}

/** Returns the tokens of a prompt, with the cached tokens that some servers leave out. */
function promptOf(exchange: Exchange): number | undefined {
  const { usage } = lastResponse(exchange) ?? {};
  if (!isObject(usage) || typeof usage.input_tokens !== "number") return undefined;
  const { input_tokens_details: details } = usage;
  const cached = isObject(details) && typeof details.cached_tokens === "number" ? details.cached_tokens : 0;
  return cached > usage.input_tokens ? cached + usage.input_tokens : usage.input_tokens;
}

/** Returns a value with its members sorted by name, and without encrypted content, which OpenAI encrypts again for each answer (recorded). */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value as Json).filter(([name]) => name !== "encrypted_content");
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => [name, sorted(one)]));
}
