import type { TruewireConfig } from "../config/config.ts";
import type { Config } from "../config/schema.ts";
import type { Log } from "../server/log.ts";
import { isLoopback } from "../server/origins.ts";
import type { Settings } from "../server/service.ts";

export function warnOfOpenAddress({ host }: Config, { keys }: Settings, log: Log): void {
  if (isLoopback(host) || keys.required) return;
  log.warn({ host }, "everybody who reaches this address may use the API: set a key with --api-key");
}

/** What a running server does not go over to. */
const fixed = [
  "host",
  "port",
  "workers",
  "logLevel",
  "logFormat",
  "logStream",
  "metrics",
  "headerTimeout",
  "requestTimeout",
  "idleTimeout",
  "sharedLimits",
] as const;

export function warnOfFixedSettings(next: Config, current: Config, log: Log): void {
  const settings: string[] = fixed.filter((name) => next[name] !== current[name]);
  if ((next.tlsCert === undefined) !== (current.tlsCert === undefined)) settings.push("tlsCert", "tlsKey");
  if (JSON.stringify(next.store) !== JSON.stringify(current.store)) settings.push("store");
  if (settings.length > 0) log.warn({ settings }, "these settings change with a restart only");
}

/** A new configuration as a server goes on with it that began with `first`: a worker that starts later is as those that are there. */
export function withFixedSettings(next: TruewireConfig, first: TruewireConfig): TruewireConfig {
  const isSecure = first.tlsCert !== undefined;
  const tls = isSecure === (next.tlsCert !== undefined) ? next : first;
  const kept = Object.fromEntries([...fixed, "store" as const].map((name) => [name, first[name]]));
  return { ...next, ...kept, tlsCert: tls.tlsCert, tlsKey: tls.tlsKey };
}
