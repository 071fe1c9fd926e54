import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { judgeDiagnosed } from "../../../../src/judge/check/rules/group/diagnosed.ts";
import { legalMessageBody } from "../../legal/messages.ts";
import { legalResponseBody } from "../../legal/responses.ts";
import { between, seeded } from "../../random.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";
import { withMembers, withStatus } from "../responses/stored-story.ts";

type Members = Record<string, unknown>;

/** What a server answers: without a change, with one, and with a reason that is not that of the change. */
interface Wire {
  readonly legal: (seed: number) => { readonly exchange: Exchange };
  readonly endpoint: Exchange["endpoint"];
  readonly none: Members;
  readonly due: (tokens: number) => Members;
  readonly others: readonly Members[];
  readonly inconclusive: Members;
}

const wires: readonly Wire[] = [
  {
    legal: legalMessageBody,
    endpoint: "messages",
    none: { diagnostics: null },
    due: (tokens) => ({
      diagnostics: { cache_miss_reason: { type: "system_changed", cache_missed_input_tokens: tokens } },
    }),
    others: [
      { diagnostics: { cache_miss_reason: { type: "messages_changed", cache_missed_input_tokens: 7 } } },
      { diagnostics: { cache_miss_reason: { type: "previous_message_not_found" } } },
    ],
    inconclusive: { diagnostics: { cache_miss_reason: null } },
  },
  {
    legal: legalResponseBody,
    endpoint: "responses",
    none: { prompt_cache_diagnostics: { type: "cache_hit" } },
    due: (tokens) => ({
      prompt_cache_diagnostics: { type: "cache_miss", cache_missed_tokens: tokens, reason: "input_changed" },
    }),
    others: [
      { prompt_cache_diagnostics: { type: "cache_miss", cache_missed_tokens: 7, reason: "model_changed" } },
      { prompt_cache_diagnostics: { type: "comparison_response_not_found" } },
    ],
    inconclusive: { prompt_cache_diagnostics: { type: "unavailable" } },
  },
];

/** Judges a legal answer with these members of the two requests. */
function judged(wire: Wire, seed: number, members: (tokens: number) => readonly [same: Members, changed: Members]) {
  const { exchange } = wire.legal(seed);
  if (exchange.endpoint !== wire.endpoint || exchange.response.status !== 200) return undefined;
  const [same, changed] = members(between(0, 9000, seeded(seed)));
  return judgeDiagnosed(withMembers(exchange, same), withMembers(exchange, changed)).findings;
}

export const diagnosisMutations: readonly IllegalChange[] = wires.flatMap((wire) => {
  const { endpoint, none, due, others } = wire;
  const change = (name: string, members: (tokens: number) => readonly [Members, Members]): IllegalChange => ({
    rule: "cache/diagnosed",
    name: `${endpoint}: ${name}`,
    make: (seed) => judged(wire, seed, members),
  });
  return [
    change("nothing for a change", () => [none, none]),
    change("a change for the same request", (tokens) => [due(tokens), due(tokens)]),
    ...others.map((other) => change(`another reason ${JSON.stringify(other)}`, () => [none, other])),
  ];
});

export const legalDiagnoses: readonly LegalChange[] = wires.flatMap((wire) => {
  const { endpoint, none, due, inconclusive } = wire;
  return [
    { name: `${endpoint}: the reason of a change`, make: (seed: number) => judged(wire, seed, (n) => [none, due(n)]) },
    { name: `${endpoint}: no result yet`, make: (seed: number) => judged(wire, seed, () => [none, inconclusive]) },
    {
      name: `${endpoint}: a refusal`,
      make(seed: number) {
        const { exchange } = wire.legal(seed);
        return judgeDiagnosed(exchange, withStatus(exchange, 400)).findings;
      },
    },
  ];
});
