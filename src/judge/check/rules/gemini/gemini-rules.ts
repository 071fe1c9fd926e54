import { isObject } from "../../../../wire/core/json.ts";
import {
  geminiEmbedding,
  geminiEmbeddings,
  geminiError,
  geminiFinishReason,
  geminiModel,
  geminiModelList,
  geminiPartKinds,
  geminiResponse,
  geminiStatuses,
  geminiTokenCount,
} from "../../../../wire/apis/gemini/schema.ts";
import { type Exchange, isStream } from "../exchange.ts";
import { framesOf } from "../frames.ts";
import { atEnd, notJson, shown } from "../place.ts";
import {
  endsWithError,
  type JsonLine,
  type JsonLines,
  jsonLines,
  rulesOfSchemas,
  succeeded,
} from "../spec/json-lines.ts";
import { type Json, parsedJson } from "../view.ts";
import { type Rules, notShown } from "../rule.ts";

/** A whole answer, the events of a stream, or the items of a stream that is a JSON list. */
export function geminiView(exchange: Exchange): JsonLines {
  const streams = isStream(exchange);
  return jsonLines(exchange, streams, chunksOf(exchange, streams));
}

function chunksOf({ request, response: { body } }: Exchange, streams: boolean): readonly JsonLine[] {
  const whole = { start: 0, end: body.length };
  const isList = request.path === "" ? /^\s*\[/.test(body) : !/[?&]alt=sse\b/.test(request.path);
  if (!streams || isList) {
    const value = parsedJson(body);
    if (!streams) return [{ ...whole, text: body, value }];
    const items: readonly unknown[] | undefined = Array.isArray(value) ? value : undefined;
    // The place of an item is the whole list.
    return (
      items?.map((item) => ({ ...whole, text: body, value: item })) ?? [{ ...whole, text: body, value: undefined }]
    );
  }
  return framesOf(body).map(({ start, end, data }) => ({
    start,
    end,
    text: data ?? "",
    value: parsedJson(data ?? ""),
  }));
}

const schemaRules = rulesOfSchemas("gemini", {
  gemini: geminiResponse,
  "gemini-tokens": geminiTokenCount,
  "gemini-models": geminiModelList,
  "gemini-model": geminiModel,
  "gemini-embedding": geminiEmbedding,
  "gemini-embeddings": geminiEmbeddings,
});

const generates = (view: JsonLines): boolean => succeeded(view) && view.exchange.endpoint === "gemini";
const objects = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : []);
const member = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined);
const config = ({ exchange }: JsonLines, name: string): unknown =>
  member(exchange.request.body?.["generationConfig"], name);
const isBlocked = ({ values }: JsonLines): boolean =>
  values.some(({ value }) => member(value["promptFeedback"], "blockReason") !== undefined);

/** A candidate of one chunk, with the place of the chunk. */
interface Candidate {
  readonly at: JsonLine;
  readonly index: number;
  readonly value: Json;
  readonly parts: readonly Json[];
}

function candidatesOf({ values }: JsonLines): readonly Candidate[] {
  return values.flatMap((at) =>
    objects(at.value["candidates"]).map((value) => ({
      at,
      index: typeof value["index"] === "number" ? value["index"] : 0,
      value,
      parts: objects(member(value["content"], "parts")),
    })),
  );
}

const callsOf = (view: JsonLines): readonly { readonly at: JsonLine; readonly call: Json }[] =>
  candidatesOf(view).flatMap(({ at, parts }) =>
    parts.flatMap(({ functionCall: call }) => (isObject(call) ? [{ at, call }] : [])),
  );

/** The text of the first candidate, without thoughts. */
const textOf = (view: JsonLines): string =>
  candidatesOf(view)
    .filter(({ index }) => index === 0)
    .flatMap(({ parts }) =>
      parts.map(({ text, thought }) => (thought === true || typeof text !== "string" ? "" : text)),
    )
    .join("");

const finishes = (view: JsonLines): readonly (Candidate & { readonly reason: unknown })[] =>
  candidatesOf(view).flatMap((one) =>
    one.value["finishReason"] === undefined ? [] : [{ ...one, reason: one.value["finishReason"] }],
  );
const lastFinish = (view: JsonLines): unknown => finishes(view).at(-1)?.reason;

/** Sources: https://ai.google.dev/api/generate-content, and the recordings that `wire/apis/gemini/schema.ts` names. */
export const geminiRules: Rules<JsonLines> = {
  ...schemaRules,
  *"gemini/content-type"(view) {
    const { headers } = view.exchange.response;
    if (!succeeded(view) || headers === null) return notShown;
    const type = headers["content-type"] ?? "none";
    const due =
      view.isStream && view.exchange.request.path.includes("alt=sse") ? "text/event-stream" : "application/json";
    if (!type.startsWith(due)) yield { start: 0, end: 0, found: `content type ${type} instead of ${due}` };
  },
  *"gemini/finish"(view) {
    if (!generates(view) || isBlocked(view)) return notShown;
    if (endsWithError(view)) return;
    const candidates = candidatesOf(view);
    const { body } = view.exchange.response;
    if (candidates.length === 0) yield atEnd(body, "no candidate");
    const finished = new Set<number>();
    for (const { at, index, value, parts } of candidates) {
      if (finished.has(index) && parts.length > 0)
        yield { start: at.start, end: at.end, found: `parts of candidate ${index} after its finishReason` };
      if (value["finishReason"] !== undefined) finished.add(index);
    }
    for (const index of new Set(candidates.map((one) => one.index)))
      if (!finished.has(index)) yield atEnd(body, `candidate ${index} has no finishReason`);
  },
  *"gemini/finish-reason"(view) {
    if (!generates(view) || finishes(view).length === 0) return notShown;
    for (const { at, reason } of finishes(view))
      if (!geminiFinishReason.safeParse(reason).success)
        yield { start: at.start, end: at.end, found: `finishReason is ${shown(reason)}` };
  },
  *"gemini/role"(view) {
    if (!generates(view)) return notShown;
    for (const { at, value } of candidatesOf(view)) {
      const { content } = value;
      if (isObject(content) && objects(content["parts"]).length > 0 && content["role"] !== "model")
        yield { start: at.start, end: at.end, found: `the role is ${shown(content["role"])}` };
    }
  },
  *"gemini/part"(view) {
    if (!generates(view)) return notShown;
    for (const { at, parts } of candidatesOf(view))
      for (const part of parts) {
        const kinds = geminiPartKinds.filter((kind) => kind in part);
        if (kinds.length > 1) yield { start: at.start, end: at.end, found: `a part with ${kinds.join(" and ")}` };
        else if (kinds.length === 0 && part["thoughtSignature"] === undefined)
          yield { start: at.start, end: at.end, found: `a part with ${Object.keys(part).join(", ") || "nothing"}` };
      }
  },
  *"gemini/call"(view) {
    const tools = view.exchange.request.body?.["tools"];
    if (!generates(view) || !Array.isArray(tools)) return notShown;
    const names = new Set(
      objects(tools).flatMap((tool) => objects(tool["functionDeclarations"]).map((declared) => declared["name"])),
    );
    for (const { at, call } of callsOf(view))
      if (!names.has(call["name"])) yield { start: at.start, end: at.end, found: `a call of ${shown(call["name"])}` };
  },
  *"gemini/call-ids"(view) {
    const calls = callsOf(view);
    if (!generates(view) || calls.length === 0) return notShown;
    const ids = new Set<unknown>();
    for (const { at, call } of calls) {
      if (call["id"] !== undefined && ids.has(call["id"]))
        yield { start: at.start, end: at.end, found: `the id ${shown(call["id"])} twice` };
      ids.add(call["id"]);
    }
  },
  *"gemini/call-mode"(view) {
    const choice = member(view.exchange.request.body?.["toolConfig"], "functionCallingConfig");
    const mode = member(choice, "mode");
    if (!generates(view) || (mode !== "NONE" && mode !== "ANY") || isBlocked(view)) return notShown;
    const calls = callsOf(view);
    const [first] = calls;
    if (mode === "NONE" && first)
      yield {
        start: first.at.start,
        end: first.at.end,
        found: `a call of ${shown(first.call["name"])} with mode NONE`,
      };
    if (mode === "ANY" && calls.length === 0 && lastFinish(view) === "STOP")
      yield atEnd(view.exchange.response.body, "no call with mode ANY");
  },
  *"gemini/usage"(view) {
    if (!generates(view) || endsWithError(view)) return notShown;
    const last = view.values.at(-1);
    const usage = last?.value["usageMetadata"];
    if (!isObject(usage)) {
      yield atEnd(view.exchange.response.body, "the last chunk has no usageMetadata");
      return;
    }
    const parts = ["promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount"];
    const sum = parts.reduce((total, name) => total + Number(usage[name] ?? 0), 0);
    if (typeof usage["totalTokenCount"] === "number" && usage["totalTokenCount"] !== sum)
      yield {
        start: last?.start ?? 0,
        end: last?.end ?? 0,
        found: `totalTokenCount is ${usage["totalTokenCount"]}, the counts are ${sum} together`,
      };
  },
  *"gemini/same-answer"(view) {
    if (!generates(view) || view.values.length < 2) return notShown;
    for (const name of ["responseId", "modelVersion"]) {
      const all = new Set(view.values.map(({ value }) => value[name]));
      if (all.size > 1)
        yield { start: 0, end: 0, found: `${name} is ${[...all].map(shown).slice(0, 3).join(", then ")}` };
    }
  },
  *"gemini/limit"(view) {
    const limit = config(view, "maxOutputTokens");
    const tokens = member(view.values.at(-1)?.value["usageMetadata"], "candidatesTokenCount");
    if (!generates(view) || typeof limit !== "number" || typeof tokens !== "number") return notShown;
    if (tokens > limit) yield atEnd(view.exchange.response.body, `${tokens} tokens of ${limit}`);
  },
  *"gemini/stop"(view) {
    const stops = config(view, "stopSequences");
    if (!generates(view) || !Array.isArray(stops)) return notShown;
    const text = textOf(view);
    for (const stop of stops as readonly unknown[])
      if (typeof stop === "string" && stop !== "" && text.includes(stop))
        yield atEnd(view.exchange.response.body, `the text contains ${shown(stop)}`);
  },
  *"gemini/thoughts"(view) {
    if (!generates(view) || member(config(view, "thinkingConfig"), "thinkingBudget") !== 0) return notShown;
    for (const { at, parts } of candidatesOf(view))
      if (parts.some(({ thought }) => thought === true))
        yield { start: at.start, end: at.end, found: "a thought although thinkingBudget is 0" };
  },
  *"gemini/format"(view) {
    const text = textOf(view);
    const asksJson = config(view, "responseMimeType") === "application/json";
    if (!generates(view) || !asksJson || lastFinish(view) !== "STOP" || text === "") return notShown;
    if (parsedJson(text) === undefined) yield atEnd(view.exchange.response.body, `the text is ${notJson(text).found}`);
  },
  *"gemini/failure"(view) {
    const { status, body } = view.exchange.response;
    if (status < 400) return notShown;
    // A stream that is a list has the error as its only item.
    const value = parsedJson(body);
    const error = member(Array.isArray(value) ? value[0] : value, "error");
    if (!geminiError.safeParse({ error }).success || member(error, "message") === "")
      yield { start: 0, end: Math.min(body.length, 80), found: shown(value) };
    else if (member(error, "code") !== status || member(error, "status") !== (geminiStatuses[status] ?? "UNKNOWN"))
      yield {
        start: 0,
        end: body.length,
        found: `code ${shown(member(error, "code"))} and status ${shown(member(error, "status"))} with status ${status} in HTTP`,
      };
  },
};
