import type { ModelConfig } from "../config/model-schema.ts";
import type { Config } from "../config/schema.ts";

/**
 * What nobody may read in an answer or a log: keys of clients and of upstreams, and what an upstream's headers and URLs, the store's or
 * the limits', hold of such.
 */
export function secretsOf({ apiKey, adminKey, store, sharedLimits, models }: Config): readonly string[] {
  const places = [store.at, ...(sharedLimits === undefined ? [] : [sharedLimits])];
  const ofPlaces = places.flatMap((at) => (URL.canParse(at) ? secretsOfUrl(new URL(at)) : []));
  return [...apiKey, ...adminKey, ...ofPlaces, ...models.flatMap((model) => secretsOfModel(model))];
}

const isSecretName = /auth|key|token|secret|cookie|password|sig/i;

function secretsOfModel(model: ModelConfig): string[] {
  if (model.kind !== "upstream") return [];
  const { key, headers = {}, url } = model;
  const inHeaders = Object.entries(headers).filter(([name]) => isSecretName.test(name));
  return [
    ...(key === undefined ? [] : [key]),
    ...inHeaders.flatMap(([, value]) => [value, value.replace(/^\S+\s+/, "")]),
    ...[url].flat().flatMap((one) => secretsOfUrl(new URL(one))),
  ];
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
