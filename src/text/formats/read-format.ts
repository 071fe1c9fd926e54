import * as z from "zod";
import type { Args, Format, Markers, PlainFormat, Reasoning, RoutedFormat } from "./format.ts";

/** A marker becomes a search automaton with one node per character. */
const maxMarkerLength = 1000;
const text = z.string().min(1).max(maxMarkerLength);
const texts = z.array(text).readonly();
const markers: z.ZodType<Markers> = z.union([text.transform((marker): Markers => [marker]), z.tuple([text], text)], {
  error: "must be a marker or a list of markers",
});

const reasoning = z.strictObject({
  open: markers,
  close: markers,
  endedBy: texts.optional(),
  assume: z.enum(["outside", "inside", "unknown"]).default("outside"),
  askedMeansInside: z.boolean().optional(),
  label: text.optional(),
  anywhere: z.boolean().optional(),
  strayClose: z.enum(["text", "strip", "strip-at-start"]).optional(),
}) satisfies z.ZodType<Reasoning>;

const args = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("json") }),
  z.strictObject({ kind: z.literal("loose"), quotes: markers }),
  z.strictObject({ kind: z.literal("kwargs") }),
  z.strictObject({
    kind: z.literal("tagged"),
    open: text,
    keyEnd: text,
    tagEnd: text.optional(),
    valueOpen: text.optional(),
    close: text,
    trim: z.enum(["newline", "none"]).default("none"),
    hint: z.strictObject({ attribute: text, string: text, other: text }).optional(),
    nestedItem: text.optional(),
    cdata: z.boolean().optional(),
    strict: z.boolean().optional(),
    jsonBody: z.boolean().optional(),
    unwrap: texts.optional(),
  }),
]) satisfies z.ZodType<Args>;

const delimited = {
  open: markers.optional(),
  close: markers.optional(),
  bare: z.enum(["start", "anywhere", "whole"]).optional(),
  fence: z.boolean().optional(),
};

const call = z.discriminatedUnion("form", [
  z.strictObject({
    form: z.literal("object"),
    ...delimited,
    list: z.enum(["one", "array", "stream"]),
    name: z.union([z.literal("key"), markers]).default(["name"]),
    arguments: markers.default(["arguments", "parameters"]),
    argumentsRequired: z.boolean().optional(),
    id: text.optional(),
    nested: text.optional(),
  }),
  z.strictObject({
    form: z.literal("named"),
    ...delimited,
    head: text.includes("{name}", { error: "must hold {name}" }).default("{name}"),
    headEnd: markers,
    headIsId: z.boolean().optional(),
    headEndKept: texts.optional(),
    tagEnd: text.optional(),
    list: z.enum(["python", "lines"]).optional(),
    args,
  }),
]);

const common = {
  id: text,
  aliases: texts.optional(),
  reasoning: reasoning.optional(),
  strip: texts.optional(),
  drop: z
    .array(z.tuple([text, text]).readonly())
    .readonly()
    .optional(),
};

const section = z.strictObject({
  open: markers,
  close: texts,
  required: z.boolean().optional(),
  perCall: z.boolean().optional(),
});

const plain = z
  .strictObject({
    kind: z.literal("plain"),
    ...common,
    section: section.optional(),
    calls: z.array(call).readonly(),
    invalid: z.enum(["text", "drop", "raw"]).optional(),
  })
  .superRefine(({ section, calls }, context) => {
    for (const [index, { open, bare }] of calls.entries()) {
      if (open || bare || section) continue;
      context.addIssue({
        code: "custom",
        path: ["calls", index, "open"],
        message: "a call needs `open` or `bare`, or the format a `section`",
      });
    }
  }) satisfies z.ZodType<PlainFormat>;

const routed = z.strictObject({
  kind: z.literal("routed"),
  ...common,
  start: text,
  headerEnd: text,
  ends: texts,
  routes: z
    .array(
      z.strictObject({
        header: z.string().refine(isPattern, { error: "must be a regular expression" }),
        write: markers.optional(),
        to: z.union([z.enum(["content", "reasoning", "drop"]), args, plain]),
      }),
    )
    .readonly(),
}) satisfies z.ZodType<RoutedFormat>;

/** A description of a format in a configuration. A list of one marker may be written as the marker. */
export const formatSchema: z.ZodType<Format> = z.discriminatedUnion("kind", [plain, routed]);

/** An invalid description: the problems and their paths (`calls[0].open`). */
export class FormatError extends Error {
  readonly problems: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];

  constructor(error: z.ZodError) {
    const problems = error.issues.map(({ path, message }) => ({ path, message }));
    super(problems.map(({ path, message }) => `${pathText(path)}: ${message}`).join("\n"), { cause: error });
    this.name = "FormatError";
    this.problems = problems;
  }
}

/** Validates a description that a user wrote. Throws `FormatError`. */
export function readFormat(value: unknown): Format {
  const result = formatSchema.safeParse(value);
  if (!result.success) throw new FormatError(result.error);
  return result.data;
}

function isPattern(source: string): boolean {
  try {
    return Boolean(new RegExp(source));
  } catch {
    return false;
  }
}

function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "format";
  return path
    .map((part, at) => (typeof part === "number" ? `[${part}]` : at === 0 ? String(part) : `.${String(part)}`))
    .join("");
}
