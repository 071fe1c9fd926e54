import { invalidRequest } from "../core/failure.ts";
import type { TemplateCapabilities } from "./capabilities.ts";
import type { TemplateMessage } from "./template-message.ts";
import type { UserText } from "./user-text.ts";

export interface Continuation {
  /** The last message is the assistant's and is continued. */
  readonly conversation: readonly TemplateMessage[];
  /** It was still thinking: it has reasoning and no content, not even an empty one. */
  readonly thinks: boolean;
  readonly wants: TemplateCapabilities;
  readonly user: UserText;
  readonly warnings: string[];
  render(conversation: readonly TemplateMessage[]): string;
}

/**
 * The prompt up to the end of the last message's text, white space at its end included. A mark at that end shows where to cut the
 * rendered text. If the template leaves out the message's reasoning, it is written as the model would have written it: in the
 * template's own tags for a thought.
 */
export function continuedPrompt(continuation: Continuation): string {
  const { conversation, thinks, wants, user, warnings } = continuation;
  const last = conversation.at(-1) ?? { role: "assistant" };
  const { [reasoningMember(last)]: reasoning, ...others } = last;
  const silent: TemplateMessage = { ...others, role: last.role };
  const place = user.placeMark();
  const upTo = (message: TemplateMessage): string | null => {
    const rendered = continuation.render([...conversation.slice(0, -1), message]);
    const end = rendered.lastIndexOf(place);
    return end === -1 ? null : rendered.slice(0, end);
  };
  const member = thinks && !Array.isArray(last["content"]) ? reasoningMember(last) : "content";
  const whole = upTo({ ...last, [member]: withEnd(last[member], place) });
  const header = (): string => upTo({ ...silent, content: place }) ?? leftOut();
  if (typeof reasoning !== "string") return whole ?? leftOut();

  if (thinks) {
    if (whole !== null) return whole;
    if (wants.thought !== null) return header() + wants.thought.open + reasoning;
    throw invalidRequest(
      "The model's chat template knows no reasoning, so a message of the assistant without content cannot be continued.",
      `messages[${conversation.length - 1}].content`,
    );
  }
  const told = whole !== null && whole !== upTo({ ...silent, content: withEnd(last["content"], place) });
  if (told) return whole;
  if (wants.thought !== null) {
    return `${header()}${wants.thought.open}${reasoning}${wants.thought.close}${String(last["content"])}`;
  }
  warnings.push("The chat template knows no reasoning: the last message is continued without it.");
  return whole ?? leftOut();
}

function reasoningMember(message: TemplateMessage): string {
  return (
    ["reasoning_content", "reasoning", "thinking", "thought"].find((name) => name in message) ?? "reasoning_content"
  );
}

/** A text, or the last text of a list of parts, with something at its end. */
function withEnd(content: unknown, end: string): unknown {
  if (!Array.isArray(content)) return `${typeof content === "string" ? content : ""}${end}`;
  const last = content.at(-1) as Readonly<Record<string, unknown>>;
  const member = last["type"] === "thinking" ? "thinking" : "text";
  return [...(content.slice(0, -1) as unknown[]), { ...last, [member]: `${String(last[member])}${end}` }];
}

function leftOut(): never {
  throw new Error("it leaves the last message out, so that it cannot be continued");
}
