import type { SourceIdentity } from "../generation/event.ts";
import type { ChoicesContext } from "./choices-answer.ts";

/** What every chunk of an answer repeats. */
export interface AnswerIdentity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly systemFingerprint: string | null;
  /** undefined: not shown. */
  readonly serviceTier: string | null | undefined;
}

/** Who an answer says it is: the source where it has the say (see `ChoicesContext`), else the server. */
export function answerIdentity(
  context: ChoicesContext,
  prefix: "chatcmpl-" | "cmpl-",
  source: SourceIdentity = {},
): AnswerIdentity {
  const { settings, capture } = context;
  const ownId = source.id?.startsWith(prefix) ? source.id : undefined;
  return {
    id: ownId ?? context.id,
    created: (ownId !== undefined || capture ? source.created : undefined) ?? context.created,
    model: shownModel(context, source.model),
    systemFingerprint: source.systemFingerprint ?? settings.systemFingerprint ?? null,
    serviceTier: shownTier(context, source.serviceTier),
  };
}

function shownModel({ profile, capture, model }: ChoicesContext, source: string | undefined): string {
  if (source === undefined) return model;
  if (capture) return source;
  return profile.name === "exact" && source.startsWith(`${model}-`) ? source : model;
}

function shownTier(
  { profile, capture, settings }: ChoicesContext,
  source: string | null | undefined,
): string | null | undefined {
  if (profile.name === "lean") return undefined;
  if (capture) return capture.serviceTier ? (source ?? null) : undefined;
  return source ?? settings.serviceTier ?? "default";
}
