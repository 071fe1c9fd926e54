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
import type { ProfileName } from "../profile/profile-rule.ts";
import type { BodyView, Json, StreamView } from "../view.ts";
import { type Rules, type Violation, notShown } from "../rule.ts";

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
export const messageProfileStreamRules: Rules<StreamView, ProfileName> = {
  *"profile/messages-layout"(view) {
    if (!hasEvents(view)) return notShown;
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
  *"profile/messages-padding"(view, profile) {
    if (profile !== "lean" && view.chunks.length < minEvents) return notShown;
    let padded = 0;
    for (const { frame } of view.chunks) {
      const { spaces } = withoutPadding(frame.data ?? "");
      padded += spaces;
      if (spaces > (profile === "exact" ? 15 : 0)) yield atFrame(frame, `${spaces} spaces`);
    }
    const [first] = view.chunks;
    if (profile === "exact" && padded === 0 && first) yield atFrame(first.frame, "no padding in the whole stream");
  },
  *"profile/messages-members"(view, profile) {
    if (!hasEvents(view)) return notShown;
    const date = answerDate(view);
    for (const chunk of view.chunks) {
      const schema = variantsOf(streamEvent).get(chunk.value.type);
      const found = schema && memberDifference(schema, chunk.value, profile, date);
      if (found !== undefined) yield atMember(chunk, "type", found);
    }
  },
  *"profile/messages-ids"(view, profile) {
    if (profile !== "exact" || !hasEvents(view)) return notShown;
    for (const chunk of view.chunks) {
      const { message } = chunk.value;
      if (isObject(message) && !isAnthropicsId(message.id)) yield atMember(chunk, "id", `id ${shown(message.id)}`);
    }
  },
  *"profile/messages-headers"(view) {
    if (view.exchange.response.headers === null) return notShown;
    const { exchange } = view;
    yield* headerProblems(exchange.response.headers, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
    });
  },
};

export const messageProfileBodyRules: Rules<BodyView, ProfileName> = {
  *"profile/messages-layout"(view) {
    if (!isBody(view)) return notShown;
    const { exchange } = view;
    const { body } = exchange.response;
    const at = firstDifference(body, laidOut(body, 0));
    if (at !== undefined) yield within(at, body.length, "not compact, or with a line's end");
  },
  *"profile/messages-members"(view, profile) {
    if (!isBody(view)) return notShown;
    const found = bodyProblem(view, profile);
    if (found !== undefined) yield atName(view, "type", found);
  },
  *"profile/messages-ids"(view, profile) {
    if (profile !== "exact" || view.exchange.endpoint !== "messages" || isFailure(view)) return notShown;
    const { id } = objectOf(view);
    if (!isAnthropicsId(id)) yield atName(view, "id", `id ${shown(id)}`);
  },
  *"profile/messages-headers"(view) {
    if (view.exchange.response.headers === null || !isBody(view)) return notShown;
    return yield* headerProblems(view.exchange.response.headers, { "content-type": "application/json" });
  },
};

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
