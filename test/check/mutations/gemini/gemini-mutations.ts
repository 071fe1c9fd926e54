import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalGemini } from "../../legal/gemini.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";

type Json = { [name: string]: unknown };

/** A change of an answer; `undefined` where it cannot be made. */
type Change = (exchange: Exchange) => Partial<Exchange["response"]> | undefined;

function changed(change: Change) {
  return (seed: number) => {
    const { exchange } = legalGemini(seed);
    const response = change(exchange);
    return response && judge({ ...exchange, response: { ...exchange.response, ...response } }).findings;
  };
}

const illegal = (rule: string, name: string, change: Change): IllegalChange => ({
  rule,
  name: `${name} (Gemini)`,
  make: changed(change),
});

const generates = ({ endpoint, response }: Exchange): boolean => endpoint === "gemini" && response.status === 200;
const isSse = ({ request: { path } }: Exchange): boolean => path.endsWith("alt=sse");
const streams = (exchange: Exchange): boolean => generates(exchange) && exchange.request.path.includes("stream");

/** Writes an answer again after `edit` has changed its chunks in place; `false`: it cannot be made. */
function chunks(edit: (all: Json[], exchange: Exchange) => boolean | void, fits = generates): Change {
  return (exchange) => {
    if (!fits(exchange)) return undefined;
    const { body } = exchange.response;
    const all = isSse(exchange)
      ? [...body.matchAll(/^data: (.+?)\r?$/gm)].map(([, data]) => JSON.parse(data ?? "") as Json)
      : ([JSON.parse(body)].flat() as Json[]);
    if (edit(all, exchange) === false) return undefined;
    if (isSse(exchange)) return { body: all.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") };
    return { body: JSON.stringify(streams(exchange) ? all : all[0]) };
  };
}

const candidateIn = (chunk: Json | undefined): Json =>
  ((chunk?.["candidates"] as Json[] | undefined)?.[0] ?? {}) as Json;
const partsIn = (chunk: Json | undefined): Json[] =>
  ((candidateIn(chunk)["content"] as Json | undefined)?.["parts"] as Json[] | undefined) ?? [];
const onLast = (edit: (last: Json) => boolean | void): Change => chunks((all) => edit(all.at(-1) as Json));
const saying = (text: string, fits: (exchange: Exchange) => boolean = generates): Change =>
  chunks((all) => {
    const part = all.flatMap(partsIn).find((one) => typeof one["text"] === "string" && one["thought"] !== true);
    if (!part) return false;
    part["text"] = text;
  }, fits);
const callIn = (all: readonly Json[]): Json | undefined =>
  all.flatMap(partsIn).find((part) => part["functionCall"])?.["functionCall"] as Json | undefined;
const config = ({ request }: Exchange): Json => (request.body?.["generationConfig"] ?? {}) as Json;

export const geminiMutations: readonly IllegalChange[] = [
  illegal("gemini/json", "an answer that is cut", ({ response }) =>
    response.status === 200 ? { body: response.body.slice(0, response.body.length / 2) } : undefined,
  ),
  illegal("gemini/json", "OpenAI's end of a stream", (exchange) =>
    streams(exchange) && isSse(exchange) ? { body: `${exchange.response.body}data: [DONE]\n\n` } : undefined,
  ),
  illegal("gemini/json", "a list of events", (exchange) =>
    streams(exchange) && !isSse(exchange) ? { body: 'data: {"candidates":[]}\n\n' } : undefined,
  ),
  illegal("gemini/json", "an empty body", (exchange) => (generates(exchange) ? { body: "" } : undefined)),
  illegal(
    "gemini/schema",
    "a count as a text",
    onLast((last) => void ((last["usageMetadata"] as Json)["promptTokenCount"] = "7")),
  ),
  illegal(
    "gemini/schema",
    "arguments as a text",
    chunks((all) => {
      const call = callIn(all);
      if (!call) return false;
      call["args"] = '{"a":1}';
    }),
  ),
  illegal("gemini/schema", "a model without methods", (exchange) =>
    exchange.endpoint === "gemini-model"
      ? { body: exchange.response.body.replace("supportedGenerationMethods", "methods") }
      : undefined,
  ),
  illegal("gemini/schema", "no count", (exchange) =>
    exchange.endpoint === "gemini-tokens" ? { body: '{"tokens": 7}' } : undefined,
  ),
  illegal(
    "gemini/member-order",
    "the usage first",
    chunks((all) => {
      const last = all.at(-1) as Json;
      all[all.length - 1] = { usageMetadata: last["usageMetadata"], ...last };
    }),
  ),
  illegal("gemini/content-type", "JSON for events", (exchange) =>
    streams(exchange) && isSse(exchange) ? { headers: { "content-type": "application/json" } } : undefined,
  ),
  illegal("gemini/content-type", "a text", (exchange) =>
    exchange.endpoint === "gemini-models" ? { headers: { "content-type": "text/plain" } } : undefined,
  ),
  illegal(
    "gemini/finish",
    "no reason",
    onLast((last) => delete candidateIn(last)["finishReason"]),
  ),
  illegal(
    "gemini/finish",
    "a reason before the last text",
    chunks((all) => {
      if (all.length < 2 || partsIn(all.at(-1)).length === 0) return false;
      candidateIn(all[0])["finishReason"] = "STOP";
    }, streams),
  ),
  illegal(
    "gemini/finish",
    "no candidate",
    chunks((all) => {
      for (const chunk of all) delete chunk["candidates"];
    }),
  ),
  illegal(
    "gemini/finish-reason",
    "OpenAI's reason",
    onLast((last) => void (candidateIn(last)["finishReason"] = "tool_calls")),
  ),
  illegal(
    "gemini/role",
    "OpenAI's role",
    chunks((all) => {
      if (partsIn(all[0]).length === 0) return false;
      (candidateIn(all[0])["content"] as Json)["role"] = "assistant";
    }),
  ),
  illegal(
    "gemini/part",
    "a text and a call in one part",
    chunks((all) => {
      const [part] = partsIn(all[0]);
      if (!part) return false;
      Object.assign(part, { text: "", functionCall: { name: "f" } });
    }),
  ),
  illegal(
    "gemini/part",
    "an empty part",
    chunks((all) => {
      if (partsIn(all[0]).length === 0) return false;
      partsIn(all[0])[0] = {};
      (candidateIn(all[0])["content"] as Json)["parts"] = [{}];
    }),
  ),
  illegal(
    "gemini/call",
    "a function that the request has not",
    chunks((all) => {
      const call = callIn(all);
      if (!call) return false;
      call["name"] = "h";
    }),
  ),
  illegal(
    "gemini/call-ids",
    "two calls with one id",
    chunks((all) => {
      const calls = all.flatMap(partsIn).filter((part) => part["functionCall"]);
      if (calls.length < 2) return false;
      for (const { functionCall } of calls) (functionCall as Json)["id"] = "same";
    }),
  ),
  illegal(
    "gemini/call-mode",
    "no call with mode ANY",
    chunks((all) => {
      if (!callIn(all)) return false;
      for (const part of all.flatMap(partsIn))
        if (part["functionCall"]) {
          delete part["functionCall"];
          part["text"] = "I will not.";
        }
    }),
  ),
  illegal(
    "gemini/call-mode",
    "a call with mode NONE",
    chunks(
      (all) => {
        if (partsIn(all[0]).length === 0) return false;
        (candidateIn(all[0])["content"] as Json)["parts"] = [{ functionCall: { name: "f" } }];
      },
      (exchange) => generates(exchange) && JSON.stringify(exchange.request.body).includes("NONE"),
    ),
  ),
  illegal(
    "gemini/usage",
    "no counts",
    onLast((last) => delete last["usageMetadata"]),
  ),
  illegal(
    "gemini/usage",
    "a total that is too small",
    onLast((last) => void ((last["usageMetadata"] as Json)["totalTokenCount"] = 1)),
  ),
  illegal(
    "gemini/same-answer",
    "two ids",
    chunks((all) => {
      if (all.length < 2) return false;
      (all[0] as Json)["responseId"] = "another";
    }, streams),
  ),
  illegal(
    "gemini/limit",
    "more tokens than maxOutputTokens",
    onLast(
      (last) =>
        Object.assign(last["usageMetadata"] as Json, { candidatesTokenCount: 21, totalTokenCount: 25 }) && undefined,
    ),
  ),
  illegal("gemini/stop", "the stop sequence in the text", saying("the END")),
  illegal(
    "gemini/thoughts",
    "a thought although they are off",
    chunks(
      (all) => {
        const [part] = partsIn(all[0]);
        if (!part) return false;
        part["thought"] = true;
      },
      (exchange) => generates(exchange) && JSON.stringify(exchange.request.body).includes("thinkingBudget"),
    ),
  ),
  illegal(
    "gemini/format",
    "prose with application/json",
    saying("Sure!", (exchange) => generates(exchange) && config(exchange)["responseMimeType"] !== undefined),
  ),
  illegal("gemini/failure", "OpenAI's error", ({ response }) =>
    response.status >= 400
      ? { body: '{"error":{"message":"It broke.","type":"x","param":null,"code":null}}' }
      : undefined,
  ),
  illegal("gemini/failure", "another code than HTTP's", ({ response }) =>
    response.status >= 400 ? { body: '{"error":{"code":500,"message":"It broke.","status":"INTERNAL"}}' } : undefined,
  ),
  illegal("gemini/failure", "an HTML page", ({ response }) =>
    response.status >= 400 ? { body: "<html>502 Bad Gateway</html>" } : undefined,
  ),
];

export const legalGeminis: readonly LegalChange[] = [
  { name: "an exchange of Gemini's API", make: changed(() => ({})) },
  {
    name: "an error at the end of Gemini's stream",
    make: changed(
      chunks((all) => {
        if (all.length < 2) return false;
        all[all.length - 1] = { error: { code: 500, message: "It broke.", status: "INTERNAL" } };
      }, streams),
    ),
  },
  {
    name: "a prompt that is blocked",
    make: changed(
      chunks((all) => {
        const usageMetadata = { promptTokenCount: 4, totalTokenCount: 4 };
        all.splice(0, all.length, { promptFeedback: { blockReason: "SAFETY" }, usageMetadata });
      }),
    ),
  },
  { name: "headers of Gemini's answer that are not known", make: changed(() => ({ headers: null })) },
];
