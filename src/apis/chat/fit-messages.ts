import { argumentsOfInput } from "../../core/custom-tool.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { ShortIds } from "../../core/message.ts";
import type { Adaptation } from "../adapt/adaptations.ts";
import {
  isInstruction,
  joinContents,
  joinSystemMessages,
  systemMessagesAsUser,
  withPlainText,
} from "../adapt/place-system-messages.ts";
import type { NoteAdaptation, ServerProfile } from "../adapt/server-profile.ts";

type Messages = readonly JsonObject[];

/** An adaptation of a chat request's messages. */
interface MessagesAdaptation extends Pick<Adaptation, "name" | "isNeeded"> {
  /** Returns `messages` itself if nothing changes. */
  adapt(messages: Messages, note: NoteAdaptation, profile: ServerProfile): Messages;
}

/** In the order in which they are applied. */
const adaptations: readonly MessagesAdaptation[] = [
  {
    name: "instruction-role",
    isNeeded: ({ instructionRole }) => instructionRole !== "any",
    adapt: withInstructionRole,
  },
  {
    name: "system-joined",
    isNeeded: ({ systemMessages }) => systemMessages !== "anywhere",
    adapt: (messages, note) => joinSystemMessages(messages, (at) => note("system-joined", `messages[${at}]`)),
  },
  {
    name: "system-as-user",
    isNeeded: ({ systemMessages }) => systemMessages !== "anywhere",
    adapt: (messages, note, { systemMessages }) =>
      systemMessagesAsUser(
        messages,
        (at) => note("system-as-user", `messages[${at}]`),
        systemMessages === "none" ? "all" : "later",
      ),
  },
  { name: "image-left-out", isNeeded: ({ images }) => images === false, adapt: withoutAnyImage },
  { name: "custom-tool", isNeeded: ({ customTools }) => customTools !== true, adapt: withoutCustomCalls },
  { name: "tool-image", isNeeded: ({ toolImages }) => toolImages !== true, adapt: withoutToolImages },
  {
    name: "refused-member",
    isNeeded: ({ dropInMessages }) => dropInMessages !== undefined,
    adapt: withoutRefusedMembers,
  },
  {
    name: "reasoning-history",
    isNeeded: ({ reasoningHistory }) => reasoningHistory === false,
    adapt: withoutReasoning,
  },
  {
    name: "reasoning-member",
    isNeeded: ({ reasoningMember, reasoningHistory }) => reasoningMember !== undefined && reasoningHistory !== false,
    adapt: withReasoningMember,
  },
  { name: "repeated-role", isNeeded: ({ repeatedRoles }) => repeatedRoles === false, adapt: withoutRepeatedRoles },
  { name: "short-call-id", isNeeded: ({ callIds }) => callIds === "nine", adapt: withShortIds },
  { name: "answer-after-tool", isNeeded: ({ userAfterTool }) => userAfterTool === false, adapt: withAnswerAfterTool },
];

/** The adaptations of the messages of a chat request, in the order in which they are applied. */
export const messageAdaptations: readonly Adaptation[] = adaptations.map(({ name, isNeeded, adapt }) => ({
  name,
  isNeeded,
  adapt(body, { note, profile }) {
    const { messages } = body;
    if (!Array.isArray(messages)) return body;
    const adapted = adapt(messages as Messages, note, profile);
    return adapted === messages ? body : { ...body, messages: adapted };
  },
}));

/** Gives every instruction this role. */
function withInstructionRole(
  messages: Messages,
  note: NoteAdaptation,
  { instructionRole = "system" }: ServerProfile,
): Messages {
  return changed(messages, (message, at) => {
    if (!isInstruction(message) || message["role"] === instructionRole) return message;
    note("instruction-role", `messages[${at}].role`);
    return { ...message, role: instructionRole };
  });
}

/** Writes earlier calls of custom tools as calls of the functions that represent them. */
function withoutCustomCalls(messages: Messages, note: NoteAdaptation): Messages {
  return changed(messages, (message, at) => {
    const calls = message["tool_calls"];
    if (!Array.isArray(calls) || !calls.some(isCustom)) return message;
    return {
      ...message,
      tool_calls: calls.map((call: unknown, index) => {
        if (!isCustom(call)) return call;
        note("custom-tool", `messages[${at}].tool_calls[${index}].type`);
        const { custom, ...others } = call;
        const input = typeof custom["input"] === "string" ? custom["input"] : "";
        const text = JSON.stringify(argumentsOfInput(input));
        return { ...others, type: "function", function: { name: custom["name"], arguments: text } };
      }),
    };
  });
}

function isCustom(call: unknown): call is JsonObject & { readonly custom: JsonObject } {
  return isObject(call) && call["type"] === "custom" && isObject(call["custom"]);
}

/**
 * Moves the images that tools have returned into a user's message after the results of the turn: the next one, or a new one. A
 * text before each image names the call that returned it. Chat takes only texts in results of tools.
 * Source: https://platform.openai.com/docs/api-reference/chat/create, `messages`, Tool message.
 */
function withoutToolImages(messages: Messages, note: NoteAdaptation): Messages {
  if (!messages.some((message) => message["role"] === "tool" && imagesOf(message).length > 0)) return messages;
  const fitted: JsonObject[] = [];
  let moved: unknown[] = [];
  for (const [at, message] of messages.entries()) {
    if (message["role"] === "tool") {
      const images = imagesOf(message);
      fitted.push(images.length === 0 ? message : withoutImages(message));
      for (const image of images) {
        note("tool-image", `messages[${at}].content`);
        moved.push(
          { type: "text", text: `Image in the result of the tool call ${String(message["tool_call_id"])}:` },
          image,
        );
      }
      continue;
    }
    if (moved.length > 0) {
      const { content } = message;
      const own = typeof content === "string" ? [{ type: "text", text: content }] : content;
      if (message["role"] === "user" && Array.isArray(own)) fitted.push({ ...message, content: [...moved, ...own] });
      else fitted.push({ role: "user", content: moved }, message);
      moved = [];
    } else fitted.push(message);
  }
  if (moved.length > 0) fitted.push({ role: "user", content: moved });
  return fitted;
}

function imagesOf({ content }: JsonObject): readonly unknown[] {
  return Array.isArray(content) ? content.filter(isImage) : [];
}

function isImage(part: unknown): boolean {
  return isObject(part) && part["type"] === "image_url";
}

function withoutImages(message: JsonObject): JsonObject {
  const content = (message["content"] as readonly unknown[]).filter((part) => !isImage(part));
  const left = content.length > 0 ? withPlainText(content) : "The result is the image in the next message of the user.";
  return { ...message, content: left };
}

/** Leaves out the reasoning of earlier turns. */
function withoutReasoning(messages: Messages, note: NoteAdaptation): Messages {
  return changed(messages, (message, at) => {
    if (message["reasoning_content"] === undefined && message["reasoning"] === undefined) return message;
    note("reasoning-history", `messages[${at}]`);
    const { reasoning_content: _, reasoning: __, ...others } = message;
    return others;
  });
}

/** Leaves out members of messages that the server refuses. */
function withoutRefusedMembers(
  messages: Messages,
  note: NoteAdaptation,
  { dropInMessages = [] }: ServerProfile,
): Messages {
  return changed(messages, (message, at) => {
    const refused = dropInMessages.filter((name) => Object.hasOwn(message, name));
    if (refused.length === 0) return message;
    for (const name of refused) note("refused-member", `messages[${at}].${name}`);
    return Object.fromEntries(Object.entries(message).filter(([name]) => !refused.includes(name)));
  });
}

/** Gives back the reasoning of earlier turns under the name that the server expects. */
function withReasoningMember(
  messages: Messages,
  note: NoteAdaptation,
  { reasoningMember = "reasoning_content" }: ServerProfile,
): Messages {
  const other = reasoningMember === "reasoning" ? "reasoning_content" : "reasoning";
  return changed(messages, (message, at) => {
    const { [other]: reasoning, ...others } = message;
    if (reasoning === undefined) return message;
    note("reasoning-member", `messages[${at}].${other}`);
    return { ...others, [reasoningMember]: others[reasoningMember] ?? reasoning };
  });
}

/** Replaces each image by a text, in messages of any role. */
function withoutAnyImage(messages: Messages, note: NoteAdaptation): Messages {
  return changed(messages, (message, at) => {
    const { content } = message;
    if (!Array.isArray(content) || !content.some(isImage)) return message;
    const parts = content.map((part: unknown, index) => {
      if (!isImage(part)) return part;
      note("image-left-out", `messages[${at}].content[${index}]`);
      return { type: "text", text: "[An image was left out: the model does not accept images.]" };
    });
    return { ...message, content: withPlainText(parts) };
  });
}

/**
 * Joins consecutive messages of the user, and of the assistant. An assistant's message with calls ends a turn of calls, so nothing is joined
 * to it.
 */
function withoutRepeatedRoles(messages: Messages, note: NoteAdaptation): Messages {
  /** Each message with the contents that are joined in it: a long row of messages is joined once. */
  const groups: { readonly message: JsonObject; readonly contents: unknown[] }[] = [];
  for (const [at, message] of messages.entries()) {
    const last = groups.at(-1);
    const { role, content } = message;
    const isSame = last?.message["role"] === role && (role === "user" || role === "assistant");
    if (last === undefined || !isSame || last.message["tool_calls"] !== undefined) {
      groups.push({ message, contents: [content] });
      continue;
    }
    note("repeated-role", `messages[${at}].role`);
    last.contents.push(content);
    groups[groups.length - 1] = { ...last, message: { ...last.message, ...message } };
  }
  if (groups.length === messages.length) return messages;
  return groups.map(({ message, contents }) => {
    const written = contents.filter((content) => content !== null && content !== undefined);
    if (contents.length === 1) return message;
    return { ...message, content: written.length === 0 ? null : joinContents(written) };
  });
}

/** Replaces ids of calls that are not nine letters or digits. An id has the same replacement in every request. */
function withShortIds(messages: Messages, note: NoteAdaptation): Messages {
  const ids = new ShortIds();
  const short = (id: unknown, place: string): unknown => {
    if (typeof id !== "string") return id;
    const fitting = ids.of(id);
    if (fitting !== id) note("short-call-id", place);
    return fitting;
  };
  return changed(messages, (message, at) => {
    const { tool_calls: calls, tool_call_id: answered } = message;
    if (typeof answered === "string")
      return { ...message, tool_call_id: short(answered, `messages[${at}].tool_call_id`) };
    if (!Array.isArray(calls)) return message;
    return {
      ...message,
      tool_calls: calls.map((call: unknown, index) =>
        isObject(call) ? { ...call, id: short(call["id"], `messages[${at}].tool_calls[${index}].id`) } : call,
      ),
    };
  });
}

/** Puts a short message of the assistant's between the result of a tool and a user's message. */
function withAnswerAfterTool(messages: Messages, note: NoteAdaptation): Messages {
  const fitted: JsonObject[] = [];
  for (const [at, message] of messages.entries()) {
    if (message["role"] === "user" && fitted.at(-1)?.["role"] === "tool") {
      note("answer-after-tool", `messages[${at}]`);
      fitted.push({ role: "assistant", content: "OK." });
    }
    fitted.push(message);
  }
  return fitted.length === messages.length ? messages : fitted;
}

/** The list with each message changed; the same list where no message changes. */
function changed(messages: Messages, change: (message: JsonObject, at: number) => JsonObject): Messages {
  const fitted = messages.map(change);
  return fitted.some((message, at) => message !== messages[at]) ? fitted : messages;
}
