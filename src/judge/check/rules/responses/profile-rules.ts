import { membersOf } from "../../../../wire/apis/members.ts";
import {
  attributionMembers,
  clientJsonMembers,
  floatMembers,
  harmMembers,
  response,
  wireOrder,
} from "../../../../wire/apis/responses/schema.ts";
import { responseEvents } from "../../../../wire/apis/responses/event-schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atEnd, atFrame, atMember, atName } from "../place.ts";
import { apiOfEndpoint } from "../exchange.ts";
import { answerDate, memberViolation } from "../profile/member-order.ts";
import type { ProfileName } from "../profile/profile-rule.ts";
import type { BodyView, Json, StreamView } from "../view.ts";
import { isEnd, responseIn, streamState } from "./stream-state.ts";
import { type Rules, type Violation, notShown } from "../rule.ts";

function isResponseStream({ exchange, chunks }: StreamView): boolean {
  return apiOfEndpoint[exchange.endpoint] === "responses" && chunks.length > 0;
}

function isWholeResponse({ exchange, value }: BodyView): boolean {
  return exchange.endpoint === "responses" && exchange.response.status === 200 && isObject(value);
}

function requestedObfuscation(view: StreamView): boolean | undefined {
  const options = view.exchange.request.body?.stream_options;
  return isObject(options) && typeof options.include_obfuscation === "boolean"
    ? options.include_obfuscation
    : undefined;
}

/** Rules about the form of the Responses API in a profile. Source: recordings of 2026-07 and 2026-08. */
export const responseProfileStreamRules: Rules<StreamView, ProfileName> = {
  *"profile/response-members"(view, profile) {
    if (!isResponseStream(view) || streamState(view).lifecycle.length === 0) return notShown;
    const expected = wanted(profile, false, answerDate(view));
    for (const event of streamState(view).lifecycle) {
      const found = memberViolation(responseIn(event), expected, profile === "lean");
      if (found !== undefined) yield atMember(event.chunk, "response", `a response with ${found}`);
    }
  },
  // Before, events had another order.
  *"profile/response-order"(view) {
    if (!isResponseStream(view) || answerDate(view) < "2026-01") return notShown;
    for (const chunk of view.chunks) {
      const found = outOfOrder(chunk.value);
      if (found !== undefined) yield atMember(chunk, found.member, found.found);
    }
  },
  // A WebSocket stays open.
  *"profile/response-end"(view, profile) {
    if (view.exchange.endpoint !== "responses" || !view.chunks.some(({ value }) => isEnd(value.type))) return notShown;
    const done = view.frames[view.done];
    if (profile === "lean" && !done) yield atEnd(view.exchange.response.body, "no [DONE]");
    if (profile === "exact" && done) yield atFrame(done, "[DONE]");
  },
  *"profile/response-obfuscation"(view, profile) {
    if (!isResponseStream(view) || view.exchange.request.body === undefined) return notShown;
    const due = requestedObfuscation(view) ?? profile === "exact";
    for (const { chunk, type, value } of streamState(view).events) {
      const mayHave = "obfuscation" in (responseEvents.get(type)?.shape ?? {});
      const has = "obfuscation" in value;
      if (has && (!due || !mayHave)) yield atMember(chunk, "obfuscation", "obfuscation");
      else if (!has && due && mayHave) yield atFrame(chunk.frame, "no obfuscation");
    }
  },
  *"profile/response-numbers"(view, profile) {
    if (!isResponseStream(view)) return notShown;
    for (const { frame } of view.chunks)
      for (const violation of numbers(frame.data ?? "", profile, serde))
        yield { ...violation, start: frame.dataStart + violation.start, end: frame.dataStart + violation.end };
  },
};

export const responseProfileBodyRules: Rules<BodyView, ProfileName> = {
  *"profile/response-members"(view, profile) {
    if (!isWholeResponse(view)) return notShown;
    const found = isObject(view.value)
      ? memberViolation(view.value, wanted(profile, true, answerDate(view)), profile === "lean")
      : undefined;
    if (found !== undefined) yield atName(view, "object", found);
  },
  *"profile/response-order"(view) {
    if (!isWholeResponse(view)) return notShown;
    const found = outOfOrder(view.value as Json);
    if (found !== undefined) yield atName(view, found.member, found.found);
  },
  *"profile/response-numbers"(view, profile) {
    if (!isWholeResponse(view)) return notShown;
    return yield* numbers(view.exchange.response.body, profile, python);
  },
};

const floats = new RegExp(`(?<!\\\\)"(?:${floatMembers.join("|")})":\\s*(-?\\d[\\d.eE+-]*)`, "g");

/** A number below 1e-5 as Rust prints it, any other with a point. */
const serde = /^-?\d+\.\d+$|^-?\d(\.\d+)?e-[1-9]\d*$/;
/** The same in Python. */
const python = /^-?\d+\.\d+$|^-?\d(\.\d+)?e-\d\d+$/;

function* numbers(json: string, profile: ProfileName, exact: RegExp): Generator<Violation> {
  for (const { 0: whole, 1: text = "", index } of json.matchAll(floats)) {
    const isRight = profile === "lean" ? text === JSON.stringify(Number(text)) : exact.test(text);
    const start = index + whole.length - text.length;
    if (!isRight) yield { start, end: start + text.length, found: `the number ${text}` };
  }
}

/**
 * Returns the members that a response has in a profile, with a `?` after those that it may have. `date`: of the answer's form; newer
 * members may be absent.
 */
function wanted(profile: ProfileName, isBody: boolean, date: string): readonly string[] {
  return membersOf(response).flatMap(({ name, schema, since = "" }) => {
    const only = schema.meta()?.["profile"];
    if (profile === "exact" && since > date) return [`${name}?`];
    if (only === undefined) return [name];
    if (only === "some") return [`${name}?`];
    if (profile !== "exact" || (only === "exact body" && !isBody)) return [];
    return [only === "exact, some" ? `${name}?` : name];
  });
}

/** Members inside which no order is judged: JSON of the client's own, and lists that have another order. */
const otherOrder: ReadonlySet<string> = new Set([
  ...clientJsonMembers,
  ...harmMembers,
  ...attributionMembers,
  "arguments",
  "environment",
]);

/** Returns the first object of a response or event whose members are not in OpenAI's order, or `undefined`. */
function outOfOrder(value: Json): { readonly member: string; readonly found: string } | undefined {
  const names = Object.keys(value);
  const due = wireOrder(names, value.object === "response");
  const wrong = names.findIndex((name, at) => name !== due[at]);
  const member = names[wrong];
  if (member !== undefined) return { member, found: `${member} in the place of ${due[wrong] ?? ""}` };
  for (const [name, inner] of Object.entries(value)) {
    if (otherOrder.has(name)) continue;
    for (const one of [inner].flat()) {
      const found = isObject(one) ? outOfOrder(one) : undefined;
      if (found) return found;
    }
  }
  return undefined;
}
