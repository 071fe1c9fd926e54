import { choice, isEmpty, isNever, never, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";
import type { ObjectLimits } from "./schema-shape.ts";
import { acceptsAll, matches, partsOf } from "./shape-accepts.ts";
import { keyCharacters } from "./string-limits.ts";
import { valueExpression, type ValueContext } from "./value-expression.ts";
import { anyKeyBut } from "./value-syntax.ts";

/** A property that is declared: key and value. */
export interface Member {
  readonly expression: Expression;
  readonly required: boolean;
}

/**
 * Objects: the declared properties in their order, each once, the required ones always; then others, where they are allowed. Where
 * a schema declares properties and says nothing of others, JSON Schema lets any in; no others are written then.
 */
export function objectExpression(context: ValueContext, limits: ObjectLimits, hint: string): Expression {
  const { space } = context.syntax;
  const names = new Set([...limits.properties.keys(), ...limits.required]);
  const members = [...names].map((name) => ({
    expression: sequence(context.syntax.key(name), propertyValue(context, limits, name, hint)),
    required: limits.required.has(name),
  }));
  const between = sequence(text(","), space);
  const body = membersInOrder(context, {
    members,
    other: otherMember(context, limits, names, hint),
    between,
    limits,
    hint,
  });
  return sequence(text("{"), space, body, space, text("}"));
}

/** The values of a declared property; `never` where its name is not allowed. */
export function propertyValue(context: ValueContext, limits: ObjectLimits, name: string, hint: string): Expression {
  const allowed = limits.names.length === 0 || acceptsAll(context.reader, limits.names, name);
  return allowed ? valueExpression(context, partsOf(limits, name), `${hint}-${name}`) : never;
}

/** A member that is not declared; `never` where there is none. */
function otherMember(
  context: ValueContext,
  limits: ObjectLimits,
  declared: ReadonlySet<string>,
  hint: string,
): Expression {
  const { grammar, syntax } = context;
  const member = (keys: Expression, values: Expression): Expression =>
    isNever(keys) || isNever(values) ? never : grammar.define(`${hint}-member`, sequence(syntax.keys(keys), values));
  const [pattern, ...others] = limits.patterns;
  if (pattern !== undefined) {
    const keys = others.length > 0 || limits.names.length > 0 ? null : patternKeys(pattern.pattern, declared);
    if (keys !== null) return member(keys, valueExpression(context, pattern.parts, `${hint}-value`));
    // Which members the patterns speak of cannot be said. None but the declared ones are written, which satisfies them all.
    return never;
  }
  if (limits.additional === undefined && (limits.closed || declared.size > 0)) return never;
  return member(
    nameKeys(context, limits, declared),
    valueExpression(context, limits.additional ?? [], `${hint}-value`),
  );
}

/** The keys that match a pattern, if no declared name is among them. */
function patternKeys(pattern: string, declared: ReadonlySet<string>): Expression | null {
  if ([...declared].some((name) => matches(pattern, name))) return null;
  try {
    return regexExpression(pattern, "anywhere");
  } catch (error) {
    if (error instanceof RegexError) return null;
    throw error;
  }
}

/** The characters of the keys that `propertyNames` allows and that are not declared. */
function nameKeys({ reader }: ValueContext, { names }: ObjectLimits, declared: ReadonlySet<string>): Expression {
  if (names.length === 0) return anyKeyBut(declared);
  const path = names[0]?.path ?? "";
  return choice(
    ...reader.shapes(names).map(({ values, string }) => {
      if (values !== undefined) {
        const free = values.filter((value) => typeof value === "string" && !declared.has(value));
        return choice(...free.map((value) => text(String(value))));
      }
      const apart = [...declared].every((name) => string.patterns.some(({ pattern }) => !matches(pattern, name)));
      if (apart) return keyCharacters(reader, string, path);
      reader.report(path, "propertyNames");
      return anyKeyBut(declared);
    }),
  );
}

/**
 * Members one after the other. The automaton's state is which declared one comes next and how many there are so far, counted no
 * further than somebody asks.
 */
export function membersInOrder(
  { grammar, reader }: Pick<ValueContext, "grammar" | "reader">,
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
