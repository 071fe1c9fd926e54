import { apiOfEndpoint, requestMember } from "../exchange.ts";
import { atChoicePart, atFrame, atMember, atName, bodyChoices, isAnswer, messageOf, shown } from "../place.ts";
import type { Violation } from "../rule.ts";
import { hasObfuscatedLength } from "../stream/obfuscation.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView, Chunk, Json, StreamView } from "../view.ts";
import { profileFacts, type ProfileName, type ProfileRule } from "./profile-rule.ts";
import { refuserOf } from "./layout-rule.ts";

/** The values that differ between the profiles. Source: recordings of 2025-08 to 2026-08. */
export const valueRules: readonly ProfileRule[] = [
  {
    ...profileFacts,
    id: "profile/obfuscation",
    says: "obfuscation has the right length; it is in every chat chunk unless include_obfuscation is false (exact), or only when it is true (lean).",
    source: "recordings 289 of 289 streams since 2025-08-05",
    stream: {
      shown: (view) => view.exchange.endpoint === "chat" && view.chunks.length > 0,
      judge: obfuscationViolations,
    },
  },
  {
    ...profileFacts,
    id: "profile/finish",
    says: "Calls of a tool that the request named end with tool_calls (lean) or stop (exact).",
    source: "recordings 9 of 9",
    stream: {
      shown: (view) => view.exchange.endpoint === "chat" && isNamed(view.exchange.request.body),
      *judge(view, profile) {
        for (const track of view.choices.values()) {
          if (!track.some(({ delta }) => Array.isArray(delta.tool_calls))) continue;
          for (const part of track) {
            const reason = part.choice.finish_reason;
            if (typeof reason === "string" && reason !== "length" && reason !== namedFinish[profile])
              yield atChoicePart(part, "finish_reason", `${shown(reason)} instead of ${shown(namedFinish[profile])}`);
          }
        }
      },
    },
    body: {
      shown: (view) => isAnswer(view) && isNamed(view.exchange.request.body),
      *judge(view, profile) {
        for (const choice of bodyChoices(view)) {
          const reason = choice.finish_reason;
          if (!Array.isArray(messageOf(choice).tool_calls) || reason === "length") continue;
          if (reason !== namedFinish[profile])
            yield atName(view, "finish_reason", `${shown(reason)} instead of ${shown(namedFinish[profile])}`);
        }
      },
    },
  },
  {
    ...profileFacts,
    id: "profile/logprobs",
    says: "With log probabilities, logprobs of the first chunk is an empty list (exact) or null (lean), and of the last chunk null.",
    source: "recordings with log probabilities",
    stream: {
      shown: (view) => view.exchange.endpoint === "chat" && requestMember(view.exchange, "logprobs") === true,
      *judge(view, profile) {
        for (const track of view.choices.values()) {
          const [first] = track;
          if (first && JSON.stringify(first.choice.logprobs ?? null) !== firstLogprobs(first.delta, profile))
            yield atChoicePart(first, "logprobs", `the first chunk's logprobs are ${shown(first.choice.logprobs)}`);
          for (const part of track) {
            if (typeof part.choice.finish_reason === "string" && isObject(part.choice.logprobs))
              yield atChoicePart(part, "logprobs", "logprobs next to the finish reason");
          }
        }
      },
    },
  },
  {
    ...profileFacts,
    id: "profile/numbers",
    says: "Log probabilities are printed as JSON.stringify does (lean), or as Rust's serde does (exact: 0.0, -1.5e-6).",
    source: "recordings with log probabilities",
    stream: {
      shown: (view) =>
        apiOfEndpoint[view.exchange.endpoint] !== "responses" &&
        view.frames.some(({ data }) => logprobNumbers(data ?? "").next().done === false),
      *judge(view, profile) {
        for (const frame of view.frames) {
          for (const { text, at } of logprobNumbers(frame.data ?? "")) {
            const start = frame.dataStart + at;
            if (!isPrinted(text, profile)) yield { start, end: start + text.length, found: `the number ${text}` };
          }
        }
      },
    },
    body: {
      shown: (view) => isAnswer(view) && logprobNumbers(view.exchange.response.body).next().done === false,
      *judge(view, profile) {
        for (const { text, at } of logprobNumbers(view.exchange.response.body))
          if (!isPrinted(text, profile)) yield { start: at, end: at + text.length, found: `the number ${text}` };
      },
    },
  },
  {
    ...profileFacts,
    id: "profile/headers",
    says: "Content-Type and Cache-Control are those of the profile.",
    source: "recordings 289 of 289 streams, 2169 of 2169 bodies, every error",
    stream: { shown: (view) => view.exchange.response.headers !== null, judge: streamHeaderViolations },
    body: {
      shown: (view) => view.exchange.response.headers !== null && isObject(view.value),
      judge: bodyHeaderViolations,
    },
  },
];

const namedFinish = { lean: "tool_calls", exact: "stop" } as const;

function isNamed(body: Json | undefined): boolean {
  return isObject(body?.tool_choice) && body.tool_choice.type === "function";
}

function* obfuscationViolations(view: StreamView, profile: ProfileName): Generator<Violation> {
  const { body } = view.exchange.request;
  const options = isObject(body?.stream_options) ? body.stream_options : {};
  const choice = options.include_obfuscation;
  const isExpected = typeof choice === "boolean" ? choice : profile === "exact";
  for (const chunk of view.chunks) {
    if ("error" in chunk.value) continue;
    const has = "obfuscation" in chunk.value;
    // Without the request, it is not known whether the client chose obfuscation.
    if (has !== isExpected && body !== undefined)
      yield has ? atMember(chunk, "obfuscation", "obfuscation") : atFrame(chunk.frame, "no obfuscation");
    else if (has && !hasObfuscatedLength(chunk.frame.data ?? "") && !isAudio(chunk))
      yield atMember(chunk, "obfuscation", "obfuscation of another length");
  }
}

/** OpenAI pads the chunk that says when audio expires by another rule. */
function isAudio({ choices }: Chunk): boolean {
  return choices.some(({ delta }) => isObject(delta) && "audio" in delta);
}

function firstLogprobs(delta: Json, profile: ProfileName): string {
  const calls = "tool_calls" in delta || (delta.content === null && !("refusal" in delta));
  if (profile === "lean" || calls) return "null";
  return delta.refusal === "" ? '{"content":null,"refusal":[]}' : '{"content":[],"refusal":null}';
}

/** Yields the numbers after `"logprob":` and in `"token_logprobs":[…]`. No string can contain these: its quotes are escaped. */
function* logprobNumbers(json: string): Generator<{ text: string; at: number }> {
  for (const match of json.matchAll(/(?<!\\)"(?:logprob|token_logprobs)":\s*(\[[^\]]*\]|-?[\d.eE+-]+)/g)) {
    const list = match[1] ?? "";
    const begins = match.index + match[0].length - list.length;
    for (const number of list.matchAll(/-?\d[\d.eE+-]*/g)) yield { text: number[0], at: begins + number.index };
  }
}

function isPrinted(text: string, profile: ProfileName): boolean {
  if (profile === "lean") return text === JSON.stringify(Number(text));
  // A number has a fraction or an exponent, and an exponent only below 1e-5.
  const small = Number(text) !== 0 && Math.abs(Number(text)) < 1e-5;
  return small ? /^-?\d(\.\d+)?e-[1-9]\d*$/.test(text) : /^-?\d+\.\d+$/.test(text);
}

const streamHeaders = {
  lean: {
    chat: ["text/event-stream; charset=utf-8", "no-cache"],
    completions: ["text/event-stream; charset=utf-8", "no-cache"],
  },
  exact: {
    chat: ["text/event-stream; charset=utf-8", undefined],
    completions: ["text/event-stream", "no-cache, must-revalidate"],
  },
} as const;

function* streamHeaderViolations({ exchange }: StreamView, profile: ProfileName): Generator<Violation> {
  const { headers } = exchange.response;
  const [type, cache] = streamHeaders[profile][exchange.endpoint === "completions" ? "completions" : "chat"];
  for (const [name, due] of [
    ["content-type", type],
    ["cache-control", cache],
  ] as const) {
    const found = headers?.[name];
    if (found !== due) yield { start: 0, end: 0, found: `${name} ${shown(found)} instead of ${shown(due)}` };
  }
}

function* bodyHeaderViolations({ exchange, value }: BodyView, profile: ProfileName): Generator<Violation> {
  const { status, headers } = exchange.response;
  const refuser = profile === "exact" && status >= 400 ? refuserOf(exchange, value) : "application";
  const due = [
    ...(refuser === "gateway" ? [] : ["application/json"]),
    ...(refuser === "application" ? [] : ["application/json; charset=utf-8"]),
  ];
  const found = headers?.["content-type"];
  if (found === undefined || !due.includes(found))
    yield { start: 0, end: 0, found: `content-type ${shown(found)} instead of ${shown(due[0])}` };
}
