import type { z } from "zod";
import type { ConfigProblem } from "./config-error.ts";

/** What is wrong, as a sentence for people. */
export function problemsOf(issue: z.core.$ZodIssue): ConfigProblem[] {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  if (issue.code === "unrecognized_keys") {
    const messages = issue.message.split("\n");
    return issue.keys.map((key, at) => ({ path: [...path, key], message: messages[at] ?? "there is no such setting" }));
  }
  const closer = issue.code === "invalid_union" ? insideOf(issue.errors) : undefined;
  if (!closer) return [{ path, message: issue.message }];
  return closer.flatMap(problemsOf).map((problem) => ({ ...problem, path: [...path, ...problem.path] }));
}

/** Of a value that may be one thing or another, the problems within it, where it is one of them as a whole: a list with a wrong item. */
function insideOf(errors: readonly (readonly z.core.$ZodIssue[])[]): readonly z.core.$ZodIssue[] | undefined {
  return errors.find((issues) => issues.length > 0 && issues.every(({ path }) => path.length > 0));
}
