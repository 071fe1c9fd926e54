import { invalidRequest } from "../../core/failure.ts";

/** What a client asks of a list. */
export interface PageQuery {
  readonly limit: number;
  /** The id after which the page begins. */
  readonly after?: string | undefined;
  /** The id before which the page ends. */
  readonly before?: string | undefined;
}

/** The cursors of a list by their names in the query, and how many items a page has. */
export interface PageCursors {
  readonly standard: number;
  readonly most: number;
  readonly after: readonly string[];
  readonly before?: string;
}

/** The page of a list. */
export interface Page<Item> {
  readonly data: readonly Item[];
  readonly hasMore: boolean;
}

/**
 * Reads `limit` and the cursors of a list. Throws `FailureError` 400 for a limit that
 * is no whole number from 1 to `most`.
 */
export function readPageQuery(
  query: (name: string) => string | undefined,
  { standard, most, after, before }: PageCursors,
): PageQuery {
  const text = query("limit");
  const limit = text === undefined ? standard : Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > most)
    throw invalidRequest(
      `Invalid 'limit': expected a whole number from 1 to ${most}, but got '${String(text).slice(0, 50)}'.`,
      "limit",
      "invalid_value",
    );
  return {
    limit,
    after: after.map(query).find((value) => value !== undefined),
    before: before === undefined ? undefined : query(before),
  };
}

/** The page of `ids` that a query asks for, as a range of positions. An unknown cursor is at the beginning. */
export function pageOf(ids: readonly string[], { after, before, limit }: PageQuery): { from: number; until: number } {
  const until = before === undefined ? -1 : ids.indexOf(before);
  const from = until >= 0 ? Math.max(0, until - limit) : after === undefined ? 0 : ids.indexOf(after) + 1;
  return { from, until: until < 0 ? ids.length : until };
}
