import type * as z from "zod";
import { decimal, expected, listShape, mappingOf, settings, text } from "./shapes.ts";
import type { Parsed, Written } from "./shapes.ts";

const pattern = (what: string, example: string): z.ZodString => text(`${what}, such as ${example}`);

/** It goes into a header and into the log. */
const nameText = "a name of letters, digits, '.', '_' and '-', such as background";
const name = text(nameText).regex(/^[\w.-]{1,64}$/, { error: expected(nameText) });

const route = settings(
  {
    name: name.optional().describe("For the log, Inspect and x-truewire-route (default: rule-1, by its place)"),
    model: pattern("a model's name", "claude-haiku-*")
      .optional()
      .describe("Requests for this model, as clients write it; * matches any text"),
    key: pattern("a key's name", "team-*")
      .optional()
      .describe("Requests with this key, by its name; * matches any text"),
    agent: pattern("an agent", "claude-cli/*")
      .optional()
      .describe("Requests of this program, the first product of the User-Agent header; * matches any text"),
    header: mappingOf(pattern("a header's value", "batch-*"), "a mapping such as { x-team: search-* }")
      .optional()
      .describe("Requests with all of these headers; * matches any text"),
    to: text("the name of a served model, such as small").describe(
      "The model that answers, by a name that clients use",
    ),
    share: decimal(0, 1)
      .optional()
      .describe(
        "The share of the conversations that the rule takes, from 0 to 1; each stays where it is (default: all)",
      ),
  },
  "a mapping such as { model: claude-haiku-*, to: small }",
);

/** A rule that gives requests to another model than the one that they name. All conditions must hold. */
export type RouteEntry = Written<typeof route>;
export type RouteConfig = Parsed<typeof route>;

export const routesSchema: z.ZodType<readonly RouteConfig[], readonly RouteEntry[]> = listShape(
  route,
  "a list such as [{ model: claude-haiku-*, to: small }]",
);
