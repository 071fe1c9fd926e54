import { ConfigError } from "./config-error.ts";
import type { TruewireConfig } from "./schema.ts";
import { parseConfig } from "./schema.ts";
import { isLimited } from "./keys-schema.ts";
import type { KeyConfig } from "./keys-schema.ts";

/**
 * Throws `ConfigError` if several workers cannot serve a configuration: they are independent processes, so everything that a client may meet
 * again at another worker must be in Redis, or off. `keys`: with those of the configured file.
 */
export function checkWorkers(config: TruewireConfig, keys: readonly KeyConfig[]): void {
  const parsed = parseConfig(config);
  if (parsed.workers === 1) return;
  const why = reasonFor(config, parsed, keys);
  if (why !== undefined) throw new ConfigError([{ path: ["workers"], message: `${why}, or set workers: 1` }]);
}

function reasonFor(
  { inspect, resumeStreams, files }: TruewireConfig,
  {
    models,
    store,
    sessions,
    sharedLimits,
    resumeStreams: resumeMs,
    files: { maxCount: maxFiles },
  }: ReturnType<typeof parseConfig>,
  keys: readonly KeyConfig[],
): string | undefined {
  if (models.some(({ kind }) => kind === "local"))
    return "each process would load the local model for itself. Serve the model with another `truewire serve` and name its URL here";
  if (models.some(({ kind }) => kind !== "upstream"))
    return "each process would run the program for itself. Serve the program with another `truewire serve` and name its URL here";
  if (sharedLimits === undefined && keys.some(isLimited))
    return "keys have limits, and each process would count for itself. Set sharedLimits: redis://HOST:PORT";
  if (!store.at.includes("://") && (store.maxCount > 0 || sessions.memory))
    return "responses and turns are stored, and each process would store its own. Set store: redis://HOST:PORT, or store nothing (store: { maxCount: 0 }, sessions: { memory: false })";
  // By default there are none.
  if (!store.at.includes("://") && files && maxFiles > 0)
    return "files are stored, and each process would store its own. Set store: redis://HOST:PORT, or remove files";
  if (inspect === true) return "each process would inspect its own requests. Remove inspect";
  if (resumeStreams !== undefined && resumeMs > 0)
    return "a stream could be resumed only at the process that generates it. Remove resumeStreams";
  return undefined;
}
