import { isObject } from "../../../core/json.ts";
import { atName } from "../body/body-place.ts";
import { apiOf } from "../exchange.ts";
import { atEnd, atFrame, atMember } from "../place.ts";
import { membersOffence } from "../profile/member-order.ts";
import type { ProfileName, ProfileRule } from "../profile/profile-rule.ts";
import type { Offence } from "../rule.ts";
import type { BodyView, Json, StreamView } from "../view.ts";
import { outOfOrder } from "./member-order.ts";
import { endTypes, responseIn, storyOf } from "./stream-story.ts";

const concern = "it is not the form that was demanded";
const breaks = ["tests that compare bytes"];

function isStream({ exchange, chunks }: StreamView): boolean {
  return apiOf[exchange.endpoint] === "responses" && chunks.length > 0;
}

function isWhole({ exchange, value }: BodyView): boolean {
  return exchange.endpoint === "responses" && exchange.response.status === 200 && isObject(value);
}

function isChoice(view: StreamView): boolean | undefined {
  const options = view.exchange.request.body?.stream_options;
  return isObject(options) && typeof options.include_obfuscation === "boolean"
    ? options.include_obfuscation
    : undefined;
}

/** The forms of the Responses API. Source: recordings of 2026-07 and 2026-08. */
export const responseProfileRules: readonly ProfileRule[] = [
  {
    id: "profile/response-members",
    severity: "error",
    concern,
    says: "A response has the members of the profile (exact: those of 2026-07 with moderation and tool_usage, a body also billing).",
    source: "recordings since 2026-07: 69 of 69 streams, 169 of 169 bodies",
    breaks,
    judges: "profile",
    stream: {
      shown: (view) => isStream(view) && storyOf(view).lifecycle.length > 0,
      *judge(view, profile) {
        for (const event of storyOf(view).lifecycle) {
          const found = membersOffence(responseIn(event), wanted(profile, false), profile === "lean");
          if (found !== undefined) yield atMember(event.chunk, "response", `a response with ${found}`);
        }
      },
    },
    body: {
      shown: isWhole,
      *judge(view, profile) {
        const found = isObject(view.value)
          ? membersOffence(view.value, wanted(profile, true), profile === "lean")
          : undefined;
        if (found !== undefined) yield atName(view, "object", found);
      },
    },
  },
  {
    id: "profile/response-order",
    severity: "error",
    concern,
    says: "Members stand by the alphabet behind id, object, created_at, type, status; metadata of a response is last.",
    source: "recordings since 2026-07: 69 of 69 streams, 169 of 169 bodies",
    breaks,
    judges: "profile",
    stream: {
      shown: isStream,
      *judge(view) {
        for (const chunk of view.chunks) {
          const found = outOfOrder(chunk.value);
          if (found !== undefined) yield atMember(chunk, found.member, found.found);
        }
      },
    },
    body: {
      shown: isWhole,
      *judge(view) {
        const found = outOfOrder(view.value as Json);
        if (found !== undefined) yield atName(view, found.member, found.found);
      },
    },
  },
  {
    id: "profile/response-end",
    severity: "error",
    concern,
    says: "The stream ends with data: [DONE] (lean, as the Open Responses specification demands) or without (exact).",
    source: "recordings 227 of 227; Open Responses specification",
    breaks,
    judges: "profile",
    stream: {
      // A WebSocket stays open.
      shown: (view) =>
        view.exchange.endpoint === "responses" && view.chunks.some(({ value }) => endTypes.has(String(value.type))),
      *judge(view, profile) {
        const done = view.frames[view.done];
        if (profile === "lean" && !done) yield atEnd(view.exchange.response.body, "no [DONE]");
        if (profile === "exact" && done) yield atFrame(done, "[DONE]");
      },
    },
  },
  {
    id: "profile/response-obfuscation",
    severity: "error",
    concern,
    says: "Deltas of text, summaries and calls have obfuscation unless include_obfuscation is false (exact), or only when it is true (lean).",
    source: "recordings since 2026: 9,709 of 9,713 deltas",
    breaks,
    judges: "profile",
    stream: {
      shown: (view) => isStream(view) && view.exchange.request.body !== undefined,
      *judge(view, profile) {
        const due = isChoice(view) ?? profile === "exact";
        for (const { chunk, type, value } of storyOf(view).events) {
          const mayHave =
            /^response\.(output_text|reasoning_summary_text|function_call_arguments|custom_tool_call_input)\.delta$/;
          const has = "obfuscation" in value;
          if (has && (!due || !mayHave.test(type))) yield atMember(chunk, "obfuscation", "obfuscation");
          else if (!has && due && mayHave.test(type)) yield atFrame(chunk.frame, "no obfuscation");
        }
      },
    },
  },
  {
    id: "profile/response-numbers",
    severity: "error",
    concern,
    says: "Sampling parameters and log probabilities are printed as JSON.stringify does (lean), or with a point (exact: 1.0, in streams -1.5e-6, in bodies -1.5e-06).",
    source: "recordings since 2026-07: 69 of 69 streams, 169 of 169 bodies",
    breaks,
    judges: "profile",
    stream: {
      shown: isStream,
      *judge(view, profile) {
        for (const { frame } of view.chunks)
          for (const offence of numbers(frame.data ?? "", profile, serde))
            yield { ...offence, start: frame.dataStart + offence.start, end: frame.dataStart + offence.end };
      },
    },
    body: {
      shown: isWhole,
      judge: (view, profile) => numbers(view.exchange.response.body, profile, python),
    },
  },
];

/** A number below 1e-5 as Rust prints it, any other with a point. */
const serde = /^-?\d+\.\d+$|^-?\d(\.\d+)?e-[1-9]\d*$/;
/** The same in Python. */
const python = /^-?\d+\.\d+$|^-?\d(\.\d+)?e-\d\d+$/;

function* numbers(json: string, profile: ProfileName, exact: RegExp): Generator<Offence> {
  const names = /(?<!\\)"(?:temperature|top_p|frequency_penalty|presence_penalty|logprob)":\s*(-?\d[\d.eE+-]*)/g;
  for (const { 0: whole, 1: text = "", index } of json.matchAll(names)) {
    const isRight = profile === "lean" ? text === JSON.stringify(Number(text)) : exact.test(text);
    const start = index + whole.length - text.length;
    if (!isRight) yield { start, end: start + text.length, found: `the number ${text}` };
  }
}

function wanted(profile: ProfileName, isBody: boolean): readonly string[] {
  const isExact = profile === "exact";
  return [
    "id",
    "object",
    "created_at",
    "status",
    "background",
    ...(isExact && isBody ? ["billing"] : []),
    "completed_at",
    "error",
    "frequency_penalty",
    "incomplete_details",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "model",
    ...(isExact ? ["moderation"] : []),
    "output",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    ...(isExact ? ["prompt?"] : []),
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    ...(isExact ? ["tool_usage"] : []),
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "usage",
    "user",
    "metadata",
  ];
}
