import { stringify } from "yaml";
import { parseKeys } from "../config/keys-schema.ts";
import { makeKey } from "../app/managed-keys.ts";
import { AdminClient } from "./admin-client.ts";
import type { ServerFlags } from "./admin-client.ts";
import { showTable } from "./show-table.ts";

/**
 * Creates a random key. Prints the key to stdout, where a script can read it, and its entry for the configuration, as YAML, to stderr; with
 * `json`, both as one object to stdout. Throws `ConfigError` for an invalid name.
 */
export async function newKey(name: string, json: boolean): Promise<void> {
  const { key, hash } = await makeKey();
  const entry = { name, hash: `sha256:${hash}` };
  parseKeys([entry]);
  if (json) return console.log(JSON.stringify({ key, entry }));
  console.log(key);
  console.error(
    `# The key of ${name} is shown this once. The server knows it by its hash: add this to keys, or to the keys file.`,
  );
  console.error(stringify([entry]).trimEnd());
}

/** The options of `truewire keys create`, by the names of the settings. */
export interface KeyFlags extends ServerFlags {
  readonly name: string;
  readonly owner?: string;
  readonly note?: string;
  readonly models?: string;
  readonly requestsPerMinute?: string;
  readonly tokensPerMinute?: string;
  readonly tokensPerDay?: string;
  readonly concurrency?: string;
  readonly budgetDay?: string;
  readonly budgetMonth?: string;
  readonly budgetTotal?: string;
  readonly expires?: string;
  readonly json?: true;
}

interface ListedKey {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly owner?: string;
  readonly note?: string;
  readonly expires?: string;
  readonly expired?: boolean;
  readonly tokensPerDay?: number;
  readonly budget?: Budget;
  readonly used: { readonly tokensPerDay: number; readonly budget: Required<Budget> };
}

type Budget = Readonly<Partial<Record<"day" | "month" | "total", number>>>;

/** Creates a key at a running server. Prints it to stdout, where a script can read it, and its id to stderr. */
export async function createKey({
  url,
  adminKey,
  json,
  models,
  budgetDay,
  budgetMonth,
  budgetTotal,
  ...settings
}: KeyFlags): Promise<void> {
  const client = new AdminClient({ ...(url !== undefined && { url }), ...(adminKey !== undefined && { adminKey }) });
  const given = { day: budgetDay, month: budgetMonth, total: budgetTotal };
  const budget = Object.entries(given).flatMap(([period, most]) =>
    most === undefined ? [] : [[period, Number(most)]],
  );
  const created = (await client.ask("POST", "/admin/keys", {
    ...settings,
    ...(models !== undefined && { models: models.split(",") }),
    ...(budget.length > 0 && { budget: Object.fromEntries(budget) as Budget }),
  })) as { readonly key: string; readonly id: string; readonly name: string };
  if (json) return console.log(JSON.stringify(created));
  console.log(created.key);
  console.error(
    `The key of ${created.name} is shown this once. Its id is ${created.id}: truewire keys revoke ${created.id}`,
  );
}

export async function listKeys(flags: ServerFlags & { readonly json?: true }): Promise<void> {
  const { keys } = (await new AdminClient(flags).ask("GET", "/admin/keys")) as { readonly keys: readonly ListedKey[] };
  if (flags.json) return console.log(JSON.stringify(keys, null, 2));
  const rows = keys.map(({ id, name, source, expires, expired, owner = "", used, tokensPerDay, budget = {} }) => [
    id,
    name,
    source,
    expires === undefined ? "" : `${expires.slice(0, 10)}${expired === true ? " (expired)" : ""}`,
    `${used.tokensPerDay}${tokensPerDay === undefined ? "" : ` of ${tokensPerDay}`}`,
    ...(["day", "month", "total"] as const).map(
      (period) => `$${used.budget[period].toFixed(2)}${budget[period] === undefined ? "" : ` of $${budget[period]}`}`,
    ),
    owner,
  ]);
  showTable([["ID", "NAME", "SOURCE", "EXPIRES", "TOKENS TODAY", "TODAY", "MONTH", "TOTAL", "OWNER"], ...rows]);
}

export async function revokeKey(id: string, flags: ServerFlags): Promise<void> {
  const revoked = await new AdminClient(flags).ask("DELETE", `/admin/keys/${encodeURIComponent(id)}`);
  console.log(`The key ${id} of ${(revoked as { readonly name: string }).name} is revoked.`);
}

export interface UsageFlags extends ServerFlags {
  readonly days: string;
  readonly key?: string;
  readonly csv?: true;
  readonly json?: true;
}

const usageColumns = [
  "key",
  "day",
  "model",
  "requests",
  "prompt_tokens",
  "cached_tokens",
  "completion_tokens",
  "cost",
] as const;
type UsageLine = Readonly<Record<(typeof usageColumns)[number], string | number>>;

/** Prints what keys used, by key, day and model: as a table, as CSV (RFC 4180) or as JSON. */
export async function showUsage({ days, key, csv, json, ...flags }: UsageFlags): Promise<void> {
  const query = new URLSearchParams({ days, ...(key !== undefined && { key }) });
  const { usage } = (await new AdminClient(flags).ask("GET", `/admin/usage?${query}`)) as {
    readonly usage: readonly UsageLine[];
  };
  if (json) return console.log(JSON.stringify(usage, null, 2));
  const rows = usage.map((line) => usageColumns.map((column) => line[column]));
  if (csv) return console.log([usageColumns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n"));
  const shown = rows.map((row) => row.map((cell, at) => (at === 7 ? `$${Number(cell).toFixed(6)}` : String(cell))));
  const titles = ["KEY", "DAY", "MODEL", "REQUESTS", "PROMPT", "CACHED", "ANSWER", "COST"];
  const total = usage.reduce((sum, { cost }) => sum + Number(cost), 0);
  showTable([titles, ...shown, ["", "", "", "", "", "", "", `$${total.toFixed(6)}`]]);
}

/** A spreadsheet computes a cell that begins like a formula: names of models are those of other servers. */
export function csvCell(cell: string | number): string {
  const text = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
