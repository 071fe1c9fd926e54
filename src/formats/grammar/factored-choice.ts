import { choiceOf, empty, sequenceOf, text, type Expression } from "./expression.ts";

/** Fewer options than this stand side by side: a sampler holds as many parses open without effort. */
const fewOptions = 32;

/** A choice in which the beginnings that many options have in common are written once, so that a sampler follows one parse for all of them. */
export function factoredChoice(options: readonly Expression[]): Expression {
  return options.length < fewOptions ? choiceOf(options) : factored(options);
}

function factored(options: readonly Expression[]): Expression {
  const groups = new Map<string, Split[]>();
  const others: Expression[] = [];
  for (const option of options) {
    const split = splitOf(option);
    const [first] = split?.head ?? "";
    if (!split || first === undefined) {
      others.push(option);
      continue;
    }
    const group = groups.get(first);
    if (group) group.push(split);
    else groups.set(first, [split]);
  }
  return choiceOf([...[...groups.values()].map(together), ...others]);
}

/** The text that an expression begins with, and what comes then. */
interface Split {
  readonly head: string;
  readonly rest: readonly Expression[];
}

function splitOf(option: Expression): Split | null {
  if (option.kind === "text") return { head: option.text, rest: [] };
  if (option.kind !== "sequence") return null;
  const [first, ...rest] = option.items;
  return first?.kind === "text" ? { head: first.text, rest } : null;
}

function together(group: readonly Split[]): Expression {
  const characters = group.map(({ head }) => [...head]);
  const [shortest = []] = characters.toSorted((a, b) => a.length - b.length);
  let length = 0;
  while (length < shortest.length && characters.every((others) => others[length] === shortest[length])) length++;
  const behind = group.map(({ rest }, i) => sequenceOf([text(characters[i]?.slice(length).join("") ?? ""), ...rest]));
  const begun = text(shortest.slice(0, length).join(""));
  return sequenceOf([begun, group.length === 1 ? (behind[0] ?? empty) : factored(behind)]);
}
