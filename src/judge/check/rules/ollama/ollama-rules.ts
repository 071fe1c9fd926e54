import { isObject } from "../../../../wire/core/json.ts";
import {
  ollamaChatResponse,
  ollamaDoneReason,
  ollamaEmbeddingsResponse,
  ollamaEmbedResponse,
  ollamaError,
  ollamaGenerateResponse,
  ollamaModelList,
  ollamaProcessList,
  ollamaShownModel,
  ollamaVersion,
} from "../../../../wire/apis/ollama/schema.ts";
import { type Exchange, isStream } from "../exchange.ts";
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

/** A whole answer is one line. */
export function ollamaView(exchange: Exchange): JsonLines {
  const { body } = exchange.response;
  const streams = isStream(exchange);
  const lines: JsonLine[] = [];
  for (let start = 0; start < body.length;) {
    const newline = streams ? body.indexOf("\n", start) : -1;
    const end = newline === -1 ? body.length : newline;
    const text = body.slice(start, end);
    lines.push({ start, end, text, value: parsedJson(text) });
    start = end + 1;
  }
  return jsonLines(exchange, streams, lines);
}

const schemaRules = rulesOfSchemas("ollama", {
  "ollama-chat": ollamaChatResponse,
  "ollama-generate": ollamaGenerateResponse,
  "ollama-tags": ollamaModelList,
  "ollama-ps": ollamaProcessList,
  "ollama-show": ollamaShownModel,
  "ollama-version": ollamaVersion,
  "ollama-embed": ollamaEmbedResponse,
  "ollama-embeddings": ollamaEmbeddingsResponse,
});

const generates = (view: JsonLines): boolean =>
  succeeded(view) && ["ollama-chat", "ollama-generate"].includes(view.exchange.endpoint);
const streamed = (view: JsonLines): boolean => generates(view) && view.isStream;
const member = ({ exchange }: JsonLines, name: string): unknown => exchange.request.body?.[name];
const option = (view: JsonLines, name: string): unknown => {
  const options = member(view, "options");
  return isObject(options) ? options[name] : undefined;
};
const textOf = (value: Json): string => {
  const text = isObject(value.message) ? value.message.content : value.response;
  return typeof text === "string" ? text : "";
};
const thinkingOf = (value: Json): unknown => (isObject(value.message) ? value.message.thinking : value.thinking);
const wholeText = ({ values }: JsonLines): string => values.map(({ value }) => textOf(value)).join("");
const last = ({ values }: JsonLines): (JsonLine & { readonly value: Json }) | undefined => values.at(-1);
const counts = [
  "total_duration",
  "load_duration",
  "prompt_eval_count",
  "prompt_eval_duration",
  "eval_count",
  "eval_duration",
] as const;

/** Rules about Ollama's API. Source: ollama 0.33.0. */
export const ollamaRules: Rules<JsonLines> = {
  ...schemaRules,
  *"ollama/content-type"(view) {
    if (!succeeded(view) || view.exchange.response.headers === null) return notShown;
    const { exchange, isStream: streams } = view;
    const type = exchange.response.headers?.["content-type"] ?? "none";
    const due = streams ? "application/x-ndjson" : "application/json";
    if (!type.startsWith(due)) yield { start: 0, end: 0, found: `content type ${type} instead of ${due}` };
  },
  *"ollama/done-last"(view) {
    if (!generates(view)) return notShown;
    const { values, exchange } = view;
    for (const { start, end, value } of values.slice(0, -1))
      if (value.done === true) yield { start, end, found: "done: true before the last line" };
    const end = last(view);
    if (end?.value.done !== true && !endsWithError(view))
      yield atEnd(exchange.response.body, "no line with done: true");
  },
  *"ollama/done-reason"(view) {
    if (!generates(view) || last(view)?.value.done !== true) return notShown;
    const { start = 0, end = 0, value = {} } = last(view) ?? {};
    if (!ollamaDoneReason.safeParse(value.done_reason).success)
      yield { start, end, found: `done_reason is ${shown(value.done_reason)}` };
  },
  *"ollama/counts-last"(view) {
    if (!generates(view)) return notShown;
    const { values } = view;
    for (const { start, end, value } of values)
      for (const name of counts) {
        if (!(name in value)) continue;
        if (value.done !== true) yield { start, end, found: `${name} before the last line` };
        else if (value[name] === 0) yield { start, end, found: `${name} is 0` };
      }
  },
  *"ollama/model"(view) {
    if (!generates(view) || typeof member(view, "model") !== "string") return notShown;
    const model = member(view, "model");
    for (const { start, end, value } of view.values)
      if (value.model !== model) yield { start, end, found: `model is ${shown(value.model)}` };
  },
  *"ollama/limit"(view) {
    const { start = 0, end = 0, value = {} } = last(view) ?? {};
    const limit = Number(option(view, "num_predict"));
    if (!generates(view) || !(limit > 0) || !("eval_count" in value)) return notShown;
    if (Number(value.eval_count) > limit) yield { start, end, found: `${shown(value.eval_count)} tokens of ${limit}` };
  },
  *"ollama/stop"(view) {
    if (!generates(view) || !Array.isArray(option(view, "stop"))) return notShown;
    const text = wholeText(view);
    for (const stop of option(view, "stop") as readonly unknown[])
      if (typeof stop === "string" && stop !== "" && text.includes(stop))
        yield atEnd(view.exchange.response.body, `the text contains ${shown(stop)}`);
  },
  *"ollama/think"(view) {
    if (!generates(view) || member(view, "think") !== false) return notShown;
    const { values } = view;
    for (const { start, end, value } of values)
      if (typeof thinkingOf(value) === "string" && thinkingOf(value) !== "")
        yield { start, end, found: "thinking although think is false" };
  },
  *"ollama/format"(view) {
    if (
      !(
        generates(view) &&
        Boolean(member(view, "format")) &&
        last(view)?.value.done_reason === "stop" &&
        wholeText(view) !== ""
      )
    )
      return notShown;
    if (parsedJson(wholeText(view)) === undefined)
      yield atEnd(view.exchange.response.body, `the text is ${notJson(wholeText(view)).found}`);
  },
  *"ollama/first-line"(view) {
    if (!streamed(view)) return notShown;
    const { lines } = view;
    const [first] = lines;
    if (isObject(first?.value) && "error" in first.value)
      yield { start: first.start, end: first.end, found: "an error with status 200" };
  },
  *"ollama/failure"(view) {
    if (view.exchange.response.status < 400) return notShown;
    const { lines, exchange } = view;
    const value = lines[0]?.value;
    if (!ollamaError.safeParse(value).success || (isObject(value) && value.error === ""))
      yield { start: 0, end: Math.min(exchange.response.body.length, 80), found: shown(value) };
  },
};
