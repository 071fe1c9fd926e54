import type { Config } from "../config/schema.ts";
import { isLimited } from "../config/keys-schema.ts";
import type { KeyConfig } from "../config/keys-schema.ts";
import { AdminAccess } from "../server/admin/admin-access.ts";
import type { ClientFiles } from "./server-files.ts";
import { PriceList } from "../server/keys/prices.ts";
import { ModelRoutes } from "../server/model-routes.ts";
import { KeyRing } from "../server/keys/key-ring.ts";
import { isLoopback, restrictedOrigins, unrestrictedOrigins } from "../server/origins.ts";
import { Mask } from "../server/mask.ts";
import type { ModelDirectory } from "../server/model-directory.ts";
import type { ServiceSettings } from "../server/service.ts";
import { exact, lean } from "../../wire/apis/profile.ts";
import type { HashedKey, LaterKeys } from "../server/keys/key-ring.ts";
import { ConfigError } from "../config/config-error.ts";
import { Inspector } from "../server/inspect/inspector.ts";
import type { TruewireConfig } from "../config/schema.ts";
import type { Log } from "../server/log.ts";
import type { ModelConfig } from "../config/model-schema.ts";

/**
 * `files`: the configuration's keys with hashes, and those of its file; prices of a file. `embedded`: inside another server, which restricts web pages
 * itself unless origins are configured.
 */
export function settingsOf(config: Config, files: ClientFiles, embedded: boolean): ServiceSettings {
  const {
    host,
    corsOrigin,
    bodyLimit,
    bodyBudget,
    hold,
    keepAlive,
    readerPatience,
    resumeStreams,
    metrics,
    metricsKey,
  } = config;
  const keys = keyRingOf(config, files.keys, files.later);
  return {
    profile: config.wire === "exact" ? exact : lean,
    keys,
    passesKeys: config.models.some((model) => model.kind === "upstream" && (model.passKey ?? false) !== false),
    prices: new PriceList(config.prices, files.prices, upstreamNames(config)),
    routes: new ModelRoutes(config.routes),
    hostedMaxCost: config.hostedTools.maxCost,
    admin: new AdminAccess(config.adminKey, !embedded && isForThisMachine(config, keys)),
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
    resumeStreamsMs: resumeStreams,
  };
}

/** By the names that clients use, the upstreams' own names of models. */
function upstreamNames({ models }: Config): ReadonlyMap<string, string> {
  return new Map(models.flatMap((model) => (model.kind === "upstream" ? Object.entries(model.models ?? {}) : [])));
}

/** The limit of V8's heap, in bytes; where it is not known (in other runtimes than Node), 1 GiB. */
function heapLimit(): number {
  const v8 = globalThis.process?.getBuiltinModule?.("node:v8");
  return v8?.getHeapStatistics().heap_size_limit ?? 1024 ** 3;
}

/** Whether a server accepts connections of its own machine only, and needs no keys. */
export function isForThisMachine({ host }: Pick<Config, "host">, keys: KeyRing): boolean {
  return isLoopback(host) && !keys.required;
}

/**
 * Returns the keys of a configuration; `keys` are those with hashes. A configured file of keys, and managed keys, require keys even while
 * there are none.
 */
function keyRingOf({ apiKey, keysFile, managedKeys }: Config, keys: readonly KeyConfig[], later?: LaterKeys): KeyRing {
  return new KeyRing(apiKey, keys.map(hashedKey), keysFile !== undefined || managedKeys, later);
}

export function hashedKey(key: KeyConfig): HashedKey {
  const { name, hash, models, hostedTools, expires, priority = "default", owner: _, note: __, ...limits } = key;
  return {
    hash,
    ...(expires !== undefined && { expiresAt: expires }),
    client: {
      name,
      owner: name,
      tier: priority,
      models,
      hostedTools,
      ...(isLimited(key) && { limits }),
    },
  };
}

/**
 * Returns the inspector, which keeps the latest requests of a server: on by default for a server of this machine only, off elsewhere.
 * `current` is used again if its size did not change. Throws `ConfigError` if no client could read the requests.
 */
export function inspectorOf(
  config: Config,
  { keys }: Pick<ServiceSettings, "keys">,
  current?: Inspector,
): Inspector | undefined {
  const { inspect, inspectSize, adminKey } = config;
  const isPrivate = isForThisMachine(config, keys);
  if (!(inspect ?? isPrivate)) return undefined;
  if (!isPrivate && adminKey.length === 0) throw new ConfigError([needsAdminKey]);
  return current?.maxBytes === inspectSize ? current : new Inspector(inspectSize);
}

const needsAdminKey = {
  path: ["inspect"],
  message: "needs an admin key (adminKey) on a server that has keys or that others can reach",
};

export function warnOfOpenAddress({ host }: Config, { keys }: ServiceSettings, log: Log): void {
  if (isLoopback(host) || keys.required) return;
  log.warn({ host }, "every client that can reach this address can use the API: set a key with --api-key");
}

/** Throws `ConfigError` for a rule whose model is not served. The models of an upstream that has not answered yet may be. */
export function checkRoutes({ routes }: Pick<Config, "routes">, directory: ModelDirectory): void {
  const served = directory.list().map(({ info }) => info.id);
  const problems = routes.flatMap(({ to }, at) =>
    directory.isServed(to) || directory.mayCome(to)
      ? []
      : [{ path: ["routes", at, "to"], message: `no model '${to}' is served; expected one of ${served.join(", ")}` }],
  );
  if (problems.length > 0) throw new ConfigError(problems);
}

export function hasBudgets(keys: readonly KeyConfig[]): boolean {
  return keys.some(({ budget }) => budget !== undefined);
}

/** Logs the models that the keys with a budget, or hosted tools with a limit of cost, cannot use. */
export function warnOfMissingPrices(
  settings: ServiceSettings,
  directory: ModelDirectory,
  hasBudgets: boolean,
  log: Log,
): void {
  if (!hasBudgets && settings.hostedMaxCost === undefined) return;
  const models = directory.list().filter((model) => !settings.prices.of(model));
  if (models.length === 0) return;
  const names = models.map(({ info }) => info.id);
  log.warn(
    { models: names },
    "models without a price in prices: a key with a budget, or hostedTools.maxCost, excludes them",
  );
}

const stores = ["store", "sessions", "files"] as const;

/** Settings that a running server cannot change. */
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
  "managedKeys",
  "sessionKey",
  "batchConcurrency",
] as const;

export function warnOfFixedSettings(next: Config, current: Config, log: Log): void {
  const settings: string[] = fixed.filter((name) => next[name] !== current[name]);
  if ((next.tlsCert === undefined) !== (current.tlsCert === undefined)) settings.push("tlsCert", "tlsKey");
  for (const name of stores) if (JSON.stringify(next[name]) !== JSON.stringify(current[name])) settings.push(name);
  if (settings.length > 0) log.warn({ settings }, "these settings change with a restart only");
}

/** Returns a new configuration with the fixed settings of `first`, so that workers that start later equal the running ones. */
export function withFixedSettings(next: TruewireConfig, first: TruewireConfig): TruewireConfig {
  const isSecure = first.tlsCert !== undefined;
  const tls = isSecure === (next.tlsCert !== undefined) ? next : first;
  const kept = Object.fromEntries([...fixed, ...stores].map((name) => [name, first[name]]));
  return { ...next, ...kept, tlsCert: tls.tlsCert, tlsKey: tls.tlsKey };
}

/**
 * Returns the texts that must not appear in an answer or a log: keys of clients and of upstreams, and secrets in the headers, URLs and
 * added members of upstreams and in the URLs of the store and the limits.
 */
export function secretsOf(config: Config): readonly string[] {
  const { apiKey, adminKey, metricsKey, sessionKey, store, sharedLimits, models, hostedTools } = config;
  const places = [store.at, ...(sharedLimits === undefined ? [] : [sharedLimits])];
  const ofPlaces = places.flatMap((at) => (URL.canParse(at) ? secretsOfUrl(new URL(at)) : []));
  const keys = [...apiKey, ...adminKey, ...metricsKey, ...(sessionKey === undefined ? [] : [sessionKey])];
  return [
    ...keys,
    ...ofPlaces,
    ...models.flatMap((model) => secretsOfModel(model)),
    ...(hostedTools.webSearch?.key === undefined ? [] : [hostedTools.webSearch.key]),
    ...Object.values(hostedTools.mcp).flatMap(({ env, headers, url }) => [
      ...Object.entries(env).flatMap(([name, value]) => (isSecretName.test(name) ? [value] : [])),
      ...secretHeaders(headers),
      ...(url === undefined ? [] : secretsOfUrl(new URL(url))),
    ]),
  ];
}

const isSecretName = /auth|key|token|secret|cookie|session|password|credential|sig/i;
/** Stricter for members of a body: `tokenizer` and `prompt_cache_key` are not secrets. */
const isSecretMember = /(api.?key|access.?key|auth\w*|token|secret|password|credentials?)$/i;

function secretsOfModel(model: ModelConfig): string[] {
  if (model.kind !== "upstream") return [];
  const { key, headers = {}, url, requests } = model;
  return [
    ...(typeof key === "string"
      ? [key]
      : [key ?? []].flat().map((one) => ("key" in one ? one.key : (one.share ?? "")))),
    ...secretHeaders(headers),
    ...secretMembers(requests?.add),
    ...[url].flat().flatMap((one) => secretsOfUrl(new URL(one))),
  ];
}

function secretHeaders(headers: Readonly<Record<string, string>>): string[] {
  const secret = Object.entries(headers).filter(([name]) => isSecretName.test(name));
  return secret.flatMap(([, value]) => [value, value.replace(/^\S+\s+/, ""), ...passwordOf(value)]);
}

/** The decoded credentials of basic authentication, which an upstream may repeat. */
function passwordOf(header: string): string[] {
  const [, encoded] = /^basic\s+([\w+/=-]+)$/i.exec(header) ?? [];
  if (encoded === undefined) return [];
  try {
    const login = atob(encoded);
    return [login, login.slice(login.indexOf(":") + 1)];
  } catch {
    return [];
  }
}

/** Texts of a body's members, at any depth, whose names are those of secrets. */
function secretMembers(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) =>
    typeof member === "string" && isSecretMember.test(name) ? [member] : secretMembers(member),
  );
}

/** As written in the URL, and decoded. */
function secretsOfUrl({ username, password, searchParams }: URL): string[] {
  const login = password === "" ? username : password;
  const values = [...searchParams].flatMap(([name, value]) =>
    isSecretName.test(name) ? [value, encodeURIComponent(value)] : [],
  );
  return [login, decoded(login), ...values];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
