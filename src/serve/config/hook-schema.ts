import * as z from "zod";
import type { Hook } from "../../wire/core/hook.ts";
import { isObject } from "../../wire/core/json.ts";
import { expected, integer, oneOf, settings } from "./shapes.ts";
import type { Parsed } from "./shapes.ts";
import { time } from "./units.ts";

/** A module is a path in a file; in code, it may be the hook itself. */
export const hookModuleSchema: z.ZodType<string | Hook, string | Hook> = z
  .custom<string | Hook>(
    (value) =>
      typeof value === "string"
        ? value !== ""
        : isObject(value) && [value["request"], value["answer"]].some((member) => typeof member === "function"),
    { error: expected("a file such as ./guard.ts; in code also a hook") },
  )
  .describe("The file whose default export is the hook (`defineHook`)");

const hookText = "a file such as ./guard.ts, or a mapping such as { module: ./guard.ts, timeout: 2s }";
const hookMembers = settings(
  {
    module: hookModuleSchema,
    timeout: time
      .refine((ms) => ms > 0, { error: expected("a time of more than 0, such as 2s") })
      .default(5000)
      .describe("Time limit of one call of the hook, without its wait for a thread (default 5s)"),
    onTimeout: oneOf(["refuse", "pass"])
      .default("refuse")
      .describe("What becomes of a request, or an answer, whose hook is too late: refuse or pass (default refuse)"),
    threads: integer(1, 64).default(8).describe("The most calls that run at a time, each in a thread (default 8)"),
  },
  hookText,
);

export type HookConfig = Parsed<typeof hookMembers>;

/** A text, or a hook, is the module alone. */
export const hookSchema: z.ZodType<HookConfig, string | Hook | z.input<typeof hookMembers>> = z.union(
  [hookModuleSchema.transform((module) => hookMembers.parse({ module })), hookMembers],
  { error: expected(hookText) },
);
