import { chunkDelta } from "../../../../wire/apis/chat/schema.ts";
import { atChoicePart, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { type ChoicePart, type Json, type StreamView } from "../view.ts";
import { expectedMembers, memberViolation } from "./member-order.ts";
import type { ProfileName } from "./profile-rule.ts";
import { type Rules, type Violation, notShown } from "../rule.ts";

const hasChatChoices = (view: StreamView) => view.exchange.endpoint === "chat" && view.choices.size > 0;

/** The members of deltas. Source: recordings of 2024-09 to 2026-08. */
export const chunkDeltaStreamRules: Rules<StreamView, ProfileName> = {
  *"profile/first-delta"(view, profile) {
    if (!hasChatChoices(view)) return notShown;
    for (const [first] of view.choices.values()) {
      if (first && !isOpening(first.delta, profile))
        yield atChoicePart(first, "delta", `it begins with ${shown(first.delta)}`);
    }
  },
  *"profile/deltas"(view, profile) {
    if (!hasChatChoices(view)) return notShown;
    for (const track of view.choices.values()) {
      for (const [at, part] of track.entries()) yield* deltaViolations(part, at === 0, profile);
    }
  },
};

/** Returns whether a choice of the profile may begin with this delta. */
function isOpening(delta: Json, profile: ProfileName): boolean {
  const { role, content, refusal } = delta;
  const names = Object.keys(delta).join();
  if (role !== "assistant") return false;
  if (profile === "lean") return names === "role";
  switch (names) {
    case "role,content,refusal":
      return (content === "" && refusal === null) || (content === null && refusal === "");
    case "role,content,tool_calls,refusal":
    case "role,content,function_call,refusal":
      return content === null && refusal === null;
    case "role,content":
      // Parallel calls, each with its own header.
      return content === null;
    case "role,refusal":
      // Audio.
      return refusal === null;
    default:
      return false;
  }
}

/** The members of which a later delta has one. */
const laterMembers: Readonly<Record<ProfileName, ReadonlySet<string>>> = {
  lean: namesAfterFirst("lean"),
  exact: namesAfterFirst("exact"),
};

function namesAfterFirst(profile: ProfileName): ReadonlySet<string> {
  const names = expectedMembers(chunkDelta, profile, { role: "never", audio: "never" });
  return new Set(names.map((name) => name.replace("?", "")));
}

function* deltaViolations(part: ChoicePart, first: boolean, profile: ProfileName): Generator<Violation> {
  const { delta, choice } = part;
  const names = Object.keys(delta);
  if (choice.finish_reason !== null && choice.finish_reason !== undefined) {
    if (names.length > 0) yield atChoicePart(part, "delta", `${names.join(", ")} next to the finish reason`);
    return;
  }
  if (!first) {
    const known = laterMembers[profile];
    // Profile lean may pass on members of the source; a delta with audio has a content of null.
    const isOwn = profile === "lean" && names.length > 0 && !names.some((name) => known.has(name) || name === "role");
    const right = names.length === 1 && known.has(names[0] ?? "");
    if (!right && !isOwn && !("audio" in delta))
      yield atChoicePart(part, "delta", `a delta with ${names.join(", ") || "nothing"}`);
  }
  if (Array.isArray(delta.tool_calls)) {
    const found = callViolation(delta.tool_calls);
    if (found !== undefined) yield atChoicePart(part, "tool_calls", found);
  }
}

function callViolation(list: readonly unknown[]): string | undefined {
  const [element] = list;
  if (list.length !== 1 || !isObject(element)) return `${list.length} calls in one delta`;
  const isHeader = "id" in element || "type" in element;
  const kind = "custom" in element ? "custom" : "function";
  const text = kind === "custom" ? "input" : "arguments";
  const found = memberViolation(element, isHeader ? ["index", "id", "type", kind] : ["index", kind], false);
  if (found !== undefined) return `a call with ${found}`;
  const inner = element[kind];
  if (!isObject(inner)) return `${kind} is ${shown(inner)}`;
  const wrong = memberViolation(inner, isHeader ? ["name", text] : [text], false);
  if (wrong !== undefined) return `a ${kind} with ${wrong}`;
  return isHeader && inner[text] !== "" ? `${text} in the first delta of a call` : undefined;
}
