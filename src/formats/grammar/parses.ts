import { repeat, type Expression } from "./expression.ts";

/** What is still to come of one way to read a text, as a list; null: nothing, the text may end. */
export type Parse = { readonly first: Expression; readonly rest: Parse } | null;

/** A grammar with more open parses than this at a time is not followed; those made here have fewer. */
const maxOpen = 2_000;

/** Goes on from each parse to where a character is next, all ways, each way once. null: there are too many. */
export function settle(rules: ReadonlyMap<string, Expression>, parses: readonly Parse[]): readonly Parse[] | null {
  const settled: Parse[] = [];
  const seen = new Set<string>();
  const todo: Parse[] = [...parses];
  for (let parse = todo.pop(); parse !== undefined; parse = todo.pop()) {
    const key = keyOf(parse);
    if (seen.has(key)) continue;
    seen.add(key);
    if (seen.size > maxOpen) return null;
    if (parse === null || parse.first.kind === "chars") {
      settled.push(parse);
      continue;
    }
    const { first, rest } = parse;
    switch (first.kind) {
      case "text":
        if (first.text === "") todo.push(rest);
        else settled.push(parse);
        break;
      case "rule": {
        const body = rules.get(first.name);
        if (body !== undefined) todo.push({ first: body, rest });
        break;
      }
      case "sequence":
        todo.push(first.items.reduceRight<Parse>((rest, item) => ({ first: item, rest }), rest));
        break;
      case "choice":
        todo.push(...first.options.map((option) => ({ first: option, rest })));
        break;
      case "repeat": {
        const { item, min, max } = first;
        if (min === 0) todo.push(rest);
        const again = repeat(item, Math.max(0, min - 1), max === null ? null : max - 1);
        todo.push({ first: item, rest: again.kind === "text" ? rest : { first: again, rest } });
        break;
      }
    }
  }
  return settled;
}

const ids = new WeakMap<object, number>();
let nextId = 0;

/** Equal parses have equal keys; expressions are compared as objects, texts and repetitions by what they are. */
export function keyOf(parse: Parse): string {
  let key = "";
  for (let at = parse; at !== null; at = at.rest) key += `${expressionKey(at.first)}|`;
  return key;
}

function expressionKey(expression: Expression): string {
  if (expression.kind === "text") return JSON.stringify(expression.text);
  if (expression.kind === "rule") return expression.name;
  if (expression.kind === "repeat") return `${expressionKey(expression.item)}{${expression.min},${expression.max}}`;
  let id = ids.get(expression);
  if (id === undefined) ids.set(expression, (id = nextId++));
  return `#${id}`;
}
