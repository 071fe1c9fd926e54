import type { Expectations } from "./expectations.ts";
import type { Exchange } from "./exchange.ts";
import { shown } from "./place.ts";
import { notShown, type RuleFunction, type Rules, type Violation } from "./rule.ts";
import { callIn, notOnlyJson, reasoningTagIn, specialTokenIn } from "./violations.ts";

type Place = (found: string) => Violation;

/** A text of an answer. `at`: its beginning; `atEnd`: its end. */
export interface AnswerText {
  readonly text: string;
  readonly at: Place;
  readonly atEnd: Place;
}

/** One of the answers to a request. */
export interface AnswerChoice {
  readonly texts: readonly AnswerText[];
  readonly calls: readonly { readonly name: unknown; readonly at: Place }[];
  /** The texts that must be JSON, each by itself, if the request demands JSON. */
  readonly json: readonly string[];
  /** Neither a limit nor a filter ended it. */
  readonly isWhole: boolean;
  /** The limit of tokens ended it. */
  readonly isCut: boolean;
  readonly atEnd: Place;
}

/** An answer of any API, streamed or whole, as far as its request decides what is in it. */
export interface Answer {
  readonly exchange: Exchange;
  readonly expectations: Expectations;
  readonly choices: readonly AnswerChoice[];
  /** The output tokens of all choices; `undefined` if they were not counted. */
  readonly tokens: number | undefined;
  readonly atTokens: Place;
}

/** What a rule judges. */
export type RequestRule = keyof typeof judges;

const judges = {
  *stop({ expectations: { stops }, choices }) {
    if (stops.length === 0) return notShown;
    for (const { texts, atEnd } of choices) {
      const text = texts.map((one) => one.text).join("");
      const stop = stops.find((one) => text.includes(one));
      if (stop !== undefined) yield atEnd(`the stop string ${shown(stop)} in the text`);
    }
  },
  *limit({ expectations: { limit }, choices, tokens, atTokens }) {
    if (limit === undefined || tokens === undefined) return notShown;
    const allowed = limit * Math.max(1, choices.length);
    if (tokens > allowed) yield atTokens(`${tokens} tokens, ${allowed} allowed`);
  },
  *required({ expectations: { forced }, choices }) {
    const whole = choices.filter(({ isWhole }) => isWhole);
    if (!forced || whole.length === 0) return notShown;
    for (const { calls, atEnd } of whole) if (calls.length === 0) yield atEnd("no call");
  },
  *named({ expectations: { named }, choices }) {
    if (named === undefined) return notShown;
    for (const { name, at } of choices.flatMap(({ calls }) => calls))
      if (name !== named) yield at(`a call of ${shown(name)}`);
  },
  *noTools({ expectations: { silent }, choices }) {
    if (!silent) return notShown;
    for (const { name, at } of choices.flatMap(({ calls }) => calls)) yield at(`a call of ${shown(name)}`);
  },
  *parallel({ expectations: { single }, choices }) {
    if (!single) return notShown;
    for (const { calls } of choices) if (calls[1]) yield calls[1].at(`${calls.length} calls`);
  },
  *knownTool({ expectations: { tools }, choices }) {
    const calls = choices.flatMap((choice) => choice.calls);
    if (tools === undefined || calls.length === 0) return notShown;
    for (const { name, at } of calls)
      if (typeof name === "string" && name !== "" && !tools.has(name)) yield at(`a call of ${shown(name)}`);
  },
  *json({ expectations, choices }) {
    const due = choices.filter(({ isWhole, calls, json }) => isWhole && calls.length === 0 && json.length > 0);
    if (!expectations.json || due.length === 0) return notShown;
    for (const { json, atEnd } of due) for (const found of json.flatMap(notOnlyJson)) yield atEnd(found);
  },
  *reasoningInText({ choices }) {
    const written = choices.flatMap(({ texts }) => texts);
    if (written.length === 0) return notShown;
    for (const { text, at } of written) {
      const opening = reasoningTagIn(text);
      if (opening !== undefined) yield at(`text that begins ${shown(opening)}`);
    }
  },
  *callInText({ exchange, expectations: { silent }, choices }) {
    if (exchange.request.body === undefined || silent) return notShown;
    // A call that the limit cut before its name was complete can only be shown as the text that it is.
    const written = choices.flatMap(({ texts, isCut }) => (isCut ? [] : texts));
    if (written.length === 0) return notShown;
    for (const { text, at } of written) {
      const markup = callIn(text);
      if (markup !== undefined) yield at(`${markup} in the text`);
    }
  },
  *specialToken({ choices }) {
    const written = choices.flatMap(({ texts }) => texts);
    if (written.length === 0) return notShown;
    for (const { text, atEnd } of written) {
      const special = specialTokenIn(text);
      if (special !== undefined) yield atEnd(`text that ends with ${special}`);
    }
  },
} satisfies Readonly<Record<string, RuleFunction<Answer>>>;

/** Returns the rules about an answer and its request, under the ids that an API has for them. `answerOf`: `undefined` if there is no answer. */
export function requestRules<View>(
  answerOf: (view: View) => Answer | undefined,
  ids: Readonly<Partial<Record<RequestRule, string>>>,
): Rules<View> {
  return Object.fromEntries(
    Object.entries(ids).map(([rule, id]) => [
      id,
      function* (view: View) {
        const answer = answerOf(view);
        return answer ? yield* judges[rule as RequestRule](answer) : notShown;
      },
    ]),
  );
}
