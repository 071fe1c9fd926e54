import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import { judge } from "../../../src/judge/check/rules/judge.ts";
import type { Legal } from "../legal/stream.ts";
import { oneOf, seeded } from "../random.ts";
import type { IllegalChange } from "./mutation.ts";

/** A change that makes something legal illegal, which was taken apart for it. */
export interface DraftMutation<Draft> {
  /** The rule that must notice. */
  readonly rule: string;
  readonly name: string;
  /** Whether it could be made in this draft. */
  apply(draft: Draft, random: () => number): boolean;
}

/** Changes one part of those that fit. */
export function onPart<Draft, Part>(
  rule: string,
  name: string,
  parts: (draft: Draft) => readonly Part[],
  change: (part: Part, draft: Draft) => unknown,
): DraftMutation<Draft> {
  return {
    rule,
    name,
    apply(draft, random) {
      const all = parts(draft);
      if (all.length === 0) return false;
      change(oneOf(all, random), draft);
      return true;
    },
  };
}

/** Rewrites the text of a draft that fits. */
export function onText<Draft extends { rewrite?: (body: string) => string }>(
  rule: string,
  name: string,
  fits: (draft: Draft) => boolean,
  rewrite: (body: string, random: () => number) => string,
): DraftMutation<Draft> {
  return {
    rule,
    name,
    apply(draft, random) {
      draft.rewrite = (body) => rewrite(body, random);
      return fits(draft);
    },
  };
}

/** How exchanges of a kind are made and taken apart. */
export interface Drafting<Draft> {
  legal(seed: number): Legal;
  draftOf(exchange: Exchange): Draft;
  exchangeOf(draft: Draft): Exchange;
}

/** Makes the change in a legal exchange. `demands`: what that was written in is demanded of it. */
export function illegalChange<Draft>(
  { rule, name, apply }: DraftMutation<Draft>,
  { legal, draftOf, exchangeOf }: Drafting<Draft>,
  demands: boolean,
): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      const { exchange, profile } = legal(seed);
      // Most rules of `exact` do not apply to answers of before its time.
      if (demands && !judge(exchange, profile.name).shown.includes(rule)) return undefined;
      const draft = draftOf(exchange);
      const before = JSON.stringify(exchangeOf(draft));
      if (!apply(draft, seeded(seed))) return undefined;
      const mutated = exchangeOf(draft);
      if (JSON.stringify(mutated) === before) return undefined;
      return judge(mutated, demands ? profile.name : undefined).findings;
    },
  };
}
