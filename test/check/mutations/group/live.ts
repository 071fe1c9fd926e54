import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import {
  judgeDisconnect,
  judgeSideBySide,
  judgeStreamsApart,
  type LeavingTimes,
} from "../../../../src/judge/check/rules/group/live.ts";
import type { GenerationEvent } from "../../../../src/wire/core/events.ts";
import { exact, lean, type Profile } from "../../../../src/wire/apis/profile.ts";
import { writtenMessageStream } from "../../legal/messages.ts";
import { streamOf } from "../../legal/responses.ts";
import { writtenStream } from "../../legal/stream.ts";
import { between, oneOf, seeded } from "../../random.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";

const words = ["amber", "cobalt", "ivory", "scarlet"];

interface Asked {
  readonly word: string;
  readonly exchange: Exchange;
}

/** Streams of each API. */
const writers: readonly ((
  asked: string,
  events: readonly GenerationEvent[],
  profile: Profile,
  random: () => number,
) => Exchange)[] = [
  (asked, ...rest) =>
    writtenStream({ model: "m", messages: [{ role: "user", content: asked }], stream: true }, ...rest),
  (asked, ...rest) => streamOf({ model: "m", input: asked, stream: true }, ...rest),
  (asked, ...rest) =>
    writtenMessageStream(
      { model: "m", max_tokens: 24, messages: [{ role: "user", content: asked }], stream: true },
      ...rest,
    ),
];

/** As many streams as there are words, each saying its own three times; or those of `said`. */
function sideBySide(random: () => number, said: readonly string[] = words): Asked[] {
  const profile = oneOf([lean, exact], random);
  const write = oneOf(writers, random);
  return words.map((word, at) => {
    const texts = `${said[at] ?? ""}, `.repeat(3).match(/[^]{1,4}/g) ?? [];
    const events: GenerationEvent[] = [
      { type: "start", choice: 0 },
      ...texts.map((text) => ({ type: "text-delta", choice: 0, text }) as const),
      { type: "finish", choice: 0, reason: "stop" },
      { type: "end", end: { kind: "done" } },
    ];
    return { word, exchange: write(`Say the word ${word} three times.`, events, profile, random) };
  });
}

const idOf = ({ exchange }: Asked) => /"id":"([^"]+)"/.exec(exchange.response.body)?.[1] ?? "";

/** The id of one stream is another one's. */
function sharedIds(random: () => number): Asked[] {
  const [first, second, ...rest] = sideBySide(random);
  if (!first || !second) return [];
  const { exchange } = second;
  const body = exchange.response.body.replaceAll(idOf(second), idOf(first));
  return [first, { ...second, exchange: { ...exchange, response: { ...exchange.response, body } } }, ...rest];
}

/** What a server is measured at whose clients may leave. */
function times(random: () => number): LeavingTimes {
  const alone = between(20, 800, random);
  return { alone, long: Math.max(3000, alone * 10) + between(0, 60_000, random), after: alone, clients: 8 };
}

const apart = "live/streams-apart";

/** Measured facts, altered. */
export const liveMutations: readonly IllegalChange[] = [
  change(apart, "two streams with one id", (random) => judgeStreamsApart(sharedIds(random))),
  change(apart, "the answers are exchanged", (random) => judgeStreamsApart(sideBySide(random, words.toReversed()))),
  change(apart, "everybody gets the same answer", (random) => {
    const word = oneOf(words, random);
    return judgeStreamsApart(
      sideBySide(
        random,
        words.map(() => word),
      ),
    );
  }),
  change(apart, "a piece of another answer", (random) =>
    judgeStreamsApart(
      sideBySide(
        random,
        words.map((word, at) => word + (at === 2 ? words[between(0, 1, random)] : "")),
      ),
    ),
  ),
  change("live/side-by-side", "one waits for the other", (random) =>
    judgeSideBySide({ ended: true, milliseconds: between(2000, 60_000, random) }),
  ),
  change("live/disconnect", "the next request waits for what was left behind", (random) => {
    const facts = times(random);
    return judgeDisconnect({ ...facts, after: facts.alone * 4 + 501 + between(0, facts.long * facts.clients, random) });
  }),
];

export const legalLives: readonly LegalChange[] = [
  { name: "streams that keep apart", make: (seed) => judgeStreamsApart(sideBySide(seeded(seed))).findings },
  {
    name: "fewer streams were answered",
    make: (seed) => judgeStreamsApart(sideBySide(seeded(seed)).slice(0, 1)).findings,
  },
  {
    name: "a second stream next to the first",
    make: (seed) => judgeSideBySide({ ended: false, milliseconds: between(1, 60_000, seeded(seed)) }).findings,
  },
  {
    name: "answers that are made too fast to overlap",
    make: (seed) => judgeSideBySide({ ended: true, milliseconds: between(1, 1999, seeded(seed)) }).findings,
  },
  {
    name: "the next request is a little slower",
    make(seed) {
      const random = seeded(seed);
      const facts = times(random);
      return judgeDisconnect({ ...facts, after: between(1, facts.alone * 4 + 500, random) }).findings;
    },
  },
  {
    name: "a server that is too fast to tell",
    make: (seed) => judgeDisconnect({ ...times(seeded(seed)), long: 2999, after: 60_000 }).findings,
  },
];

function change(
  rule: string,
  name: string,
  judged: (random: () => number) => { readonly findings: ReturnType<IllegalChange["make"]> },
): IllegalChange {
  return { rule, name, make: (seed) => judged(seeded(seed)).findings };
}
