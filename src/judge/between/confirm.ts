import type { Fact, Json } from "./facts.ts";
import type { FactResult, Finding } from "./finding.ts";
import { keyOf } from "./finding.ts";

/*
 * Whether a finding is seen again: in other requests with the same facts.
 */

const ending = /-again-\d+$/;

/** The id of a fact without the number of the request that repeats it. */
export function nameOf({ id }: Fact): string {
  return id.replace(ending, "");
}

/** The requests that are to show each error and warning again, `count` for each: of different facts where it was seen in several. */
export function samplesOf(
  findings: readonly Finding[],
  count: number,
  byId: ReadonlyMap<string, Fact>,
): { readonly facts: readonly Fact[]; of(finding: Finding): readonly string[] } {
  const facts = new Map<string, Fact>();
  const add = (id: string, number: number): string => {
    const fact = byId.get(id);
    const name = `${id}-again-${number}`;
    if (!fact || facts.has(name)) return name;
    // The session begins again, too.
    if (fact.continues !== undefined) add(fact.continues, number);
    facts.set(name, repeated(fact, number));
    return name;
  };
  const ids = new Map<Finding, readonly string[]>();
  for (const finding of findings) {
    if (finding.severity === "note") continue;
    const numbers = Array.from({ length: count }, (_, at) => at);
    ids.set(
      finding,
      numbers.map((at) => add(finding.facts[at % finding.facts.length] ?? "", at + 1)),
    );
  }
  return { facts: [...facts.values()], of: (finding) => ids.get(finding) ?? [] };
}

/** The same fact with markers of its own. */
function repeated(fact: Fact, number: number): Fact {
  const own = <T>(value: T): T =>
    JSON.parse(
      JSON.stringify(value).replaceAll(
        /fact:([a-z0-9-]{1,80})\./g,
        (_, id: string) => `fact:${id.replace(ending, "")}-again-${number}.`,
      ),
    ) as T;
  const { answer, continues, withAnswer } = fact;
  return {
    ...fact,
    id: `${fact.id}-again-${number}`,
    body: own(fact.body),
    ...(answer && { answer: { ...answer, ...(answer.batches && { batches: own(answer.batches) }) } }),
    ...(continues !== undefined && { continues: `${continues}-again-${number}` }),
    ...(withAnswer && {
      withAnswer(text: string, asked: Json) {
        const body = withAnswer(text, asked);
        return body && own(body);
      },
    }),
  };
}

/** The finding with how often it was seen again. What is never seen again is a note. */
export function confirmed(
  finding: Finding,
  ids: readonly string[],
  isSeen: (id: string, key: string) => boolean,
): Finding {
  if (ids.length === 0) return finding;
  const again = { of: ids.length, seen: ids.filter((id) => isSeen(id, finding.key)).length };
  const how = again.seen === again.of ? "Seen" : "Unstable: seen";
  const message = `${finding.message} ${how} again in ${again.seen} of ${again.of} requests.`;
  return { ...finding, again, message, ...(again.seen === 0 && { severity: "note" }) };
}

/** The rows with the severities of the findings that were looked for again. */
export function withSeverities(results: readonly FactResult[], findings: readonly Finding[]): FactResult[] {
  const never = new Set(findings.filter(({ again }) => again?.seen === 0).map(({ key }) => key));
  return results.map(({ fact, findings: own }) => ({
    fact,
    findings: own.map((finding) => (never.has(keyOf(finding)) ? { ...finding, severity: "note" } : finding)),
  }));
}
