import { apiOfEndpoint, requestMember } from "../exchange.ts";
import { atChoicePart, atFrame, atMember, atName, bodyChoices, isAnswer, messageOf, shown } from "../place.ts";
import { hasObfuscatedLength } from "../stream/obfuscation.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView, Chunk, Json, StreamView } from "../view.ts";
import { type ProfileName } from "./profile-rule.ts";
import { refuserOf } from "./layout-rule.ts";
import { type Rules, type Violation, notShown } from "../rule.ts";

/** The values that differ between the profiles. Source: recordings of 2025-08 to 2026-08. */
export const valueStreamRules: Rules<StreamView, ProfileName> = {
  *"profile/obfuscation"(view, profile) {
    if (view.exchange.endpoint !== "chat" || view.chunks.length === 0) return notShown;
    return yield* obfuscationViolations(view, profile);
  },
  *"profile/finish"(view, profile) {
    if (view.exchange.endpoint !== "chat" || !isNamed(view.exchange.request.body)) return notShown;
    for (const track of view.choices.values()) {
      if (!track.some(({ delta }) => Array.isArray(delta.tool_calls))) continue;
      for (const part of track) {
        const reason = part.choice.finish_reason;
        if (typeof reason === "string" && reason !== "length" && reason !== namedFinish[profile])
          yield atChoicePart(part, "finish_reason", `${shown(reason)} instead of ${shown(namedFinish[profile])}`);
      }
    }
  },
  *"profile/logprobs"(view, profile) {
    if (view.exchange.endpoint !== "chat" || requestMember(view.exchange, "logprobs") !== true) return notShown;
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
  *"profile/numbers"(view, profile) {
    if (
      !(
        apiOfEndpoint[view.exchange.endpoint] !== "responses" &&
        view.frames.some(({ data }) => logprobNumbers(data ?? "").next().done === false)
      )
    )
      return notShown;
    for (const frame of view.frames) {
      for (const { text, at } of logprobNumbers(frame.data ?? "")) {
        const start = frame.dataStart + at;
        if (!isPrinted(text, profile)) yield { start, end: start + text.length, found: `the number ${text}` };
      }
    }
  },
  *"profile/headers"(view, profile) {
    if (view.exchange.response.headers === null) return notShown;
    return yield* streamHeaderViolations(view, profile);
  },
};

export const valueBodyRules: Rules<BodyView, ProfileName> = {
  *"profile/finish"(view, profile) {
    if (!isAnswer(view) || !isNamed(view.exchange.request.body)) return notShown;
    for (const choice of bodyChoices(view)) {
      const reason = choice.finish_reason;
      if (!Array.isArray(messageOf(choice).tool_calls) || reason === "length") continue;
      if (reason !== namedFinish[profile])
        yield atName(view, "finish_reason", `${shown(reason)} instead of ${shown(namedFinish[profile])}`);
    }
  },
  *"profile/numbers"(view, profile) {
    if (!isAnswer(view) || logprobNumbers(view.exchange.response.body).next().done !== false) return notShown;
    for (const { text, at } of logprobNumbers(view.exchange.response.body))
      if (!isPrinted(text, profile)) yield { start: at, end: at + text.length, found: `the number ${text}` };
  },
  *"profile/headers"(view, profile) {
    if (view.exchange.response.headers === null || !isObject(view.value)) return notShown;
    return yield* bodyHeaderViolations(view, profile);
  },
};

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
