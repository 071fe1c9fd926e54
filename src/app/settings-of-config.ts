import type { Config } from "../config/schema.ts";
import { ApiKeys } from "../server/api-keys.ts";
import { restrictedOrigins, unrestrictedOrigins } from "../server/origins.ts";
import { Mask } from "../server/mask.ts";
import type { Settings } from "../server/service.ts";
import { secretsOf } from "./secrets-of-config.ts";
import { exact, lean } from "../wire/profile.ts";

/** `embedded`: inside somebody else's server, which decides about pages itself unless origins are configured. */
export function settingsOf(config: Config, embedded: boolean): Settings {
  const { host, apiKey, corsOrigin, bodyLimit, hold, keepAlive, readerPatience } = config;
  return {
    profile: config.wire === "exact" ? exact : lean,
    keys: new ApiKeys(apiKey),
    origins:
      embedded && corsOrigin.length === 0
        ? unrestrictedOrigins
        : restrictedOrigins({
            allowed: corsOrigin,
            keysRequired: apiKey.length > 0,
            ...(!embedded && { ownNames: [host] }),
          }),
    mask: new Mask(secretsOf(config)),
    bodyLimit,
    holdMs: hold,
    keepAliveMs: keepAlive,
    readerPatienceMs: readerPatience,
  };
}
