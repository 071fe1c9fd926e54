import { ConfigError } from "../config/config-error.ts";
import type { Config } from "../config/schema.ts";
import { Inspector } from "../server/inspect/inspector.ts";
import { isLoopback } from "../server/origins.ts";
import type { Settings } from "../server/service.ts";

/**
 * What keeps the last requests of a server: on a server for this machine only, unless that is turned off, and elsewhere where that is
 * turned on. `current`: goes on with what it has, where it may. Throws `ConfigError` where nobody could look at them.
 */
export function inspectorOf(
  { host, inspect, inspectSize, adminKey }: Config,
  { keys }: Pick<Settings, "keys">,
  current?: Inspector,
): Inspector | undefined {
  const isForThisMachine = isLoopback(host) && !keys.required;
  if (!(inspect ?? isForThisMachine)) return undefined;
  if (!isForThisMachine && adminKey.length === 0) throw new ConfigError([needsAdminKey]);
  return current?.maxBytes === inspectSize ? current : new Inspector(inspectSize);
}

/** Whether a configuration asks that requests are kept, in so far as that is known before its file of keys is read. */
export function wantsInspector({
  host,
  inspect,
  apiKey,
  keys,
  keysFile,
}: Pick<Config, "host" | "inspect" | "apiKey" | "keys" | "keysFile">): boolean {
  return inspect ?? (isLoopback(host) && apiKey.length === 0 && keys.length === 0 && keysFile === undefined);
}

const needsAdminKey = {
  path: ["inspect"],
  message: "needs an admin key (adminKey) on a server that has keys or that others can reach",
};
