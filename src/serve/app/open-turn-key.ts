import { ConfigError } from "../config/config-error.ts";
import type { Config } from "../config/schema.ts";
import type { Log } from "../server/log.ts";
import { newSecret, turnKeyOf } from "../server/turn-key.ts";
import type { Runtime } from "./runtime.ts";

/** The file of the secret, in the folder of the store or next to the file of learned profiles. */
const fileName = "truewire.key";
/** In characters. */
const minLength = 32;

/**
 * Returns the key of the installation (`turnKey`): of the configured secret; else of one that is kept in the store, which all instances share,
 * or next to the file of learned profiles; else a random one, which ends with the process. Throws `ConfigError` if the store keeps none.
 */
export async function openTurnKey(config: Config, log: Log, runtime: Runtime): Promise<Uint8Array> {
  const { sessionKey, store, profilesFile } = config;
  if (sessionKey !== undefined) return turnKeyOf(sessionKey);
  if (store.at !== "memory") {
    const place = store.at.includes("://") ? store.at : `${store.at}/${fileName}`;
    try {
      return await keptKey(place, runtime);
    } catch (error) {
      const message = `keeps no key of this installation: ${reasonOf(error)} Or set sessionKey.`;
      throw new ConfigError([{ path: ["store", "at"], message }]);
    }
  }
  let reason = "Set sessionKey, or a store that outlives the server.";
  if (profilesFile !== undefined) {
    try {
      return await keptKey(profilesFile.replace(/[^/\\]*$/, fileName), runtime);
    } catch (error) {
      reason = `${reasonOf(error)} ${reason}`;
    }
  }
  log.debug({ reason }, "the key of this installation is random: values that clients return are valid until it stops");
  return turnKeyOf(newSecret());
}

async function keptKey(place: string, runtime: Runtime): Promise<Uint8Array> {
  const { openSecret } = await runtime.stores();
  const secret = await openSecret(place, newSecret());
  // Without the secret's text: an error is shown.
  if (secret.length < minLength)
    throw new Error(
      `${fileName} has ${secret.length} characters, and a key at least ${minLength}. Delete it, and a new one is written.`,
    );
  return turnKeyOf(secret);
}

function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.endsWith(".") ? message : `${message}.`;
}
