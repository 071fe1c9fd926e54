import type { ModelConfig } from "../config/model-schema.ts";
import type { Config } from "../config/schema.ts";

/**
 * What nobody may read in an answer or a log: keys of clients and of upstreams, and what an upstream's headers, URLs and added members, or
 * the URLs of the store and the limits, hold of such.
 */
export function secretsOf({ apiKey, adminKey, metricsKey, store, sharedLimits, models }: Config): readonly string[] {
  const places = [store.at, ...(sharedLimits === undefined ? [] : [sharedLimits])];
  const ofPlaces = places.flatMap((at) => (URL.canParse(at) ? secretsOfUrl(new URL(at)) : []));
  return [...apiKey, ...adminKey, ...metricsKey, ...ofPlaces, ...models.flatMap((model) => secretsOfModel(model))];
}

const isSecretName = /auth|key|token|secret|cookie|session|password|credential|sig/i;
/** Of a body's members, many speak of tokens and keys that are none (`tokenizer`, `prompt_cache_key`). */
const isSecretMember = /(api.?key|access.?key|auth\w*|token|secret|password|credentials?)$/i;

function secretsOfModel(model: ModelConfig): string[] {
  if (model.kind !== "upstream") return [];
  const { key, headers = {}, url, requests } = model;
  const inHeaders = Object.entries(headers).filter(([name]) => isSecretName.test(name));
  return [
    ...(key === undefined ? [] : [key]),
    ...inHeaders.flatMap(([, value]) => [value, value.replace(/^\S+\s+/, ""), ...passwordOf(value)]),
    ...secretMembers(requests?.add),
    ...[url].flat().flatMap((one) => secretsOfUrl(new URL(one))),
  ];
}

/** Of basic authentication; an upstream may decode it, and repeat it so. */
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

/** As they stand in the URL, and decoded. */
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
