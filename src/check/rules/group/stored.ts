import { isObject } from "../../../core/json.ts";
import type { Exchange } from "../exchange.ts";
import { shown } from "../place.ts";
import { lastResponse } from "../responses/response-content.ts";
import { bodyView, type Json } from "../view.ts";
import { type GroupRule, type GroupVerdict, notShown, verdictOn } from "./group-rule.ts";

const misunderstood = "requests are misunderstood";
const lost = "text is lost or wrong";

/** Rules about responses that a server keeps. They judge what ../../probe/stored-responses.ts asks. */
export const storedRules: readonly GroupRule[] = [
  {
    id: "stored/shown",
    severity: "error",
    concern: lost,
    says: "GET shows a stored response as it was answered: id, model, status, output, usage.",
    source: "specification: GET /responses/{response_id}",
    breaks: ["official SDKs: responses.retrieve()"],
    judges: "group",
  },
  {
    id: "stored/input-items",
    severity: "error",
    concern: lost,
    says: "The input items of a stored response contain its input.",
    source: "specification: GET /responses/{response_id}/input_items",
    breaks: ["official SDKs: responses.inputItems.list()"],
    judges: "group",
  },
  {
    id: "stored/continued",
    severity: "error",
    concern: lost,
    says: "With previous_response_id the model is told what was said before: the prompt has more tokens than the one before it.",
    source: "specification: previous_response_id; mlx-vlm #1046, ogx #2074",
    breaks: ["every client that continues so, such as openai-agents (the model forgets what was said)"],
    judges: "group",
  },
  {
    id: "stored/deleted",
    severity: "error",
    concern: misunderstood,
    says: "A response that was deleted is gone: GET and previous_response_id do not find it.",
    source: "specification: DELETE /responses/{response_id}",
    breaks: ["users (what they deleted can be read)"],
    judges: "group",
  },
  {
    id: "stored/not-kept",
    severity: "error",
    concern: misunderstood,
    says: "With store: false nothing is kept: GET does not find the response.",
    source: "specification: store",
    breaks: ["users (what must leave no trace can be read)"],
    judges: "group",
  },
  {
    id: "stored/background",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "A response in the background can be asked for until it has ended, and ends.",
    source: "specification: background; praxis-proxy/ai #560, vLLM's agentic-api #357",
    breaks: ["every client that polls (it waits without end, or never finds its answer)"],
    judges: "group",
  },
  {
    id: "stored/compacted",
    severity: "error",
    concern: misunderstood,
    says: "What /responses/compact answers can be given back as input.",
    source: "specification: CompactResource; compliance tests of Open Responses; source code of Codex CLI",
    breaks: ["Codex (its history is lost when it is compacted)"],
    judges: "group",
  },
  {
    id: "socket/continued",
    severity: "error",
    concern: lost,
    says: "By WebSocket a response with store: false is continued on its own connection.",
    source: "OpenAI's documentation: WebSocket mode; compliance tests of Open Responses",
    breaks: ["Codex (it sends only what is new)"],
    judges: "group",
  },
  {
    id: "socket/unknown",
    severity: "warning",
    concern: misunderstood,
    says: "By WebSocket an unknown previous_response_id is refused with the code previous_response_not_found.",
    source: "OpenAI's documentation: WebSocket mode; compliance tests of Open Responses",
    breaks: ["clients that then send the whole conversation again"],
    judges: "group",
  },
];

/** What a server answers that does not have a path, or not this use of it. */
const lacking: ReadonlySet<number> = new Set([404, 405, 501]);

/** A refusal of what a server need not offer; any other failure is a fault. */
function isRefused({ response }: Exchange): boolean {
  return (response.status >= 400 && response.status < 500) || response.status === 501;
}

/** `created`: how it was answered, and `found`: what GET answered then. */
export function judgeShown(created: Exchange, found: Exchange): GroupVerdict {
  const { status } = found.response;
  if (lacking.has(status)) return notShown(`a stored response is not shown (status ${status})`);
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

/** `text`: what was put in. */
export function judgeInputItems(text: string, found: Exchange): GroupVerdict {
  const { status } = found.response;
  if (lacking.has(status)) return notShown(`input items are not listed (status ${status})`);
  if (status !== 200) return verdictOn("stored/input-items", `status ${status}`);
  const { value } = bodyView(found);
  const data = isObject(value) ? value.data : undefined;
  const holds = JSON.stringify(data ?? null).includes(JSON.stringify(text));
  return verdictOn("stored/input-items", holds ? undefined : `${shown(data)} without the input`);
}

/** A prompt of as many words has more tokens, unless nobody counts. */
const fewest = 20;

/** `first`: a request of thirty words or more, and `next`: a short one that continues it. */
export function judgeContinued(first: Exchange, next: Exchange): GroupVerdict {
  const { status } = next.response;
  if (isRefused(next)) return notShown(`previous_response_id is refused (status ${status})`);
  if (status !== 200) return verdictOn("stored/continued", `status ${status}`);
  return judgeTold("stored/continued", first, next);
}

/** The same by WebSocket; a refusal is one of what must be offered there. */
export function judgeContinuedBySocket(first: Exchange, next: Exchange): GroupVerdict {
  if (next.endpoint === "response-socket-error")
    return verdictOn("socket/continued", `refused: ${shown(messageIn(next))}`);
  return judgeTold("socket/continued", first, next);
}

function judgeTold(rule: string, first: Exchange, next: Exchange): GroupVerdict {
  const [before, after] = [promptOf(first), promptOf(next)];
  if (before === undefined || after === undefined || before < fewest) return notShown("the tokens are not counted");
  return verdictOn(rule, after > before ? undefined : `a prompt of ${after} tokens behind one of ${before}`);
}

/** `deletion`: what DELETE answered, and `after`: what GET and previous_response_id led to then. */
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

/** `found`: what GET answered of a response with store: false. */
export function judgeNotKept(found: Exchange): GroupVerdict {
  return verdictOn("stored/not-kept", found.response.status < 300 ? "it is shown all the same" : undefined);
}

/**
 * `begun`: how a request with background: true was answered, and `shown`: what GET answered then, the last one when it had ended or the
 * time was over.
 */
export function judgeBackground(begun: Exchange, shownThen: readonly Exchange[]): GroupVerdict {
  const { id, status } = lastResponse(begun) ?? {};
  const rule = "stored/background";
  if (isRefused(begun)) return notShown(`background is refused (status ${begun.response.status})`);
  if (begun.response.status !== 200) return verdictOn(rule, `status ${begun.response.status}`);
  if (!isRunning(status)) return notShown("the answer was whole at once");
  const lost = shownThen.find(({ response }) => response.status !== 200);
  if (lost) return verdictOn(rule, `status ${lost.response.status} while it is ${shown(status)}`);
  const responses = shownThen.map((exchange) => lastResponse(exchange) ?? {});
  const other = responses.find((response) => response.id !== id);
  if (other) return verdictOn(rule, `the id ${shown(other.id)} in place of ${shown(id)}`);
  const last = responses.at(-1)?.status;
  return verdictOn(rule, isRunning(last) || last === undefined ? `still ${shown(last)} in the end` : undefined);
}

/** Whether a response with this status is still being made. */
export function isRunning(status: unknown): boolean {
  return status === "queued" || status === "in_progress";
}

/** `compaction`: what /responses/compact answered, and `next`: what a request with its output in the input led to. */
export function judgeCompacted(compaction: Exchange, next: Exchange | undefined): GroupVerdict {
  const { status } = compaction.response;
  if (isRefused(compaction)) return notShown(`histories are not compacted (status ${status})`);
  if (status !== 200 || !next) return verdictOn("stored/compacted", `status ${status}`);
  const found = next.response.status === 200 ? undefined : `status ${next.response.status} when it is given back`;
  return verdictOn("stored/compacted", found);
}

/** `answer`: of a request by WebSocket that continues a response that never was. */
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

/** The tokens of a prompt; those that some servers leave out because they were read before are added. */
function promptOf(exchange: Exchange): number | undefined {
  const { usage } = lastResponse(exchange) ?? {};
  if (!isObject(usage) || typeof usage.input_tokens !== "number") return undefined;
  const { input_tokens_details: details } = usage;
  const cached = isObject(details) && typeof details.cached_tokens === "number" ? details.cached_tokens : 0;
  return cached > usage.input_tokens ? cached + usage.input_tokens : usage.input_tokens;
}

/** With members by name, and without what is sealed anew each time (recorded of OpenAI). */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value as Json).filter(([name]) => name !== "encrypted_content");
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => [name, sorted(one)]));
}
