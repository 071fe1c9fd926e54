import type * as z from "zod";
import { isObject } from "../../../../wire/core/json.ts";
import { inWireOrder } from "../../../../wire/apis/members.ts";
import type { Exchange } from "../exchange.ts";
import { notJson } from "../place.ts";
import { type Rules, notShown } from "../rule.ts";
import type { Json } from "../view.ts";
import { type Structure, structuralRules } from "./structure.ts";

/** An exchange of an API in which a whole answer, and each chunk of a stream, is a JSON object of the same type. */
export interface JsonLines {
  readonly exchange: Exchange;
  readonly isStream: boolean;
  readonly lines: readonly JsonLine[];
  /** The lines that are JSON objects without an error. */
  readonly values: readonly (JsonLine & { readonly value: Json })[];
}

export interface JsonLine {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** `undefined` if the text is not JSON. */
  readonly value: unknown;
}

export function jsonLines(exchange: Exchange, isStream: boolean, lines: readonly JsonLine[]): JsonLines {
  const values = lines.flatMap((line) =>
    isObject(line.value) && !("error" in line.value) ? [{ ...line, value: line.value }] : [],
  );
  return { exchange, isStream, lines, values };
}

export const succeeded = ({ exchange }: JsonLines): boolean => exchange.response.status === 200;

/** The stream ends with an error. */
export function endsWithError({ lines }: JsonLines): boolean {
  const value = lines.at(-1)?.value;
  return isObject(value) && "error" in value;
}

/** The rules that the schemas of an API's answers contain, by endpoint: `json`, `schema` and `member-order`, with the API's name before them. */
export function rulesOfSchemas(
  api: string,
  schemas: Partial<Readonly<Record<Exchange["endpoint"], z.ZodType>>>,
): Rules<JsonLines> {
  const structures: ReadonlyMap<string, Structure> = new Map(
    Object.entries(schemas).map(([endpoint, schema]) => [endpoint, { schema, members: {}, rest: `${api}/schema` }]),
  );
  return {
    ...structuralRules<JsonLines>([...structures.values()], (view) => {
      const structure = structures.get(view.exchange.endpoint);
      if (!structure || !succeeded(view)) return [];
      return view.values.map(({ start, end, value }) => ({
        structure,
        value,
        at: ({ path, found }) => ({ start, end, found: `${path} ${found}` }),
      }));
    }),
    *[`${api}/json`](view) {
      if (!succeeded(view)) return notShown;
      const { lines, exchange } = view;
      if (lines.length === 0) yield notJson(exchange.response.body);
      for (const { start, end, text, value } of lines)
        if (!isObject(value)) yield { start, end: Math.min(end, start + 80), found: notJson(text).found };
    },
    *[`${api}/member-order`](view) {
      const schema = schemas[view.exchange.endpoint];
      if (!succeeded(view) || schema === undefined) return notShown;
      for (const { start, end, value } of view.values)
        if (JSON.stringify(inWireOrder(schema, value)) !== JSON.stringify(value))
          yield { start, end, found: `the order ${Object.keys(value).join(", ")}` };
    },
  };
}
