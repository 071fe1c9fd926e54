import type { SourceIdentity } from "../../core/events.ts";
import { toolUseId } from "./ids.ts";
import type { MessageContext } from "./asked-message.ts";
import { messageForms } from "./form.ts";

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

/** The id of a call: a source's own, where the form keeps such, else a new one. */
export function callId(id: string, { profile, random }: MessageContext): string {
  return messageForms[profile.name].callIds.test(id) ? id : toolUseId(random);
}
