import type { SourceIdentity } from "../../generation/event.ts";
import { toolUseId } from "./ids.ts";
import type { MessageContext } from "./asked-message.ts";

/** The members of a message that stand before its content, in the order of recordings since October 2025. */
export function messageHead(
  { profile, model, id }: MessageContext,
  source: SourceIdentity = {},
): { model: string; id: string; type: "message"; role: "assistant" } {
  const dated = profile.resolvesModels && source.model?.startsWith(`${model}-`) === true;
  return {
    model: (dated ? source.model : undefined) ?? model,
    id: source.id?.startsWith("msg_") === true ? source.id : id,
    type: "message",
    role: "assistant",
  };
}

/**
 * The id of a call. A source's own is kept where Anthropic could have given it; in profile `lean`, also where clients take it: they send
 * it back, and a server behind may know its own ids only.
 */
export function callId(id: string, { profile, random }: MessageContext): string {
  const fits = profile.name === "lean" ? /^[a-zA-Z0-9_-]+$/ : /^toolu_[a-zA-Z0-9_]+$/;
  return fits.test(id) ? id : toolUseId(random);
}
