import * as z from "zod";
import { ConfigError } from "./config-error.ts";
import {
  anyText,
  decimal,
  problemsOf,
  expectation,
  expected,
  integer,
  listShape,
  oneOf,
  settings,
  text,
} from "./shapes.ts";
import type { Parsed, Written } from "./shapes.ts";

const hashError = expected("the hash of a key, such as truewire keys new prints it: sha256: and 64 hexadecimal digits");
const timeError = expected("a day such as 2027-01-31, or a time such as 2027-01-31T18:00:00Z");

/** A name goes into headers of logs and messages of errors, so it is one line. */
const name = text("a name, such as alice").refine((value) => !/\p{Cc}/u.test(value), {
  error: "expected a name of one line",
});

const most = (when: string): z.ZodOptional<z.ZodNumber> =>
  decimal(0, 1_000_000).optional().describe(`The most US dollars ${when}`);

const budget = settings(
  {
    day: most("on a day (UTC)"),
    month: most("in a calendar month (UTC)"),
    total: most("in all"),
    warnAt: decimal(0, 1)
      .optional()
      .describe("The share of a budget from which on answers have a warning, and the log one line (default 0.8)"),
  },
  "a mapping such as { day: 5, month: 100 }",
);

/** The limits of a key. */
export const limitsOfKey = {
  requestsPerMinute: integer(1).optional().describe("The most requests in a minute"),
  tokensPerMinute: integer(1).optional().describe("The most tokens in a minute, of prompts and answers together"),
  tokensPerDay: integer(1).optional().describe("The most tokens on a day (UTC), of prompts and answers together"),
  concurrency: integer(1).optional().describe("Maximum number of requests in parallel"),
  answerTokens: integer(1)
    .optional()
    .describe(
      "The tokens that a request without max_tokens reserves for its answer while it runs (default: 1000, but not more than a tenth of the smallest limit of tokens)",
    ),
  budget: budget.optional().describe("What it may spend, by the prices of models"),
};

const key = settings(
  {
    name: name.describe("Whose key it is, for logs and messages; keys of one name count together"),
    hash: z
      .string({ error: hashError })
      .regex(/^sha256:[0-9a-f]{64}$/i, { error: hashError })
      .transform((value) => value.slice("sha256:".length).toLowerCase())
      .describe("SHA-256 of the key, as `truewire keys new` prints it: sha256:…"),
    owner: text("a person or a team, such as search-team").optional().describe("Who answers for the key"),
    note: anyText("a text, such as the CI of the search team").max(1000).optional().describe("For people"),
    models: listShape(text("a model's name, such as gpt-*"), "a list such as [small, gpt-*]")
      .optional()
      .describe("Names of the models that it may use, as clients write them; * matches any text (default: all)"),
    hostedTools: listShape(text("a tool's name, such as web_search"), "a list such as [web_search, docs]")
      .optional()
      .describe(
        "Names of the hosted tools that it may use: web_search, web_fetch, those of MCP servers and programs; * matches any text (default: all)",
      ),
    ...limitsOfKey,
    priority: oneOf(["priority", "default", "flex"])
      .optional()
      .describe(
        "The tier of its requests in queues, and the highest that their service_tier may ask for: priority, default or flex (default: default)",
      ),
    expires: z
      .string({ error: timeError })
      .regex(/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/, { error: timeError })
      .refine((value) => !Number.isNaN(Date.parse(value)), { error: timeError })
      .transform((value) => Date.parse(value))
      .optional()
      .describe("When it stops working: a day (its beginning in UTC), or a time with its zone"),
  },
  "a mapping such as { name: alice, hash: sha256:… }",
);

/** A key that is known by its hash, and what it may use; a limit that is absent does not apply. */
export type KeyEntry = Written<typeof key>;
/** The same: its hash in lower-case hexadecimal digits, and when it expires as Unix time in milliseconds. */
export type KeyConfig = Parsed<typeof key>;

/** Two keys that are the same one would have to be of one name, with one set of limits: which was meant? */
export const keysSchema: z.ZodType<readonly KeyConfig[], readonly KeyEntry[]> = listShape(
  key,
  "a list such as [{ name: alice, hash: sha256:… }]",
).superRefine((keys, context) => {
  const seen = new Set<string>();
  for (const [at, { hash }] of keys.entries()) {
    if (seen.has(hash))
      context.addIssue({ code: "custom", path: [at, "hash"], message: "must not be the hash of an earlier key" });
    seen.add(hash);
  }
});

/** Checks what a file of keys holds. Throws `ConfigError` with every problem. */
export function parseKeys(value: unknown): readonly KeyConfig[] {
  const result = keysSchema.safeParse(value, { error: expectation });
  if (result.success) return result.data;
  throw new ConfigError(result.error.issues.flatMap(problemsOf));
}

/** The settings of a key that are not limits. */
const unlimited: ReadonlySet<string> = new Set<keyof KeyConfig>([
  "name",
  "hash",
  "owner",
  "note",
  "models",
  "hostedTools",
  "expires",
  "priority",
]);

/** Whether the usage of a key is counted. */
export function isLimited(key: KeyConfig): boolean {
  return Object.entries(key).some(([name, value]) => value !== undefined && !unlimited.has(name));
}
