import { FailureError } from "../core/failure.ts";
import { unsupportedEnumValue } from "../apis/request/refusals.ts";
import { exact, lean, profileNamed } from "../apis/profile.ts";
import type { Profile } from "../apis/profile.ts";
import type { Exchange } from "./exchange.ts";

/** The header by which a client chooses the form of its answer. Precedence: header, model, server. */
export const profileHeader = "X-Truewire-Wire";

/**
 * The profile that a request's header asks for; undefined without that header. Throws `FailureError` 400, with the header's name as
 * `param`, for an unknown profile: a client that asks for one form and gets another would not notice.
 */
export function askedProfile(exchange: Exchange): Profile | undefined {
  const value = exchange.header(profileHeader.toLowerCase());
  if (value === undefined) return undefined;
  const profile = profileNamed(value.trim());
  if (profile) return profile;
  const { failure } = unsupportedEnumValue(profileHeader, value, [lean.name, exact.name]);
  throw new FailureError({ ...failure, message: `Invalid header '${profileHeader}'. ${failure.message}` });
}
