import type * as z from "zod";
import { variantsOf } from "../../../../wire/apis/members.ts";
import {
  errorResponse,
  message,
  modelInfo,
  modelInfoPage,
  streamEvent,
  tokenCount,
} from "../../../../wire/apis/messages/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atFrame, atMember, atName, objectOf, shown } from "../place.ts";
import { firstDifference, laidOut } from "../profile/layout-rule.ts";
import { answerDate, memberDifference } from "../profile/member-order.ts";
import type { ProfileName, ProfileRule } from "../profile/profile-rule.ts";
import type { Violation } from "../rule.ts";
import type { BodyView, Json, StreamView } from "../view.ts";

const concern = "it is not the form that was demanded";
const breaks = ["tests that compare bytes"];
const vendor = "Anthropic";

const hasEvents = (view: StreamView) => view.chunks.length > 0;
const isBody = (view: BodyView) => isObject(view.value);
/** In fewer events, the absence of padding may be chance. */
const minEvents = 8;

/** Returns the data of a frame without its padding, and the number of spaces before the last brace. */
function withoutPadding(data: string): { readonly json: string; readonly spaces: number } {
  if (!data.endsWith("}")) return { json: data, spaces: 0 };
  let end = data.length - 1;
  while (data[end - 1] === " ") end--;
  return { json: `${data.slice(0, end)}}`, spaces: data.length - 1 - end };
}

/** Rules about the two profiles of the Messages API. Source: 77 streams and 238 bodies recorded from May to August 2026. */
export const messageProfileRules: readonly ProfileRule[] = [
  {
    id: "profile/messages-layout",
    severity: "error",
    concern,
    says: 'JSON is compact, but for the padding and {"type": "ping"}.',
    source: "recordings since 2026-05: 1328 of 1328 events, 238 of 238 bodies",
    breaks,
    judges: "profile",
    vendor,
    stream: {
      shown: hasEvents,
      *judge(view) {
        for (const { frame, value } of view.chunks) {
          const data = frame.data ?? "";
          if (value.type === "ping") {
            if (data !== '{"type": "ping"}') yield atFrame(frame, "a ping that is laid out otherwise");
            continue;
          }
          const { json } = withoutPadding(data);
          const at = firstDifference(json, laidOut(json, 0));
          if (at !== undefined) yield within(frame.dataStart + at, data.length, "not compact");
        }
      },
    },
    body: {
      shown: isBody,
      *judge({ exchange }) {
        const { body } = exchange.response;
        const at = firstDifference(body, laidOut(body, 0));
        if (at !== undefined) yield within(at, body.length, "not compact, or with a line's end");
      },
    },
  },
  {
    id: "profile/messages-padding",
    severity: "error",
    concern,
    says: "Before an event's last brace are 0 to 15 spaces (exact), or none (lean).",
    source: "recordings 14,388 of 14,388 events",
    breaks,
    judges: "profile",
    vendor,
    stream: {
      shown: (view, profile) => profile === "lean" || view.chunks.length >= minEvents,
      *judge(view, profile) {
        let padded = 0;
        for (const { frame } of view.chunks) {
          const { spaces } = withoutPadding(frame.data ?? "");
          padded += spaces;
          if (spaces > (profile === "exact" ? 15 : 0)) yield atFrame(frame, `${spaces} spaces`);
        }
        const [first] = view.chunks;
        if (profile === "exact" && padded === 0 && first) yield atFrame(first.frame, "no padding in the whole stream");
      },
    },
  },
  {
    id: "profile/messages-members",
    severity: "error",
    concern,
    says: "Events, messages, blocks, counts, models and errors have the members of Anthropic's answers of their month, in Anthropic's order.",
    source: "recordings since 2026-05: 1328 of 1328 events, 238 of 238 bodies",
    breaks,
    judges: "profile",
    vendor,
    stream: {
      shown: hasEvents,
      *judge(view, profile) {
        const date = answerDate(view);
        for (const chunk of view.chunks) {
          const schema = variantsOf(streamEvent).get(chunk.value.type);
          const found = schema && memberDifference(schema, chunk.value, profile, date);
          if (found !== undefined) yield atMember(chunk, "type", found);
        }
      },
    },
    body: {
      shown: isBody,
      *judge(view, profile) {
        const found = bodyProblem(view, profile);
        if (found !== undefined) yield atName(view, "type", found);
      },
    },
  },
  {
    id: "profile/messages-ids",
    severity: "error",
    concern,
    says: "Ids of messages are msg_01 and 22 digits in base 58 (exact).",
    source: "recordings 902 of 902 messages",
    breaks,
    judges: "profile",
    vendor,
    stream: {
      shown: (view, profile) => profile === "exact" && hasEvents(view),
      *judge(view) {
        for (const chunk of view.chunks) {
          const { message } = chunk.value;
          if (isObject(message) && !isAnthropicsId(message.id)) yield atMember(chunk, "id", `id ${shown(message.id)}`);
        }
      },
    },
    body: {
      shown: (view, profile) => profile === "exact" && view.exchange.endpoint === "messages" && !isFailure(view),
      *judge(view) {
        const { id } = objectOf(view);
        if (!isAnthropicsId(id)) yield atName(view, "id", `id ${shown(id)}`);
      },
    },
  },
  {
    id: "profile/messages-headers",
    severity: "error",
    concern,
    says: "Content-Type and Cache-Control are the profile's.",
    source: "recordings 283 of 283 streams with headers, 572 of 572 bodies",
    breaks,
    judges: "profile",
    vendor,
    stream: {
      shown: ({ exchange }) => exchange.response.headers !== null,
      *judge({ exchange }) {
        yield* headerProblems(exchange.response.headers, {
          "content-type": "text/event-stream; charset=utf-8",
          "cache-control": "no-cache",
        });
      },
    },
    body: {
      shown: (view) => view.exchange.response.headers !== null && isBody(view),
      judge: ({ exchange }) => headerProblems(exchange.response.headers, { "content-type": "application/json" }),
    },
  },
];

function within(start: number, end: number, found: string): Violation {
  return { start, end: Math.min(start + 20, Math.max(start, end)), found };
}

function isFailure({ exchange }: BodyView): boolean {
  return exchange.response.status >= 400;
}

function isAnthropicsId(id: unknown): boolean {
  return typeof id === "string" && /^msg_(01[1-9A-HJ-NP-Za-km-z]{22}|(bdrk|vrtx)_\w+)$/.test(id);
}

function bodyProblem(view: BodyView, profile: ProfileName): string | undefined {
  const body = objectOf(view);
  const schema = isFailure(view) ? errorResponse : bodySchema(view, body);
  return schema && memberDifference(schema, body, profile, answerDate(view));
}

function bodySchema({ exchange }: BodyView, body: Json): z.ZodObject | undefined {
  switch (exchange.endpoint) {
    case "messages":
      return message;
    case "message-tokens":
      return tokenCount;
    case "anthropic-models":
    case "anthropic-model":
      return Array.isArray(body.data) ? modelInfoPage : modelInfo;
    default:
      return undefined;
  }
}

function* headerProblems(
  headers: Readonly<Record<string, string>> | null,
  due: Readonly<Record<string, string>>,
): Generator<Violation> {
  for (const [name, value] of Object.entries(due)) {
    const found = headers?.[name];
    if (found !== value) yield { start: 0, end: 0, found: `${name} ${shown(found)} instead of ${shown(value)}` };
  }
}
