import type { Offence } from "../rule.ts";
import { isObject } from "../../../core/json.ts";
import { apiOf } from "../exchange.ts";
import { type BodyView } from "../view.ts";
import { firstDifference, laidOut } from "./json-layout.ts";
import type { ProfileName, ProfileRule } from "./profile-rule.ts";
import { refuserOf } from "./refuser.ts";

const compact = { name: "compact", indent: 0, ends: [""] };
/** OpenAI's application: answers that are generated end with a line feed, errors do not, lists of models did for a while. */
const answer = { name: "two spaces a level and a final line feed", indent: 2, ends: ["\n"] };
const refusal = { name: "two spaces a level and no final line feed", indent: 2, ends: [""] };
const list = { name: "two spaces a level", indent: 2, ends: ["", "\n"] };
/** A response: Python's `json.dumps(indent=2)`, which escapes all that is beyond ASCII. */
const response = { name: "two spaces a level, no final line feed, beyond ASCII escaped", indent: 2, ends: [""] };
/** The gateway in front of it. */
const gateway = { name: "four spaces a level and a final line feed, < > & escaped", indent: 4, ends: ["\n"] };

type Layout = typeof compact;

/** How JSON is laid out. Source: recordings of 2025-08 to 2026-08. */
export const layoutRule: ProfileRule = {
  id: "profile/layout",
  severity: "error",
  concern: "it is not the form that was demanded",
  says: "JSON is compact (lean, and streams of exact); bodies of exact are indented, and errors as OpenAI's gateway or application indents them.",
  source: "recordings 408 of 408 streams, 1620 of 1643 bodies",
  breaks: ["tests that compare bytes"],
  judges: "profile",
  stream: {
    shown: (view) => view.chunks.length > 0,
    *judge(view) {
      for (const { frame } of view.chunks) {
        const offence = frame.data === null ? undefined : layoutOffence(frame.data, [compact]);
        if (offence) yield { ...offence, start: frame.dataStart + offence.start, end: frame.dataStart + offence.end };
      }
    },
  },
  body: {
    shown: (view) => isObject(view.value) && view.exchange.response.body !== "",
    *judge(view, profile) {
      const offence = layoutOffence(view.exchange.response.body, layoutsOf(view, profile));
      if (offence) yield offence;
    },
  },
};

function layoutsOf({ exchange, value }: BodyView, profile: ProfileName): readonly Layout[] {
  const { endpoint } = exchange;
  const { status } = exchange.response;
  if (profile === "lean") return [compact];
  if (endpoint === "response-socket-error") return [compact];
  if (status < 400 && apiOf[endpoint] === "responses") return [response];
  if (status < 400) return [endpoint === "models" || endpoint === "model" ? list : answer];
  return { gateway: [gateway], application: [refusal], either: [refusal, gateway] }[refuserOf(exchange, value)];
}

function layoutOffence(text: string, layouts: readonly Layout[]): Offence | undefined {
  const differences = layouts.flatMap((layout) =>
    layout.ends.map((end) => {
      const whole = laidOut(text, layout.indent) + end;
      return firstDifference(
        text,
        layout === gateway ? htmlSafe(whole) : layout === response ? asciiOnly(whole) : whole,
      );
    }),
  );
  if (differences.includes(undefined)) return undefined;
  const start = Math.max(...differences.map((at) => at ?? 0));
  return {
    start,
    end: Math.min(start + 20, text.length),
    found: `not ${layouts.map(({ name }) => name).join(", or ")}`,
  };
}

/** Go's default JSON escapes. */
function htmlSafe(json: string): string {
  return json.replace(/[<>&]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}

/** Python's default JSON escapes. */
function asciiOnly(json: string): string {
  return json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
