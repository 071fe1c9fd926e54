import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { type Expectation, judgeExpectation } from "../../../../src/judge/check/rules/group/expectation.ts";
import { judgeSame } from "../../../../src/judge/check/rules/group/same.ts";
import { exact, lean } from "../../../../src/wire/apis/profile.ts";
import { messageEventsFor, messageRequest } from "../../legal/message-events.ts";
import { refusedMessage, writtenMessageBody, writtenMessageStream } from "../../legal/messages.ts";
import { oneOf, seeded } from "../../random.ts";
import { bodyDraftOf, bodyExchangeOf } from "../body/body-draft.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";
import type { Json } from "./message-draft.ts";

/** A message in three answers: whole, again, and streamed. */
interface Three {
  readonly plain: Exchange;
  readonly again: Exchange;
  readonly streamed: Exchange;
}

function three(seed: number): Three {
  const random = seeded(seed);
  const profile = oneOf([lean, exact], random);
  const body = messageRequest(random);
  const events = messageEventsFor(body, random, false);
  return {
    plain: writtenMessageBody(body, events, profile, random),
    again: writtenMessageBody(body, events, profile, random),
    streamed: writtenMessageStream({ ...body, stream: true }, events, profile, random),
  };
}

/** Both whole answers changed in the same way. */
function changed({ plain, again, streamed }: Three, change: (message: Json) => boolean): Three | undefined {
  const drafts = [bodyDraftOf(plain), bodyDraftOf(again)] as const;
  if (!drafts.every(({ value }) => change(value))) return undefined;
  return { plain: bodyExchangeOf(drafts[0]), again: bodyExchangeOf(drafts[1]), streamed };
}

const blocks = (message: Json, type: string) => (message.content as Json[]).filter((block) => block.type === type);

const differences: readonly (readonly [rule: string, name: string, change: (message: Json) => boolean])[] = [
  [
    "same/text",
    "a word that is missing in a message",
    (message) => {
      const [first] = blocks(message, "text");
      if (first) first.text = `${String(first.text)} more`;
      return first !== undefined;
    },
  ],
  [
    "same/calls",
    "a call of another tool",
    (message) => {
      const [first] = blocks(message, "tool_use");
      if (first) first.name = "g";
      return first !== undefined;
    },
  ],
  [
    "same/calls",
    "another input",
    (message) => {
      const [first] = blocks(message, "tool_use");
      if (first && message.stop_reason === "tool_use") first.input = { other: true };
      return first !== undefined && message.stop_reason === "tool_use";
    },
  ],
  [
    "same/finish",
    "another stop_reason",
    (message) => {
      message.stop_reason = message.stop_reason === "end_turn" ? "max_tokens" : "end_turn";
      return true;
    },
  ],
];

/** A refusal whose words name a member. */
function refusal(seed: number): { exchange: Exchange; expects: Expectation } | undefined {
  const random = seeded(seed);
  const exchange = refusedMessage(oneOf([lean, exact], random), random);
  const { error } = JSON.parse(exchange.response.body) as { error: { message: string } };
  const [, param] = /^(\w+(?:\.\w+)*): /.exec(error.message) ?? [];
  return param === undefined ? undefined : { exchange, expects: { refusal: exchange.response.status, param } };
}

function withWords(exchange: Exchange, message: unknown): Exchange {
  const draft = bodyDraftOf(exchange);
  (draft.value.error as Json).message = message;
  return bodyExchangeOf(draft);
}

/** Answers of the Messages API that differ, and refusals that do not say what is wrong. */
export const groupMutations: readonly IllegalChange[] = [
  ...differences.map(([rule, name, change]) => ({
    rule,
    name,
    make(seed: number) {
      const answers = changed(three(seed), change);
      return answers && judgeSame(answers.plain, answers.again, answers.streamed).findings;
    },
  })),
  ...["Invalid request", ""].map((words) => ({
    rule: "wrong/param",
    name: `an error that says ${JSON.stringify(words)}`,
    make(seed: number) {
      const expected = refusal(seed);
      return expected && judgeExpectation(withWords(expected.exchange, words), expected.expects).findings;
    },
  })),
];

export const legalGroups: readonly LegalChange[] = [
  {
    name: "a message as it was streamed",
    make(seed) {
      const { plain, again, streamed } = three(seed);
      return judgeSame(plain, again, streamed).findings;
    },
  },
  {
    name: "a refusal of the Messages API as expected",
    make(seed) {
      const expected = refusal(seed);
      return expected && judgeExpectation(expected.exchange, expected.expects).findings;
    },
  },
];
