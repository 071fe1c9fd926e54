import type { GenerationRequest } from "../../core/request.ts";
import { type FailureError, invalidRequest } from "../../core/failure.ts";
import { type AdaptationName, textOfAdaptation } from "./adaptation-names.ts";
import { isOn, type NoteAdaptation, type RequestBody, type ServerProfile } from "./server-profile.ts";

/** One capability that a server may lack, and how a request is changed so that the server accepts it. */
export interface Adaptation {
  readonly name: AdaptationName;
  /** Whether a server with this profile may refuse what `adapt` changes. */
  isNeeded(profile: ServerProfile): boolean;
  /**
   * Returns the body of a request that the server accepts; `body` itself if nothing changes. Does not change `body`, calls `note` for each
   * change, and does no I/O.
   */
  adapt(body: RequestBody, context: AdaptationContext): RequestBody;
}

export interface AdaptationContext {
  readonly profile: ServerProfile;
  /** The request in its API-neutral form, before any adaptation. */
  readonly request: GenerationRequest;
  readonly note: NoteAdaptation;
}

/** Applies the adaptations that the server's profile needs and the configuration leaves on, in order. */
export function adaptBody(body: RequestBody, list: readonly Adaptation[], context: AdaptationContext): RequestBody {
  let adapted = body;
  for (const { name, isNeeded, adapt } of list)
    if (isNeeded(context.profile) && isOn(context.profile, name)) adapted = adapt(adapted, context);
  return adapted;
}

/** The refusal of a request that would have to be adapted to a source with `strict`. `upstream`: its name. */
export function notAdapted(name: AdaptationName, place: string | undefined, upstream: string): FailureError {
  const { refused } = textOfAdaptation(name);
  return invalidRequest(
    `${place === undefined ? "" : `${place}: `}The upstream ${upstream} does not accept ${refused}. Its configuration has "strict: true", so the request is not adapted (${name}); change the request, or remove "strict".`,
    place ?? null,
    "unsupported_value",
  );
}
