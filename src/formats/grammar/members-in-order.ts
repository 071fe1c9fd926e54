import { choice, isEmpty, isNever, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
import type { Grammar } from "./grammar.ts";
import type { ObjectLimits } from "./schema-shape.ts";

/** A property that is declared: key and value. */
export interface Member {
  readonly expression: Expression;
  readonly required: boolean;
}

/** A rule holds at most this many members. */
const longestRule = 64;

/**
 * Members one after the other. The automaton's state is which declared one comes next and how many there are so far, counted no
 * further than `minProperties` and `maxProperties` need.
 */
export function membersInOrder(
  { grammar, reader }: { grammar: Grammar; reader: SchemaReader },
  {
    members,
    other,
    between,
    limits,
    hint,
  }: {
    members: readonly Member[];
    other: Expression;
    between: Expression;
    limits: Pick<ObjectLimits, "min" | "max" | "path">;
    hint: string;
  },
): Expression {
  const reachable = members.filter(({ expression }) => !isNever(expression)).length + (isNever(other) ? 0 : 1);
  // Undeclared members may repeat a key, so that only the first of them is sure to count.
  if (limits.min > reachable && !isNever(other)) reader.report(limits.path, "minProperties");
  const min = isNever(other) ? limits.min : Math.min(limits.min, reachable);
  const counted = Math.max(1, min, limits.max ?? 0);
  const others = (count: number): Expression => {
    const least = count >= min ? 0 : count + 1 >= min && !isNever(other) ? 1 : null;
    if (least === null) return never;
    const most = limits.max === null ? null : limits.max - count;
    const further = sequence(between, other);
    if (count > 0) return repeat(further, least, most);
    const several = sequence(other, repeat(further, 0, most === null ? null : Math.max(0, most - 1)));
    return least === 0 ? (most === 0 ? text("") : optional(several)) : several;
  };
  /** A state is a rule of its own where two ways lead to it, behind a member that may be absent, or where a rule would get long. */
  const firstOptional = members.findIndex(({ required }) => !required);
  const isShared = (position: number): boolean =>
    (firstOptional >= 0 && position > firstOptional) || (position > 0 && position % longestRule === 0);
  const isFull = (count: number): boolean => limits.max !== null && count >= limits.max;

  // The states by the number of members that are there, position after position; then what follows each, from the last position on.
  const counts: ReadonlySet<number>[] = [new Set([0])];
  for (const { required } of members) {
    const next = new Set<number>();
    for (const count of counts.at(-1) ?? []) {
      if (!isFull(count)) next.add(Math.min(count + 1, counted));
      if (!required) next.add(count);
    }
    reader.spend(50 * next.size, limits.path);
    counts.push(next);
  }
  let following = new Map<number, Expression>();
  for (let position = members.length; position >= 0; position--) {
    const member = members[position];
    const here = new Map<number, Expression>();
    for (const count of counts[position] ?? []) {
      let body: Expression;
      if (member === undefined) body = others(count);
      else {
        const rest = following.get(Math.min(count + 1, counted)) ?? never;
        const written = isFull(count) ? never : sequence(...(count > 0 ? [between] : []), member.expression, rest);
        body = member.required ? written : choice(written, following.get(count) ?? never);
      }
      const isRule = isShared(position) && !isNever(body) && !isEmpty(body);
      here.set(count, isRule ? grammar.define(`${hint}-rest`, body) : body);
    }
    following = here;
  }
  return following.get(0) ?? never;
}
