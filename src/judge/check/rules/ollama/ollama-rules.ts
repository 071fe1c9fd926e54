import type * as z from "zod";
import { isObject } from "../../../../wire/core/json.ts";
import { inWireOrder } from "../../../../wire/apis/members.ts";
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
import type { RuleFacts, Violation } from "../rule.ts";
import { schemaViolation } from "../spec/validate.ts";
import { type Json, parsedJson } from "../view.ts";

/** An exchange of Ollama's API. A whole answer is one line. */
export interface OllamaView {
  readonly exchange: Exchange;
  readonly isStream: boolean;
  readonly lines: readonly OllamaLine[];
  /** The lines that are JSON objects without an error. */
  readonly values: readonly (OllamaLine & { readonly value: Json })[];
}

export interface OllamaLine {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** `undefined` if the line is not JSON. */
  readonly value: unknown;
}

/** A rule about one exchange of Ollama's API. */
export interface OllamaRule extends RuleFacts {
  readonly judges: "ollama";
  shown(view: OllamaView): boolean;
  judge(view: OllamaView): Iterable<Violation>;
}

export function ollamaView(exchange: Exchange): OllamaView {
  const { body } = exchange.response;
  const streams = isStream(exchange);
  const lines: OllamaLine[] = [];
  for (let start = 0; start < body.length;) {
    const newline = streams ? body.indexOf("\n", start) : -1;
    const end = newline === -1 ? body.length : newline;
    const text = body.slice(start, end);
    lines.push({ start, end, text, value: parsedJson(text) });
    start = end + 1;
  }
  const values = lines.flatMap((line) =>
    isObject(line.value) && !("error" in line.value) ? [{ ...line, value: line.value }] : [],
  );
  return { exchange, isStream: streams, lines, values };
}

const schemas: Partial<Readonly<Record<Exchange["endpoint"], z.ZodType>>> = {
  "ollama-chat": ollamaChatResponse,
  "ollama-generate": ollamaGenerateResponse,
  "ollama-tags": ollamaModelList,
  "ollama-ps": ollamaProcessList,
  "ollama-show": ollamaShownModel,
  "ollama-version": ollamaVersion,
  "ollama-embed": ollamaEmbedResponse,
  "ollama-embeddings": ollamaEmbeddingsResponse,
};

const types = "Ollama's source code: api/types.go";
const routes = "Ollama's source code: server/routes.go";
const succeeded = ({ exchange }: OllamaView): boolean => exchange.response.status === 200;
const generates = (view: OllamaView): boolean =>
  succeeded(view) && ["ollama-chat", "ollama-generate"].includes(view.exchange.endpoint);
const streamed = (view: OllamaView): boolean => generates(view) && view.isStream;
const member = ({ exchange }: OllamaView, name: string): unknown => exchange.request.body?.[name];
const option = (view: OllamaView, name: string): unknown => {
  const options = member(view, "options");
  return isObject(options) ? options[name] : undefined;
};
const textOf = (value: Json): string => {
  const text = isObject(value.message) ? value.message.content : value.response;
  return typeof text === "string" ? text : "";
};
const thinkingOf = (value: Json): unknown => (isObject(value.message) ? value.message.thinking : value.thinking);
const wholeText = ({ values }: OllamaView): string => values.map(({ value }) => textOf(value)).join("");
const last = ({ values }: OllamaView): (OllamaLine & { readonly value: Json }) | undefined => values.at(-1);
const endsWithError = ({ lines }: OllamaView): boolean => {
  const value = lines.at(-1)?.value;
  return isObject(value) && "error" in value;
};

const counts = [
  "total_duration",
  "load_duration",
  "prompt_eval_count",
  "prompt_eval_duration",
  "eval_count",
  "eval_duration",
] as const;

const typed = "typed clients (Go, Rust, Python's ollama by pydantic)";

/** Rules about Ollama's API. Source: ollama 0.33.0. */
export const ollamaRules: readonly OllamaRule[] = [
  {
    id: "ollama/json",
    severity: "error",
    concern: "the stream cannot be read",
    says: "A whole answer is one JSON object; a stream is one JSON object a line, and nothing else: no blank line, no comment, no event of SSE.",
    source: `${routes}, streamResponse`,
    breaks: ["Ollama's clients for Go and Python (an error)", "ollama-js (a warning, and the line is lost)"],
    judges: "ollama",
    shown: succeeded,
    *judge({ lines, exchange }) {
      if (lines.length === 0) yield notJson(exchange.response.body);
      for (const { start, end, text, value } of lines)
        if (!isObject(value)) yield { start, end: Math.min(end, start + 80), found: notJson(text).found };
    },
  },
  {
    id: "ollama/schema",
    severity: "error",
    concern: "text is lost or wrong",
    says: "Every object has the members of Ollama's types.",
    source: types,
    breaks: [typed],
    judges: "ollama",
    shown: (view) => succeeded(view) && schemas[view.exchange.endpoint] !== undefined,
    *judge({ exchange, values }) {
      const schema = schemas[exchange.endpoint];
      for (const { start, end, value } of schema ? values : []) {
        const violation = schemaViolation(schema as z.ZodType, value);
        if (violation) yield { start, end, found: `${violation.path} ${violation.found}` };
      }
    },
  },
  {
    id: "ollama/member-order",
    severity: "note",
    concern: "it differs from Ollama",
    says: "Members are in the order of the fields in Go.",
    source: types,
    breaks: [],
    judges: "ollama",
    shown: (view) => succeeded(view) && schemas[view.exchange.endpoint] !== undefined,
    *judge({ exchange, values }) {
      const schema = schemas[exchange.endpoint] as z.ZodType;
      for (const { start, end, value } of values)
        if (JSON.stringify(inWireOrder(schema, value)) !== JSON.stringify(value))
          yield { start, end, found: `the order ${Object.keys(value).join(", ")}` };
    },
  },
  {
    id: "ollama/content-type",
    severity: "warning",
    concern: "the stream cannot be read",
    says: "A stream has the content type application/x-ndjson, any other answer application/json.",
    source: `${routes}, streamResponse`,
    breaks: ["clients that choose the parser by the content type"],
    judges: "ollama",
    shown: (view) => succeeded(view) && view.exchange.response.headers !== null,
    *judge({ exchange, isStream: streams }) {
      const type = exchange.response.headers?.["content-type"] ?? "none";
      const due = streams ? "application/x-ndjson" : "application/json";
      if (!type.startsWith(due)) yield { start: 0, end: 0, found: `content type ${type} instead of ${due}` };
    },
  },
  {
    id: "ollama/done-last",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "The last line, and no other, has done: true, unless it is an error.",
    source: `${routes}, ChatHandler`,
    breaks: ["every client (it stops early, or waits for the end)"],
    judges: "ollama",
    shown: generates,
    *judge(view) {
      const { values, exchange } = view;
      for (const { start, end, value } of values.slice(0, -1))
        if (value.done === true) yield { start, end, found: "done: true before the last line" };
      const end = last(view);
      if (end?.value.done !== true && !endsWithError(view))
        yield atEnd(exchange.response.body, "no line with done: true");
    },
  },
  {
    id: "ollama/done-reason",
    severity: "warning",
    concern: "the answer seems to end wrongly",
    says: "The line with done: true has a done_reason: stop, length, load or unload. A call ends with stop.",
    source: "Ollama's source code: llm/server.go, DoneReason",
    breaks: ["clients that branch on the reason (Continue, LangChain)"],
    judges: "ollama",
    shown: (view) => generates(view) && last(view)?.value.done === true,
    *judge(view) {
      const { start = 0, end = 0, value = {} } = last(view) ?? {};
      if (!ollamaDoneReason.safeParse(value.done_reason).success)
        yield { start, end, found: `done_reason is ${shown(value.done_reason)}` };
    },
  },
  {
    id: "ollama/counts-last",
    severity: "warning",
    concern: "token counts are wrong",
    says: "Counts and durations are in the line with done: true only, and not zero: a zero is absent in Go.",
    source: `${types}, Metrics (omitempty)`,
    breaks: ["clients that add counts up"],
    judges: "ollama",
    shown: generates,
    *judge({ values }) {
      for (const { start, end, value } of values)
        for (const name of counts) {
          if (!(name in value)) continue;
          if (value.done !== true) yield { start, end, found: `${name} before the last line` };
          else if (value[name] === 0) yield { start, end, found: `${name} is 0` };
        }
    },
  },
  {
    id: "ollama/model",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "Every line has the model's name as the request has it.",
    source: `${routes}, ChatHandler`,
    breaks: ["clients that match answers to requests by the model"],
    judges: "ollama",
    shown: (view) => generates(view) && typeof member(view, "model") === "string",
    *judge(view) {
      const model = member(view, "model");
      for (const { start, end, value } of view.values)
        if (value.model !== model) yield { start, end, found: `model is ${shown(value.model)}` };
    },
  },
  {
    id: "ollama/limit",
    severity: "error",
    concern: "requests are misunderstood",
    says: "An answer has at most num_predict tokens.",
    source: "Ollama's source code: docs/modelfile.mdx, num_predict",
    breaks: ["clients that limit the length"],
    judges: "ollama",
    shown: (view) =>
      generates(view) && Number(option(view, "num_predict")) > 0 && "eval_count" in (last(view)?.value ?? {}),
    *judge(view) {
      const { start = 0, end = 0, value = {} } = last(view) ?? {};
      const limit = Number(option(view, "num_predict"));
      if (Number(value.eval_count) > limit)
        yield { start, end, found: `${shown(value.eval_count)} tokens of ${limit}` };
    },
  },
  {
    id: "ollama/stop",
    severity: "error",
    concern: "requests are misunderstood",
    says: "An answer contains none of the request's stop strings.",
    source: "Ollama's source code: docs/modelfile.mdx, stop",
    breaks: ["clients that continue after a stop string"],
    judges: "ollama",
    shown: (view) => generates(view) && Array.isArray(option(view, "stop")),
    *judge(view) {
      const text = wholeText(view);
      for (const stop of option(view, "stop") as readonly unknown[])
        if (typeof stop === "string" && stop !== "" && text.includes(stop))
          yield atEnd(view.exchange.response.body, `the text contains ${shown(stop)}`);
    },
  },
  {
    id: "ollama/think",
    severity: "warning",
    concern: "requests are misunderstood",
    says: "With think: false there is no thinking.",
    source: "Ollama's source code: docs/capabilities/thinking.mdx",
    breaks: ["clients that show it although it was turned off"],
    judges: "ollama",
    shown: (view) => generates(view) && member(view, "think") === false,
    *judge({ values }) {
      for (const { start, end, value } of values)
        if (typeof thinkingOf(value) === "string" && thinkingOf(value) !== "")
          yield { start, end, found: "thinking although think is false" };
    },
  },
  {
    id: "ollama/format",
    severity: "error",
    concern: "requests are misunderstood",
    says: "With format, an answer that is not cut is JSON.",
    source: "Ollama's source code: docs/capabilities/structured-outputs.mdx",
    breaks: ["every client that parses the answer"],
    judges: "ollama",
    shown: (view) =>
      generates(view) &&
      Boolean(member(view, "format")) &&
      last(view)?.value.done_reason === "stop" &&
      wholeText(view) !== "",
    *judge(view) {
      if (parsedJson(wholeText(view)) === undefined)
        yield atEnd(view.exchange.response.body, `the text is ${notJson(wholeText(view)).found}`);
    },
  },
  {
    id: "ollama/first-line",
    severity: "warning",
    concern: "errors look like answers",
    says: "What fails before the first line has a status of 400 or more.",
    source: `${routes}, streamResponse`,
    breaks: ["clients that look at the status only"],
    judges: "ollama",
    shown: streamed,
    *judge({ lines }) {
      const [first] = lines;
      if (isObject(first?.value) && "error" in first.value)
        yield { start: first.start, end: first.end, found: "an error with status 200" };
    },
  },
  {
    id: "ollama/failure",
    severity: "error",
    concern: "errors look like answers",
    says: 'An error\'s body is {"error": "text"}.',
    source: `${routes}; api/client.go, checkError`,
    breaks: ["Ollama's clients (an exception without a message)"],
    judges: "ollama",
    shown: ({ exchange }) => exchange.response.status >= 400,
    *judge({ lines, exchange }) {
      const value = lines[0]?.value;
      if (!ollamaError.safeParse(value).success || (isObject(value) && value.error === ""))
        yield { start: 0, end: Math.min(exchange.response.body.length, 80), found: shown(value) };
    },
  },
];
