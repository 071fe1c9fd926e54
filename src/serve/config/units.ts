import * as z from "zod";
import { expected } from "./shapes.ts";

const factors: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** The longest that a timer can be set to: about 24 days. */
const maxTimer = 2 ** 31 - 1;
const units: Readonly<Record<string, number>> = {
  "": 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
};

const timeError = expected("a time such as 500ms, 10s or 2m");
const ageError = expected("an age such as 12h or 30d");
const sizeError = expected("a size such as 1048576, 512KiB or 32MiB");

/** A time in milliseconds: of a number in seconds, or of a text such as `500ms`, `10s`, `2m`. */
export const time: z.ZodType<number, number | string> = z
  .union(
    [
      z.number().nonnegative({ error: timeError }),
      z.string().regex(/^\d+(\.\d+)?\s*(ms|s|m|h)?$/, { error: timeError }),
    ],
    {
      error: timeError,
    },
  )
  .transform((value) => Math.min(milliseconds(value), maxTimer));

/** An age in milliseconds, at least one: of a number in seconds, or of a text such as `12h`, `30d`. */
export const age: z.ZodType<number, number | string> = z
  .union(
    [
      z.number().nonnegative({ error: ageError }),
      z.string().regex(/^\d+(\.\d+)?\s*(ms|s|m|h|d)?$/, { error: ageError }),
    ],
    { error: ageError },
  )
  .transform((value) => Math.max(1, Math.floor(milliseconds(value))));

/** A size in bytes: of a number, or of a text such as `32MiB`. */
export const bytes: z.ZodType<number, number | string> = z
  .union(
    [z.int().nonnegative({ error: sizeError }), z.string().regex(/^\d+(\.\d+)?\s*([kmg]i?b)?$/i, { error: sizeError })],
    {
      error: sizeError,
    },
  )
  .transform(byteCount);

/** A time with a default, in milliseconds. */
export function duration(standard: string, description: string): z.ZodDefault<typeof time> {
  return time.default(Math.min(milliseconds(standard), maxTimer)).describe(`${description} (default ${standard})`);
}

/** A size with a default, in bytes. */
export function size(standard: string, description: string): z.ZodDefault<typeof bytes> {
  return bytes.default(byteCount(standard)).describe(`${description} (default ${standard})`);
}

function milliseconds(value: number | string): number {
  const [, number = "0", , unit = "s"] = /^(\d+(\.\d+)?)\s*([a-z]\w*)?$/i.exec(String(value)) ?? [];
  return Number(number) * (factors[unit] ?? 1000);
}

function byteCount(value: number | string): number {
  const [, number = "0", , unit = ""] = /^(\d+(\.\d+)?)\s*([a-z]\w*)?$/i.exec(String(value)) ?? [];
  return Math.floor(Number(number) * (units[unit.toLowerCase()] ?? 1));
}
