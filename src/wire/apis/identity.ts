import type { SourceIdentity } from "../core/events.ts";
import type { ChoicesContext } from "./choices-answer.ts";
import { ownId } from "./ids.ts";
import { grantedTier } from "./openai-models.ts";

/** Members that every chunk of an answer repeats. */
export interface AnswerIdentity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly systemFingerprint: string | null;
}

/** The identity of an answer: the source's if its id has OpenAI's form (see `ChoicesContext`), else the server's. */
export function answerIdentity(
  context: ChoicesContext,
  prefix: "chatcmpl-" | "cmpl-",
  source: SourceIdentity = {},
): AnswerIdentity {
  const { settings } = context;
  const own = ownId(prefix, source.id);
  return {
    id: own ?? context.id,
    created: (own === undefined ? undefined : source.created) ?? context.created,
    model: shownModel(context, source.model),
    systemFingerprint: source.systemFingerprint ?? settings.systemFingerprint ?? null,
  };
}

/** A source may send the dated form of the model's id. */
function shownModel({ profile, model }: ChoicesContext, source: string | undefined): string {
  return profile.resolvesModels && source?.startsWith(`${model}-`) ? source : model;
}

/**
 * `service_tier`: the source's, else the one that was requested, else the settings', else `fallback`; undefined for an answer without this
 * member.
 */
export function shownTier(
  fallback: string | null | undefined,
  { requested, settings }: Pick<ChoicesContext, "requested" | "settings">,
  source: SourceIdentity = {},
): string | null | undefined {
  if (fallback === undefined) return undefined;
  const granted = grantedTier(requested.serviceTier, settings.standsFor);
  return source.serviceTier ?? granted ?? settings.serviceTier ?? fallback;
}
