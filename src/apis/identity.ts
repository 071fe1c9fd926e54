import type { SourceIdentity } from "../core/events.ts";
import type { ChoicesContext } from "./choices-answer.ts";
import type { AnswerSettings } from "./port.ts";

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
  const ownId = sourceId(prefix, source);
  return {
    id: ownId ?? context.id,
    created: (ownId === undefined ? undefined : source.created) ?? context.created,
    model: shownModel(context, source.model),
    systemFingerprint: source.systemFingerprint ?? settings.systemFingerprint ?? null,
  };
}

/** The source's id, if it has OpenAI's form. */
export function sourceId(prefix: "chatcmpl-" | "cmpl-", source: SourceIdentity | undefined): string | undefined {
  return source?.id?.startsWith(prefix) === true ? source.id : undefined;
}

/** A source may send the dated form of the model's id. */
function shownModel({ profile, model }: ChoicesContext, source: string | undefined): string {
  return profile.resolvesModels && source?.startsWith(`${model}-`) ? source : model;
}

/** `service_tier`: the source's, else the settings', else `fallback`; undefined for an answer without this member. */
export function shownTier(
  fallback: string | null | undefined,
  settings: AnswerSettings,
  source: SourceIdentity = {},
): string | null | undefined {
  return fallback === undefined ? undefined : (source.serviceTier ?? settings.serviceTier ?? fallback);
}
