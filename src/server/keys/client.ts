import type { Limits } from "../../kv/limits.ts";

/** Who holds a key, as far as the server knows. */
export interface Client {
  /** As configured; absent for a key without a name. Whoever holds several keys has one name. */
  readonly name?: string;
  /** Whose requests these are, for engines that share what they have between clients; not the key. */
  readonly owner: string;
  /** Names of models, as clients use them, with `*` for any text; absent: all. */
  readonly models?: readonly string[];
  /** Absent: it has none. */
  readonly limits?: Limits;
}
