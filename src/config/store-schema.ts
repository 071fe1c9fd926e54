import { z } from "zod";
import type { StoreOptions } from "./config.ts";
import { expected, integer, settings, text } from "./shapes.ts";
import { age, bytes } from "./units.ts";

/** Where responses are kept, and how many: sizes in bytes, the age in milliseconds. */
export interface StoreConfig {
  readonly at: string;
  readonly maxCount: number;
  readonly maxSize: number;
  readonly maxAge: number;
}

const what = "memory, a folder, or a URL such as redis://localhost:6379";

/** Another scheme is a mistake, not a folder. */
const place = text(what).refine((at) => !at.includes("://") || /^rediss?:\/\//.test(at), { error: `expected ${what}` });

const options = settings(
  {
    at: place.default("memory").describe("memory, a folder, or redis://HOST:PORT (default memory)"),
    maxCount: integer(0).default(100_000).describe("The most responses that memory or a folder keeps (default 100000)"),
    maxSize: bytes.default(256 * 1024 ** 2).describe("The most bytes that memory or a folder keeps (default 256MiB)"),
    maxAge: age.default(30 * 86_400_000).describe("How long a response is kept (default 30d)"),
  },
  `${what}, or a mapping such as { at: ./responses, maxAge: 7d }`,
);

/** A text is the place alone. */
export const storeSchema: z.ZodType<StoreConfig, string | StoreOptions | undefined> = z
  .union([place.transform((at) => options.parse({ at })), options], {
    error: expected(`${what}, or a mapping such as { at: ./responses, maxAge: 7d }`),
  })
  .default(options.parse({}))
  .describe("Where responses are kept for clients that refer to them: memory, a folder or redis://HOST:PORT");
