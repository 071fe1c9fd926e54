import { isObject } from "../../../../wire/core/json.ts";
import { apiOfEndpoint, type Exchange } from "../exchange.ts";
import type { BodyView, StreamView } from "../view.ts";
import { type ProfileName } from "./profile-rule.ts";
import { type Rules, type Violation, notShown } from "../rule.ts";

const compactLayout = { name: "compact", indent: 0, ends: [""] };
/** OpenAI's application: generated answers end with a line feed, errors do not, and lists of models ended with one for some time. */
const answerLayout = { name: "two spaces a level and a final line feed", indent: 2, ends: ["\n"] };
const refusalLayout = { name: "two spaces a level and no final line feed", indent: 2, ends: [""] };
const listLayout = { name: "two spaces a level", indent: 2, ends: ["", "\n"] };
/** The Responses API: Python's `json.dumps(indent=2)`, which escapes all characters that are not ASCII. */
const responseLayout = { name: "two spaces a level, no final line feed, beyond ASCII escaped", indent: 2, ends: [""] };
/** OpenAI's gateway. */
const gatewayLayout = { name: "four spaces a level and a final line feed, < > & escaped", indent: 4, ends: ["\n"] };

type Layout = typeof compactLayout;

/** The layout of JSON. Source: recordings of 2025-08 to 2026-08. */
export const layoutStreamRules: Rules<StreamView, ProfileName> = {
  *"profile/layout"(view) {
    if (view.chunks.length === 0) return notShown;
    for (const { frame } of view.chunks) {
      const violation = frame.data === null ? undefined : layoutViolation(frame.data, [compactLayout]);
      if (violation)
        yield { ...violation, start: frame.dataStart + violation.start, end: frame.dataStart + violation.end };
    }
  },
};

export const layoutBodyRules: Rules<BodyView, ProfileName> = {
  *"profile/layout"(view, profile) {
    const {
      exchange: { endpoint, response },
      value,
    } = view;
    if (!isObject(value) || response.body === "" || (endpoint === "other" && response.status < 400)) return notShown;
    const violation = layoutViolation(view.exchange.response.body, layoutsOf(view, profile));
    if (violation) yield violation;
  },
};

function layoutsOf({ exchange, value }: BodyView, profile: ProfileName): readonly Layout[] {
  const { endpoint } = exchange;
  const { status } = exchange.response;
  if (profile === "lean") return [compactLayout];
  if (endpoint === "response-socket-error") return [compactLayout];
  if (status < 400 && apiOfEndpoint[endpoint] === "responses") return [responseLayout];
  if (status < 400) return [endpoint === "models" || endpoint === "model" ? listLayout : answerLayout];
  return { gateway: [gatewayLayout], application: [refusalLayout], either: [refusalLayout, gatewayLayout] }[
    refuserOf(exchange, value)
  ];
}

function layoutViolation(text: string, layouts: readonly Layout[]): Violation | undefined {
  const differences = layouts.flatMap((layout) =>
    layout.ends.map((end) => {
      const whole = laidOut(text, layout.indent) + end;
      return firstDifference(
        text,
        layout === gatewayLayout ? htmlSafe(whole) : layout === responseLayout ? asciiOnly(whole) : whole,
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

/**
 * Returns which part of OpenAI refuses a request, and so writes the error. The gateway refuses because of keys, permissions, limits and
 * models (it does not name those as `param`); the application refuses the rest, and everything on newer endpoints. Both have refused unknown
 * paths. Source: recorded errors.
 */
export function refuserOf({ request, response }: Exchange, value: unknown): "gateway" | "application" | "either" {
  const { status } = response;
  const error = isObject(value) && isObject(value.error) ? value.error : {};
  if (/\/(?:responses|moderations)\b/.test(request.path)) return "application";
  if (status === 401 || status === 403 || status === 429) return "gateway";
  if (status !== 404 || error.param !== null) return "application";
  return error.code === null ? "either" : "gateway";
}

/**
 * Returns a JSON text in another layout: compact, or with `indent` spaces per level as `JSON.stringify` writes it. Strings have only the
 * escapes that JSON requires; numbers are unchanged. `json` must be valid JSON.
 */
export function laidOut(json: string, indent: number): string {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"?|[[\]{}:,]|[^\s[\]{}:,"]+/g) ?? [];
  let out = "";
  let depth = 0;
  const newLine = () => (indent === 0 ? "" : `\n${" ".repeat(depth * indent)}`);
  for (const [at, token] of tokens.entries()) {
    const empty = isOpening(tokens[at - 1]) && isClosing(token);
    if (isOpening(token)) {
      depth++;
      out += token;
      if (!isClosing(tokens[at + 1])) out += newLine();
    } else if (isClosing(token)) {
      depth--;
      out += empty ? token : newLine() + token;
    } else if (token === ",") out += token + newLine();
    else if (token === ":") out += indent === 0 ? ":" : ": ";
    else out += token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token;
  }
  return out;
}

/** Returns the index of the first difference of two texts, or `undefined` if they are equal. */
export function firstDifference(text: string, other: string): number | undefined {
  if (text === other) return undefined;
  let at = 0;
  while (at < text.length && text[at] === other[at]) at++;
  return at;
}

function isOpening(token: string | undefined): boolean {
  return token === "{" || token === "[";
}

function isClosing(token: string | undefined): boolean {
  return token === "}" || token === "]";
}
