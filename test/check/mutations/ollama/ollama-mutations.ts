import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { isStream } from "../../../../src/judge/check/rules/exchange.ts";
import { legalOllama } from "../../legal/ollama.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";

type Json = { [name: string]: unknown };

/** A change of an exchange's text; undefined where it cannot be made. */
type Change = (exchange: Exchange, lines: string[]) => Partial<Exchange["response"]> | undefined;

function changed(change: Change) {
  return (seed: number) => {
    const { exchange } = legalOllama(seed);
    const lines = exchange.response.body.split("\n").filter((line) => line !== "");
    const response = change(exchange, lines);
    return response && judge({ ...exchange, response: { ...exchange.response, ...response } }).findings;
  };
}

const illegal = (rule: string, name: string, change: Change): IllegalChange => ({
  rule,
  name: `${name} (Ollama)`,
  make: changed(change),
});

const generates = ({ endpoint, response }: Exchange): boolean =>
  ["ollama-chat", "ollama-generate"].includes(endpoint) && response.status === 200;
const streams = (exchange: Exchange): boolean => generates(exchange) && isStream(exchange);

/** Changes one line as an object: the first or the last. */
function onLine(
  which: "first" | "last",
  fits: (exchange: Exchange) => boolean,
  edit: (line: Json) => boolean | void,
): Change {
  return (exchange, lines) => {
    if (!fits(exchange)) return undefined;
    const at = which === "first" ? 0 : lines.length - 1;
    const value = JSON.parse(lines[at] ?? "{}") as Json;
    if (edit(value) === false) return undefined;
    const body = lines.with(at, JSON.stringify(value)).join("\n");
    return { body: isStream(exchange) ? `${body}\n` : body };
  };
}

const setting = (name: string, value: unknown) => (line: Json) => void (line[name] = value);
const withOptions = (exchange: Exchange): boolean =>
  generates(exchange) && exchange.request.body?.["options"] !== undefined;
const saying = (text: string) => (line: Json) => {
  if (line["message"]) (line["message"] as Json)["content"] = text;
  else line["response"] = text;
};

export const ollamaMutations: readonly IllegalChange[] = [
  illegal("ollama/json", "a blank line", (exchange, lines) =>
    streams(exchange) ? { body: `${lines.join("\n\n")}\n\n` } : undefined,
  ),
  illegal("ollama/json", "events of SSE", (exchange, lines) =>
    streams(exchange) ? { body: lines.map((line) => `data: ${line}\n`).join("") } : undefined,
  ),
  illegal("ollama/json", "an answer that is cut", ({ response }) =>
    response.status === 200 ? { body: response.body.slice(0, response.body.length / 2) } : undefined,
  ),
  illegal("ollama/json", "an empty body", (exchange) => (generates(exchange) ? { body: "" } : undefined)),
  illegal(
    "ollama/schema",
    "no created_at",
    onLine("last", generates, (line) => delete line["created_at"]),
  ),
  illegal("ollama/schema", "a time in seconds", onLine("first", generates, setting("created_at", 1_800_000_000))),
  illegal("ollama/schema", "a count as a text", onLine("last", generates, setting("eval_count", "7"))),
  illegal("ollama/schema", "a duration with a fraction", onLine("last", generates, setting("total_duration", 1.5))),
  illegal(
    "ollama/schema",
    "arguments as a text",
    onLine("last", generates, (line) => {
      const calls = [{ function: { name: "f", arguments: '{"a":1}' } }];
      Object.assign((line["message"] as Json | undefined) ?? line, { tool_calls: calls });
    }),
  ),
  illegal("ollama/schema", "a list of models that is none", (exchange) =>
    exchange.endpoint === "ollama-tags" ? { body: '{"models":{}}' } : undefined,
  ),
  illegal("ollama/schema", "a model without details", (exchange) =>
    exchange.endpoint === "ollama-show" ? { body: exchange.response.body.replace('"details"', '"detail"') } : undefined,
  ),
  illegal("ollama/member-order", "done first", (exchange, lines) =>
    generates(exchange)
      ? {
          body: lines
            .map((line) => JSON.stringify({ done: (JSON.parse(line) as Json)["done"], ...(JSON.parse(line) as Json) }))
            .map((line) => (isStream(exchange) ? `${line}\n` : line))
            .join(""),
        }
      : undefined,
  ),
  illegal("ollama/content-type", "the content type of SSE", (exchange) =>
    streams(exchange) ? { headers: { "content-type": "text/event-stream" } } : undefined,
  ),
  illegal("ollama/content-type", "a text", (exchange) =>
    exchange.endpoint === "ollama-tags" ? { headers: { "content-type": "text/plain" } } : undefined,
  ),
  illegal("ollama/done-last", "no last line", (exchange, lines) =>
    streams(exchange) && lines.length > 1 ? { body: `${lines.slice(0, -1).join("\n")}\n` } : undefined,
  ),
  illegal("ollama/done-last", "two last lines", (exchange, lines) =>
    streams(exchange) ? { body: `${[...lines, lines.at(-1)].join("\n")}\n` } : undefined,
  ),
  illegal("ollama/done-last", "done: false at the end", onLine("last", generates, setting("done", false))),
  illegal(
    "ollama/done-reason",
    "no reason",
    onLine("last", generates, (line) => delete line["done_reason"]),
  ),
  illegal(
    "ollama/done-reason",
    "OpenAI's reason for calls",
    onLine("last", generates, setting("done_reason", "tool_calls")),
  ),
  illegal("ollama/counts-last", "a count in the first line", (exchange, lines) =>
    lines.length > 1 ? onLine("first", streams, setting("eval_count", 1))(exchange, lines) : undefined,
  ),
  illegal("ollama/counts-last", "a count of zero", onLine("last", generates, setting("prompt_eval_count", 0))),
  illegal("ollama/model", "the name with a tag", onLine("last", generates, setting("model", "m:latest"))),
  illegal("ollama/limit", "more tokens than num_predict", onLine("last", withOptions, setting("eval_count", 21))),
  illegal("ollama/stop", "the stop string in the text", onLine("last", withOptions, saying("the END"))),
  illegal(
    "ollama/think",
    "thinking although it is off",
    onLine(
      "first",
      (exchange) => generates(exchange) && exchange.request.body?.["think"] === false,
      (line) => Object.assign((line["message"] as Json | undefined) ?? line, { thinking: "Hm." }) && undefined,
    ),
  ),
  illegal(
    "ollama/format",
    "prose with format",
    onLine("last", (exchange) => generates(exchange) && exchange.request.body?.["format"] === "json", saying("Sure!")),
  ),
  illegal("ollama/first-line", "an error with status 200", (exchange) =>
    streams(exchange) ? { body: '{"error":"It broke."}\n' } : undefined,
  ),
  illegal("ollama/failure", "OpenAI's error", ({ response }) =>
    response.status >= 400
      ? { body: '{"error":{"message":"It broke.","type":"x","param":null,"code":null}}' }
      : undefined,
  ),
  illegal("ollama/failure", "an HTML page", ({ response }) =>
    response.status >= 400 ? { body: "<html>502 Bad Gateway</html>" } : undefined,
  ),
];

export const legalOllamas: readonly LegalChange[] = [
  { name: "an exchange of Ollama's API", make: changed(() => ({})) },
  {
    name: "an error at the end of Ollama's stream",
    make: changed((exchange, lines) =>
      streams(exchange) && lines.length > 1
        ? { body: `${[...lines.slice(0, -1), '{"error":"It broke."}'].join("\n")}\n` }
        : undefined,
    ),
  },
  {
    name: "a time with an offset and nine digits",
    make: changed(onLine("last", generates, setting("created_at", "2026-11-23T17:00:00.123456789+01:00"))),
  },
  { name: "headers that are not known", make: changed(() => ({ headers: null })) },
];
