import * as z from "zod";
import type { ModelInfo } from "../../core/engine.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { inWireOrder } from "../members.ts";
import { keyIn as bearerIn } from "../api-error-format.ts";
import type { AnswerContext, CountedRequest, ReadRequest } from "../port.ts";
import type { ServedPort } from "../port-state.ts";
import type { RateLevels } from "../rate-limits.ts";
import type { ModelListFormat, ApiErrorFormat } from "../api-error-format.ts";
import { editContext, type EditedContext } from "./context-edits.ts";
import { diagnose, isDiagnosed } from "./diagnosis.ts";
import { anthropicError, asMessagesFailure, errorJson } from "./error-object.ts";
import { messageForms } from "./form.ts";
import { messageId, messagesRequestId } from "./ids.ts";
import { messageIssueFailure } from "./request-issue.ts";
import { messageRequestInSteps } from "./request.ts";
import type { ReadMessageRequest } from "./request.ts";
import * as schema from "./schema.ts";
import { PrefacedWriter, unavailableSearch, withContent } from "./web-search.ts";
import { MessageStreamWriter } from "./write-stream.ts";
import { writeMessageResponse } from "./write.ts";
import type { MessageContext, MessageOptions } from "./write.ts";

/**
 * Lists models as Anthropic does, for clients that expect its form. All models are active and on one page. An unknown time of creation is
 * 1970-01-01, unknown limits are `null`. Source: recordings of 2026, and the types of Anthropic's SDK 1.12.0.
 */
const anthropicModels: ModelListFormat = {
  isRequested: (header) => header("anthropic-version") !== undefined || header("x-api-key") !== undefined,
  list(all, queries) {
    const lifecycles = queries?.("lifecycle[]") ?? [];
    const { error } = z.array(schema.modelLifecycle).safeParse(lifecycles);
    if (error) throw messageIssueFailure("lifecycle", lifecycles, error.issues);
    const models = lifecycles.length === 0 || lifecycles.includes(active) ? all : [];
    return jsonOf(schema.modelInfoPage, {
      data: models.map(modelObject),
      has_more: false,
      first_id: models[0]?.id ?? null,
      last_id: models.at(-1)?.id ?? null,
    });
  },
  one: (model) => jsonOf(schema.modelInfo, modelObject(model)),
};

const active = "active" as const;

const yes = { supported: true };
const no = { supported: false };

function modelObject({ id, created, contextLength, maxOutputTokens, takesImages: sees }: ModelInfo) {
  return {
    type: "model" as const,
    id,
    display_name: id,
    created_at: atFullSecond(created * 1000),
    max_input_tokens: contextLength ?? null,
    max_tokens: maxOutputTokens ?? contextLength ?? null,
    capabilities: {
      batch: no,
      citations: no,
      code_execution: no,
      context_management: {
        clear_thinking_20251015: yes,
        clear_tool_uses_20250919: yes,
        compact_20260112: no,
        supported: true,
      },
      effort: { supported: true, low: yes, medium: yes, high: yes, xhigh: yes, max: yes },
      image_input: sees === true ? yes : no,
      pdf_input: no,
      server_tools: { supported: false, web_search: no, code_execution: no },
      structured_outputs: yes,
      thinking: { supported: true, types: { enabled: yes, adaptive: yes, between_tools: yes, disabled: yes } },
    },
    lifecycle: active,
    deprecated_at: null,
    retires_at: null,
    line: null,
  };
}

/** Anthropic's headers and errors: the key in `x-api-key` or as a Bearer token, `request-id`, the error object. */
export const anthropicFormat: ApiErrorFormat = {
  keyIn: (header) => header("x-api-key")?.trim() || bearerIn(header),
  newRequestId: messagesRequestId,
  answerHeaders: (requestId) => ({ "request-id": requestId, "x-request-id": requestId }),
  limitHeaders: anthropicLimitHeaders,
  models: anthropicModels,
  writeFailure(given, profile, requestId, header = () => undefined) {
    const isBearer = (header("x-api-key") ?? "") === "" && bearerIn(header) !== "";
    const failure = asMessagesFailure(given, profile, isBearer);
    const { status } = anthropicError(failure);
    return {
      status,
      contentType: "application/json",
      body: errorJson(failure, requestId),
      // Anthropic's clients follow this header for every status.
      headers: { "x-should-retry": String(status === 429 || (status >= 500 && status !== 501)) },
    };
  },
};

/**
 * Returns the headers with what is left of a key's rate limits; `now` in Unix milliseconds. Source:
 * https://platform.claude.com/docs/en/api/rate-limits, "Response headers".
 */
export function anthropicLimitHeaders(levels: RateLevels, now: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const rate of ["requests", "tokens"] as const) {
    const level = levels[rate];
    if (!level) continue;
    headers[`anthropic-ratelimit-${rate}-limit`] = String(level.limit);
    headers[`anthropic-ratelimit-${rate}-remaining`] = String(level.remaining);
    headers[`anthropic-ratelimit-${rate}-reset`] = atFullSecond(Math.ceil((now + level.resetMs) / 1000) * 1000);
  }
  return headers;
}

/** Writes an object with the members in the order of its schema. */
function jsonOf<Schema extends z.ZodType>(schema: Schema, value: z.input<Schema>): string {
  return JSON.stringify(inWireOrder(schema, value));
}

/** Returns a time as RFC 3339, in UTC. Full seconds have no fraction. */
function atFullSecond(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(".000Z", "Z");
}

/** `POST /v1/messages`. */
export const messagesPort: ServedPort = {
  name: "messages",
  path: "/messages",
  errorFormat: anthropicFormat,
  *readRequest(body, requestId, options) {
    return withWriters(yield* messageRequestInSteps(body, requestId, options));
  },
  state: {
    isNeeded: isDiagnosed,
    async readRequest(body, requestId, options, keyspaces, inTurns) {
      const read = await inTurns(messageRequestInSteps(body, requestId, options));
      const { request } = read;
      const diagnosis = await diagnose(body as JsonObject, request, keyspaces.stored, inTurns);
      return {
        ...withWriters({ ...read, options: { ...read.options, diagnosis } }),
        store: () => diagnosis.stored(),
      };
    },
    routes: [],
  },
  tokenCounter: {
    path: "/messages/count_tokens",
    *readRequest(body, requestId, options) {
      return counted(yield* messageRequestInSteps(body, requestId, { ...options, countsTokens: true }));
    },
    write: (tokens, original) =>
      jsonOf(schema.tokenCount, {
        input_tokens: tokens,
        ...(original !== undefined && { context_management: { original_input_tokens: original } }),
      }),
  },
  probePath: "/api/hello",
  streamHeaders: ({ name }) => messageForms[name].streamHeaders,
};

/**
 * The prompt before and after `context_management`. An upstream of this API edits by itself, so the two counts are those of its body without
 * and with that member. No edit compacts here: it applies to generated messages only.
 * Source: https://platform.claude.com/docs/en/build-with-claude/context-editing ("Token counting").
 */
function counted({ request, edits }: ReadMessageRequest): CountedRequest {
  const { passthrough } = request;
  const { context_management: management, ...body } = passthrough?.body ?? {};
  if (edits) {
    const clearing = edits.filter(({ type }) => type !== "compact_20260112");
    return { request, editPrompt: async (count) => (await editContext(request, clearing, count)).request };
  }
  if (!passthrough || !isObject(management)) return { request };
  return { request: { ...request, passthrough: { ...passthrough, body } }, editPrompt: async () => request };
}

function withWriters({ request, warnings, options: read, edits, searchesOnly }: ReadMessageRequest): ReadRequest {
  let applied: EditedContext["applied"] = [];
  const options: MessageOptions = edits ? { ...read, appliedEdits: () => applied } : read;
  return {
    request,
    warnings,
    ...(edits && {
      async editPrompt(countTokens) {
        const edited = await editContext(request, edits, countTokens);
        applied = edited.applied;
        return edited.request;
      },
    }),
    ...(searchesOnly && { generatesNothing: true }),
    streamWriter: (context) => {
      const writer = new MessageStreamWriter(messageContext(context, options));
      return searchesOnly ? new PrefacedWriter(writer, unavailableSearch(request, context.random)) : writer;
    },
    writeResponse: (generation, context) =>
      writeMessageResponse(
        searchesOnly ? withContent(generation, unavailableSearch(request, context.random)) : generation,
        messageContext(context, options),
      ),
  };
}

function messageContext(context: AnswerContext, options: MessageOptions): MessageContext {
  const id = messageId(context.created, context.random);
  context.onId?.(id);
  return { ...context, options, id };
}
