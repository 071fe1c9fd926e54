import * as z from "zod";
import { isObject } from "../../wire/core/json.ts";
import { ConfigError, type ConfigProblem } from "./config-error.ts";
import { decimal, expected, mappingOf, settings, text } from "./shapes.ts";
import type { Parsed, Written } from "./shapes.ts";

const perMillion = (what: string): z.ZodNumber => decimal(0, 1_000_000).describe(`US dollars for a million ${what}`);

const priceText = "the name of an entry in pricesFile, free, or a mapping such as { input: 3, output: 15 }";
const price = settings(
  {
    input: perMillion("tokens of prompts"),
    cachedInput: perMillion("of these that a cache had (default: input)").optional(),
    cacheWrite: perMillion("of these that were written to a cache (default: input)").optional(),
    output: perMillion("tokens of answers"),
    image: decimal(0, 1000).optional().describe("US dollars for an image in a prompt (default 0)"),
    hostedCall: decimal(0, 1000).optional().describe("US dollars for a call of a hosted tool (default 0)"),
  },
  priceText,
);

/** What a model costs in US dollars: a million tokens, an image, a call. */
export type Price = Parsed<typeof price>;
export type PriceEntry = string | Written<typeof price>;

/** By the names that clients use, with `*` for any text. A text is the name of an entry of the price file, or `free`. */
export const pricesSchema: z.ZodType<
  Readonly<Record<string, Price | string>>,
  Readonly<Record<string, PriceEntry>>
> = mappingOf(
  z.union([text(priceText), price], { error: expected(priceText) }),
  "a mapping such as { gpt-4o: { input: 2.5, cachedInput: 1.25, output: 10 } }",
);

const maxProblems = 20;

/** The members of LiteLLM's list, in dollars for one token, and in dollars for one image. */
const perToken = {
  input: "input_cost_per_token",
  output: "output_cost_per_token",
  cachedInput: "cache_read_input_token_cost",
  cacheWrite: "cache_creation_input_token_cost",
} as const;
const perImage = "input_cost_per_image";
const perSearch = "search_context_cost_per_query";

/**
 * Reads LiteLLM's price list (`model_prices_and_context_window.json`): entries without prices and unknown members are ignored. Throws
 * `ConfigError` with the file's name and the place of each mistake.
 */
export function parsePriceList(content: string, file: string): ReadonlyMap<string, Price> {
  let list: unknown;
  try {
    list = JSON.parse(content.trim());
  } catch (cause) {
    throw new ConfigError([{ path: [], message: `is no JSON: ${(cause as Error).message}` }], file, { cause });
  }
  const form = 'an object such as {"gpt-4o": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05}}';
  if (!isObject(list)) throw new ConfigError([{ path: [], message: `expected ${form}` }], file);
  const problems: ConfigProblem[] = [];
  const prices = new Map<string, Price>();
  for (const [name, entry] of Object.entries(list)) {
    if (!isObject(entry) || entry[perToken.input] === undefined) continue;
    const found = priceOf(entry, (member) => {
      problems.push({ path: [name, member], message: "expected US dollars for one, such as 2.5e-06" });
    });
    prices.set(name, found);
    if (problems.length >= maxProblems) break;
  }
  if (problems.length > 0) throw new ConfigError(problems, file);
  return prices;
}

function priceOf(entry: Readonly<Record<string, unknown>>, mistaken: (member: string) => void): Price {
  const dollars = (value: unknown, member: string): number | undefined => {
    if (value === undefined || value === null) return undefined;
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    if (typeof number === "number" && number >= 0 && number <= 1000) return number;
    mistaken(member);
    return undefined;
  };
  const tokens = (kind: keyof typeof perToken): number | undefined => {
    const one = dollars(entry[perToken[kind]], perToken[kind]);
    // 2.5e-06 * 1e6 is 2.5, but other products have a last digit too many.
    return one === undefined ? undefined : Number((one * 1e6).toPrecision(12));
  };
  const search = entry[perSearch];
  const size = "search_context_size_medium";
  return {
    input: tokens("input") ?? 0,
    output: tokens("output") ?? 0,
    cachedInput: tokens("cachedInput"),
    cacheWrite: tokens("cacheWrite"),
    image: dollars(entry[perImage], perImage),
    hostedCall: isObject(search) ? dollars(search[size], `${perSearch}.${size}`) : undefined,
  };
}
