import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import type { GroupVerdict } from "../../../../src/judge/check/rules/group/group-rule.ts";
import {
  judgeBackground,
  judgeCompacted,
  judgeContinued,
  judgeConversation,
  judgeContinuedBySocket,
  judgeDeleted,
  judgeInputItems,
  judgeNotKept,
  judgeShown,
  judgeUnknownBySocket,
} from "../../../../src/judge/check/rules/group/stored.ts";
import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { refusedBySocket } from "../../legal/stored-responses.ts";
import { between, oneOf, seeded } from "../../random.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";
import { type Story, story, withBody, withMembers, withStatus, words } from "./stored-story.ts";
import type { Json } from "./stream-draft.ts";

/** The items with one more of this role. */
function withAnswer(items: Exchange, role: string): Exchange {
  const { data } = JSON.parse(items.response.body) as { readonly data: readonly Json[] };
  return withMembers(items, { data: [...data, { id: "msg_1", type: "message", role, content: [] }] });
}

type Judged = (told: Story, random: () => number) => GroupVerdict;

const wrong: readonly (readonly [rule: string, name: string, judged: Judged])[] = [
  ["stored/shown", "another id", ({ created, found }) => judgeShown(created, withMembers(found, { id: "resp_other" }))],
  [
    "stored/shown",
    "no output any more",
    ({ created, found }) => judgeShown(created, withMembers(found, { output: [] })),
  ],
  [
    "stored/shown",
    "no usage any more",
    ({ created, found }) => judgeShown(created, withMembers(found, { usage: null })),
  ],
  ["stored/shown", "still in progress", ({ created, running }) => judgeShown(created, running)],
  ["stored/shown", "a failure", ({ created, found }) => judgeShown(created, withStatus(found, 500))],
  ["stored/input-items", "no items", ({ items }) => judgeInputItems(words, withMembers(items, { data: [] }))],
  ["stored/input-items", "another input", ({ items }) => judgeInputItems("What nobody said", items)],
  ["stored/input-items", "a failure", ({ items }) => judgeInputItems(words, withStatus(items, 500))],
  ["stored/continued", "what was said is forgotten", ({ next, created }) => judgeContinued(next, created)],
  [
    "stored/continued",
    "a failure",
    ({ created, next }, random) => judgeContinued(created, withStatus(next, oneOf([500, 502, 503], random))),
  ],
  ["stored/background", "a failure", ({ begun }) => judgeBackground(withStatus(begun, 500), [])],
  ["stored/continued", "as many tokens as before", ({ created }) => judgeContinued(created, created)],
  ["stored/deleted", "it is still shown", ({ deletion, found, orphan }) => judgeDeleted(deletion, [found, orphan])],
  ["stored/deleted", "it is still continued", ({ deletion, gone, next }) => judgeDeleted(deletion, [gone, next])],
  ["stored/deleted", "a failure", ({ deletion }) => judgeDeleted(withStatus(deletion, 500), [])],
  ["stored/not-kept", "it is shown", ({ found }) => judgeNotKept(found)],
  ["stored/background", "it is not found", ({ begun, gone }) => judgeBackground(begun, [gone])],
  [
    "stored/background",
    "it never ends",
    ({ begun, running }, random) =>
      judgeBackground(
        begun,
        Array.from({ length: between(1, 5, random) }, () => running),
      ),
  ],
  [
    "stored/background",
    "another one is shown",
    ({ begun, found }) => judgeBackground(begun, [withMembers(found, { id: "resp_other" })]),
  ],
  ["stored/background", "it cannot be asked for", ({ begun }) => judgeBackground(begun, [])],
  ["stored/compacted", "it is not taken back", ({ compaction, orphan }) => judgeCompacted(compaction, orphan)],
  ["stored/compacted", "a failure", ({ compaction }) => judgeCompacted(withStatus(compaction, 500), undefined)],
  [
    "stored/conversation",
    "what was said is forgotten",
    ({ created, next, items }) => judgeConversation(words, next, created, items),
  ],
  [
    "stored/conversation",
    "nothing is added",
    ({ created, next, items }) => judgeConversation(words, created, next, withMembers(items, { data: [] })),
  ],
  [
    "stored/conversation",
    "only the input is added",
    ({ created, next, items }) => judgeConversation(words, created, next, withAnswer(items, "user")),
  ],
  [
    "stored/conversation",
    "a failure",
    ({ created, next, items }) => judgeConversation(words, withStatus(created, 500), next, items),
  ],
  [
    "stored/conversation",
    "its items are not listed",
    ({ created, next, items }) => judgeConversation(words, created, next, withStatus(items, 404)),
  ],
  ["socket/continued", "what was said is forgotten", ({ first, second }) => judgeContinuedBySocket(second, first)],
  ["socket/continued", "it is not found", ({ first, unknown }) => judgeContinuedBySocket(first, unknown)],
  ["socket/unknown", "an answer", ({ second }) => judgeUnknownBySocket(second)],
  ["socket/unknown", "no code", () => judgeUnknownBySocket(refusedBySocket(null, "Not found."))],
];

/** What happens to a response that a server keeps. */
export const storedMutations: readonly IllegalChange[] = wrong.map(([rule, name, judged]): IllegalChange => ({
  rule,
  name,
  make(seed) {
    const random = seeded(seed);
    return judged(story(random), random).findings;
  },
}));

const right: readonly (readonly [name: string, judged: Judged])[] = [
  ["a response as it was stored", ({ created, found }) => judgeShown(created, found)],
  [
    "members in another order",
    ({ created, found }) =>
      judgeShown(
        created,
        withBody(found, Object.fromEntries(Object.entries(JSON.parse(found.response.body) as Json).toReversed())),
      ),
  ],
  ["a server that shows none", ({ created, gone }) => judgeShown(created, gone)],
  ["its input", ({ items: listed }) => judgeInputItems(words, listed)],
  ["a server that lists none", ({ gone }) => judgeInputItems(words, gone)],
  ["what goes on", ({ created, next }) => judgeContinued(created, next)],
  ["a server that refuses to go on", ({ created, orphan }) => judgeContinued(created, orphan)],
  [
    "a server that counts nothing",
    ({ created, next }) => judgeContinued(withMembers(created, { usage: null }), withMembers(next, { usage: null })),
  ],
  [
    "a server that leaves out what it had read before",
    ({ created, next }) =>
      judgeContinued(
        created,
        withMembers(next, { usage: { input_tokens: 9, input_tokens_details: { cached_tokens: 512 } } }),
      ),
  ],
  ["what is deleted and gone", ({ deletion, gone, orphan }) => judgeDeleted(deletion, [gone, orphan])],
  ["a deletion without a body", ({ deletion, gone }) => judgeDeleted(withStatus(deletion, 204), [gone])],
  [
    "a server that does not let its clients delete",
    ({ deletion, found }) => judgeDeleted(withStatus(deletion, 403), [found]),
  ],
  ["a server that deletes none", ({ gone, found }) => judgeDeleted(gone, [found])],
  ["what is not kept", ({ gone }) => judgeNotKept(gone)],
  ["what ends in the background", ({ begun, running, found }) => judgeBackground(begun, [running, running, found])],
  ["a server without a background", ({ orphan }) => judgeBackground(orphan, [])],
  ["an answer that is whole at once", ({ created }) => judgeBackground(created, [])],
  ["what was compacted", ({ compaction, next }) => judgeCompacted(compaction, next)],
  ["a server that compacts nothing", ({ gone }) => judgeCompacted(gone, undefined)],
  [
    "a conversation that continues",
    ({ created, next, items }) => judgeConversation(words, created, next, withAnswer(items, "assistant")),
  ],
  ["a server without conversations", ({ orphan, next, items }) => judgeConversation(words, orphan, next, items)],
  ["what goes on by WebSocket", ({ first, second }) => judgeContinuedBySocket(first, second)],
  ["an unknown id by WebSocket", ({ unknown }) => judgeUnknownBySocket(unknown)],
];

export const legalStored: readonly LegalChange[] = [
  ...right.map(([name, judged]) => ({
    name: `of a stored response: ${name}`,
    make(seed: number) {
      const random = seeded(seed);
      return judged(story(random), random).findings;
    },
  })),
  {
    name: "of a stored response: all its answers by themselves",
    make(seed) {
      const { orphan, ...others } = story(seeded(seed));
      return [...Object.values(others), orphan].flatMap((exchange: Exchange) => judge(exchange).findings);
    },
  },
];
