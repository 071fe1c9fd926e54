import { inWireOrder } from "../members.ts";
import { message } from "./schema.ts";
import type {
  GeneratedCall,
  GeneratedChoice,
  GeneratedPart,
  GeneratedThought,
  Generation,
} from "../../core/accumulate.ts";
import { isObject } from "../../core/json.ts";
import type { MessageContext } from "./asked-message.ts";
import { citationOf } from "./citation.ts";
import { callId, messageHead } from "./identity.ts";
import { noNativeMembers, withNativeMembers } from "./native-members.ts";
import { ownSignature, sealThought } from "./sealed-thought.ts";
import { messageEnd } from "./stop-reason.ts";
import { estimatedUsage, messageUsage } from "./usage.ts";

type Members = { [name: string]: unknown };

/** A whole message, as the stream writer tells it in pieces; one line, compact. A generation without any block has `content` []. */
export function writeMessageResponse(generation: Generation, context: MessageContext): string {
  const { source, usage, extras, choices } = generation;
  const choice = choices.find(({ choice }) => choice === 0);
  let native = noNativeMembers;
  for (const extra of extras) native = withNativeMembers(native, extra);
  const written = {
    ...messageHead(context, source),
    content: (choice?.parts ?? []).flatMap((part) => blockOf(part, context) ?? []),
    ...messageEnd(choice?.finish ?? null, typeof choice?.refusal === "string", native),
    usage: messageUsage(usage ?? estimatedUsage(context.asked, charactersOf(choice)), native.usage, context.settings),
    ...native.message,
  };
  return JSON.stringify(inWireOrder(message, written));
}

/** Characters that the model has written. */
function charactersOf(choice: GeneratedChoice | undefined): number {
  if (!choice) return 0;
  const { text, refusal, reasoning, toolCalls } = choice;
  const said = (text ?? "").length + (refusal ?? "").length + (reasoning ?? "").length;
  return toolCalls.reduce((sum, { arguments: args }) => sum + args.length, said);
}

function blockOf(part: GeneratedPart, context: MessageContext): Members | undefined {
  switch (part.type) {
    case "text": {
      const citations = part.annotations.flatMap((annotation) => citationOf(annotation) ?? []);
      if (citations.length > 0) return { citations, type: "text", text: part.text };
      return part.text === "" ? undefined : { type: "text", text: part.text };
    }
    case "refusal":
      return part.refusal === "" ? undefined : { type: "text", text: part.refusal };
    case "reasoning":
      return thoughtBlock(part, context);
    case "tool-call":
      return {
        type: "tool_use",
        id: callId(part.id, context),
        name: part.name,
        input: inputOf(part),
        caller: { type: "direct" },
      };
    case "item":
      return part.dialect === "messages" ? part.value : undefined;
  }
}

function thoughtBlock(part: GeneratedThought, { asked }: MessageContext): Members | undefined {
  const { encrypted, id, signature } = part;
  if (asked.thoughts === "hidden") return undefined;
  const text = part.text === "" ? part.summary.join("\n\n") : part.text;
  if (text === "") {
    if (encrypted !== undefined)
      return { type: "redacted_thinking", data: id === undefined ? encrypted : sealThought({ encrypted, id }) };
    return signature === undefined ? undefined : { type: "thinking", thinking: "", signature };
  }
  const isShown = asked.thoughts === "shown";
  return {
    type: "thinking",
    thinking: isShown ? text : "",
    signature: signature ?? ownSignature(isShown ? "" : text, encrypted, id),
  };
}

/**
 * The arguments of a call. What is not the JSON of an object stands in one under the name that Anthropic gives it: the call is refused by
 * the tool that gets it, and the model is told. Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming.
 */
function inputOf({ arguments: text }: GeneratedCall): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Told below.
  }
  return text.trim() === "" ? {} : { INVALID_JSON: text };
}
