import { FailureError } from "../generation/failure.ts";
import { unsupportedEnumValue } from "../wire/request/refusals.ts";
import { exact, lean, profileNamed } from "../wire/profile.ts";
import type { Profile } from "../wire/profile.ts";
import type { Exchange } from "./exchange.ts";

/** The header by which a client chooses the form of its answer, before what the model and the server are set to. */
export const profileHeader = "X-Truewire-Wire";

/**
 * The profile that a request's header asks for; undefined without that header. Throws `FailureError` 400, with the header's name as
 * `param`, for a value that is no profile's name: a client that asks for a form and gets another one would not notice.
 */
export function askedProfile(exchange: Exchange): Profile | undefined {
  const value = exchange.header(profileHeader.toLowerCase());
  if (value === undefined) return undefined;
  const profile = profileNamed(value.trim());
  if (profile) return profile;
  const { failure } = unsupportedEnumValue(profileHeader, value, [lean.name, exact.name]);
  throw new FailureError({ ...failure, message: `Invalid header '${profileHeader}'. ${failure.message}` });
}
