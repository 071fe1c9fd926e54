import type { Config } from "../config/schema.ts";
import type { KeyConfig } from "../config/keys-schema.ts";
import { AdminAccess } from "../server/admin/admin-access.ts";
import { KeyRing } from "../server/keys/key-ring.ts";
import { isLoopback, restrictedOrigins, unrestrictedOrigins } from "../server/origins.ts";
import { Mask } from "../server/mask.ts";
import type { Settings } from "../server/service.ts";
import { keyRingOf } from "./key-ring-of.ts";
import { secretsOf } from "./secrets-of-config.ts";
import { exact, lean } from "../apis/profile.ts";

/** `keyConfigs`: the configuration's keys with hashes, and those of its file. `embedded`: inside somebody else's server, which decides about pages itself unless origins are configured. */
export function settingsOf(config: Config, keyConfigs: readonly KeyConfig[], embedded: boolean): Settings {
  const { host, corsOrigin, bodyLimit, bodyBudget, hold, keepAlive, readerPatience, metrics, metricsKey } = config;
  const keys = keyRingOf(config, keyConfigs);
  return {
    profile: config.wire === "exact" ? exact : lean,
    keys,
    admin: new AdminAccess(config.adminKey, !embedded && isLoopback(host) && !keys.required),
    ...(metricsKey.length > 0 && { metricsKeys: new KeyRing(metricsKey, [], true) }),
    metricsOpen: metrics === "open",
    origins:
      embedded && corsOrigin.length === 0
        ? unrestrictedOrigins
        : restrictedOrigins({
            allowed: corsOrigin,
            keysRequired: keys.required,
            ...(!embedded && { ownNames: [host] }),
            otherWay: "with a key (--api-key), or ",
          }),
    mask: new Mask(secretsOf(config)),
    bodyLimit,
    bodyBudget: bodyBudget ?? heapLimit() / 4,
    holdMs: hold,
    keepAliveMs: keepAlive,
    readerPatienceMs: readerPatience,
  };
}

/** The limit of V8's heap, in bytes; where it is not known (in other runtimes than Node), 1 GiB. */
function heapLimit(): number {
  const v8 = globalThis.process?.getBuiltinModule?.("node:v8");
  return v8?.getHeapStatistics().heap_size_limit ?? 1024 ** 3;
}
