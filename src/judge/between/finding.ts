import type { DifferenceKind } from "./compare.ts";
import type { Fact } from "./facts.ts";

/** What a gateway does to a fact. */
export type FindingKind =
  | DifferenceKind
  /** The vendor refuses what the gateway has sent, or the gateway refuses what the vendor accepts. */
  | "refused"
  | "not-sent"
  | "unreadable"
  | "error-changed"
  | "header-lost"
  | "cut-without-error"
  | "delayed"
  | "not-cancelled"
  | "mixed-up"
  | "cache-lost";

export type Severity = "error" | "warning" | "note";

/** One thing that a gateway loses, with the facts in which it was seen. */
export interface Finding {
  /** The same for the same loss, in every run: `request lost sampling.seed`. */
  readonly key: string;
  readonly kind: FindingKind;
  readonly severity: Severity;
  /** The direction: to the vendor, or back. */
  readonly side: Fact["side"];
  /** Where, in the neutral form; "" for the whole. */
  readonly path: string;
  /** A sentence. */
  readonly message: string;
  /** The ids of the facts, the first 20. */
  readonly facts: readonly string[];
  /** A request with which it is seen, for a shell. */
  readonly curl: string;
  /** Both sides, as JSON or as they were sent. */
  readonly clientSide: string;
  readonly vendorSide: string;
  /** With `--confirm`: in how many requests it was looked for again, and in how many it was seen. */
  readonly again?: { readonly of: number; readonly seen: number };
}

/** A finding in one fact. */
export type FactFinding = Omit<Finding, "key" | "facts" | "curl" | "again">;

/** One row of the matrix: a fact, and the worst that has happened to it. */
export interface FactResult {
  readonly fact: Pick<Fact, "id" | "title" | "side">;
  readonly findings: readonly FactFinding[];
}

export const severities: readonly Severity[] = ["error", "warning", "note"];

/** Indices are replaced by `[]`. */
export function keyOf({ side, kind, path }: FactFinding): string {
  return [side, kind, path.replaceAll(/\[\d+\]/g, "[]")].filter((part) => part !== "").join(" ");
}

/** Joins the findings of all facts: the worst first, and those of most facts first. */
export function joinFindings(
  found: readonly { readonly fact: Fact; readonly curl: string; readonly finding: FactFinding }[],
): Finding[] {
  const byKey = new Map<string, { finding: Finding; facts: string[] }>();
  for (const { fact, curl, finding } of found) {
    const key = keyOf(finding);
    const known = byKey.get(key);
    if (known) {
      if (!known.facts.includes(fact.id) && known.facts.length < 20) known.facts.push(fact.id);
      continue;
    }
    const facts = [fact.id];
    byKey.set(key, { facts, finding: { ...finding, key, facts, curl } });
  }
  const rank = ({ severity }: Finding): number => severities.indexOf(severity);
  return [...byKey.values()]
    .map(({ finding }) => finding)
    .toSorted((one, other) => rank(one) - rank(other) || other.facts.length - one.facts.length);
}
