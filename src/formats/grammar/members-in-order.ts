import { choice, isEmpty, isNever, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import type { SchemaReader } from "./flatten-schema.ts";
import type { Grammar } from "./grammar.ts";
import type { ObjectLimits } from "./schema-shape.ts";

/** A property that is declared: key and value. */
export interface Member {
  readonly expression: Expression;
  readonly required: boolean;
}

/**
 * Members one after the other. The automaton's state is which declared one comes next and how many there are so far, counted no
 * further than somebody asks.
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
  const states = new Map<string, Expression>();

  const others = (count: number): Expression => {
    const least = count >= min ? 0 : count + 1 >= min && !isNever(other) ? 1 : null;
    if (least === null) return never;
    const most = limits.max === null ? null : limits.max - count;
    const further = sequence(between, other);
    if (count > 0) return repeat(further, least, most);
    const several = sequence(other, repeat(further, 0, most === null ? null : Math.max(0, most - 1)));
    return least === 0 ? (most === 0 ? text("") : optional(several)) : several;
  };
  const from = (position: number, count: number): Expression => {
    const member = members[position];
    if (member === undefined) return others(count);
    const full = limits.max !== null && count >= limits.max;
    const written = full
      ? never
      : sequence(...(count > 0 ? [between] : []), member.expression, state(position + 1, Math.min(count + 1, counted)));
    return member.required ? written : choice(written, state(position + 1, count));
  };
  /** A rule of its own only where two ways lead to it. */
  const state = (position: number, count: number): Expression => {
    const key = `${position} ${count}`;
    const known = states.get(key);
    if (known !== undefined) return known;
    const shared = members.slice(0, position).some(({ required }) => !required);
    const body = from(position, count);
    const made = shared && !isNever(body) && !isEmpty(body) ? grammar.define(`${hint}-rest`, body) : body;
    states.set(key, made);
    return made;
  };
  return state(0, 0);
}
