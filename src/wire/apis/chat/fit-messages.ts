import { argumentsOfInput } from "../../core/custom-tool.ts";
import { isObject, objectIn } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { ShortIds } from "../../core/message.ts";
import type { Adaptation, AdaptationContext } from "../adapt/adaptations.ts";
import { hasMarks } from "../adapt/cache-marks.ts";
import {
  isInstruction,
  joinContents,
  joinSystemMessages,
  partsOf,
  systemMessagesAsUser,
  withPlainText,
} from "../adapt/place-system-messages.ts";
import { callStandIns, detailsStandIn } from "../adapt/call-stand-ins.ts";
import { type NoteAdaptation, type RequestBody, type ServerProfile, stateMembers } from "../adapt/server-profile.ts";

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
  { name: "earlier-arguments", isNeeded: ({ anyArguments }) => anyArguments !== true, adapt: withArgumentObjects },
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
  { name: "state-member", isNeeded: ({ states }) => states !== undefined, adapt: withoutRefusedStates },
  { name: "state-stand-in", isNeeded: ({ stateDemand }) => stateDemand !== undefined, adapt: withDemandedState },
  {
    name: "reasoning-member",
    isNeeded: ({ reasoningMember, reasoningHistory }) => reasoningMember !== undefined && reasoningHistory !== false,
    adapt: withReasoningMember,
  },
  {
    name: "reasoning-demand",
    isNeeded: ({ reasoningDemand, reasoningMember }) => reasoningDemand !== undefined && reasoningMember !== "content",
    adapt: withDemandedReasoning,
  },
  { name: "repeated-role", isNeeded: ({ repeatedRoles }) => repeatedRoles === false, adapt: withoutRepeatedRoles },
  { name: "short-call-id", isNeeded: ({ callIds }) => callIds === "nine", adapt: withShortIds },
  { name: "answer-after-tool", isNeeded: ({ userAfterTool }) => userAfterTool === false, adapt: withAnswerAfterTool },
];

/** The adaptations of the messages of a chat request, in the order in which they are applied. */
export const messageAdaptations: readonly Adaptation[] = [
  ...adaptations.map(({ name, isNeeded, adapt }) => ({
    name,
    isNeeded,
    adapt: (body: RequestBody, { note, profile }: AdaptationContext) =>
      withMessages(body, (messages) => adapt(messages, note, profile)),
  })),
  {
    // The last one, as others join contents.
    name: "text-content",
    isNeeded: () => true,
    adapt(body, { note, profile, request }) {
      // A client of this API has its lists for a reason, such as a mark of a cache.
      if (profile.contentParts === true && request.passthrough?.dialect === "chat") return body;
      // Texts have been written as lists, so that a text has the same form when its mark has moved on.
      if (profile.cacheMarks === true && profile.contentParts !== false && hasMarks(request)) return body;
      return withMessages(body, (messages) => withTextContents(messages, note, profile));
    },
  },
];

function withMessages(body: RequestBody, adapt: (messages: Messages) => Messages): RequestBody {
  const { messages } = body;
  if (!Array.isArray(messages)) return body;
  const adapted = adapt(messages as Messages);
  return adapted === messages ? body : { ...body, messages: adapted };
}

/**
 * Writes a list of texts as one string: many servers take nothing else, and the prompt is the same. A message has the same form in every
 * turn, whether its client sends a string or a list. Lists with further members, such as `cache_control`, stay as they are, unless the
 * server refuses them.
 */
function withTextContents(messages: Messages, note: NoteAdaptation, { contentParts }: ServerProfile): Messages {
  return changed(messages, (message, at) => {
    const { content } = message;
    // llama-cpp-python 0.3.36 refuses null next to calls.
    if (content === null && contentParts === false && message["role"] === "assistant")
      return { ...message, content: "" };
    if (!Array.isArray(content)) return message;
    const hasMore = content.some((part) => isObject(part) && Object.keys(part).length > 2);
    if (hasMore && contentParts !== false) return message;
    const text = withPlainText(content);
    if (typeof text !== "string") return message;
    if (hasMore) note("text-content", `messages[${at}].content`);
    return { ...message, content: text };
  });
}

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
 * Puts arguments of earlier calls that are not the JSON of an object, such as those of a call that a limit of tokens has cut, into one.
 * llama.cpp (common/chat.cpp: "Failed to parse tool call arguments as JSON"), Ollama and transformers answer every later request of such a
 * conversation with an error.
 */
function withArgumentObjects(messages: Messages, note: NoteAdaptation): Messages {
  return changed(messages, (message, at) => {
    const calls = message["tool_calls"];
    if (!Array.isArray(calls)) return message;
    const fitting = calls.map((call: unknown, index): unknown => {
      const called = isObject(call) ? call["function"] : undefined;
      const text = isObject(called) ? called["arguments"] : undefined;
      if (typeof text !== "string" || objectIn(text)) return call;
      const isEmpty = text.trim() === "";
      if (!isEmpty) note("earlier-arguments", `messages[${at}].tool_calls[${index}].function.arguments`);
      const object = isEmpty ? {} : { INVALID_JSON: text };
      return { ...(call as JsonObject), function: { ...(called as JsonObject), arguments: JSON.stringify(object) } };
    });
    return fitting.every((call, index) => call === calls[index]) ? message : { ...message, tool_calls: fitting };
  });
}

/**
 * Moves the images and files that tools have returned into a user's message after the results of the turn: the next one, or a new one. A
 * text before each image names the call that returned it. Chat takes only texts in results of tools.
 * Source: https://platform.openai.com/docs/api-reference/chat/create, `messages`, Tool message.
 */
function withoutToolImages(messages: Messages, note: NoteAdaptation): Messages {
  if (!messages.some((message) => message["role"] === "tool" && mediaOf(message).length > 0)) return messages;
  const fitted: JsonObject[] = [];
  let moved: unknown[] = [];
  for (const [at, message] of messages.entries()) {
    if (message["role"] === "tool") {
      const media = mediaOf(message);
      fitted.push(media.length === 0 ? message : withoutMedia(message));
      for (const part of media) {
        note("tool-image", `messages[${at}].content`);
        const kind = isImage(part) ? "Image" : "File";
        moved.push({
          type: "text",
          text: `${kind} in the result of the tool call ${String(message["tool_call_id"])}:`,
        });
        moved.push(part);
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

function mediaOf({ content }: JsonObject): readonly unknown[] {
  return Array.isArray(content) ? content.filter(isMedia) : [];
}

function isImage(part: unknown): boolean {
  return isObject(part) && part["type"] === "image_url";
}

function isMedia(part: unknown): boolean {
  return isObject(part) && (isImage(part) || part["type"] === "file" || part["type"] === "input_audio");
}

function withoutMedia(message: JsonObject): JsonObject {
  const parts = message["content"] as readonly unknown[];
  const content = parts.filter((part) => !isMedia(part));
  const kind = parts.every(isImage) ? "image" : "file";
  const left =
    content.length > 0 ? withPlainText(content) : `The result is the ${kind} in the next message of the user.`;
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

/** Leaves out the states of earlier turns in members that the server does not take. */
function withoutRefusedStates(
  messages: Messages,
  note: NoteAdaptation,
  { states = [], stateDemand }: ServerProfile,
): Messages {
  const refused = stateMembers.filter((name) => !states.includes(name) && name !== stateDemand);
  const fit = (owner: JsonObject, place: string): JsonObject => {
    const found = refused.filter((name) => owner[name] !== undefined);
    for (const name of found) note("state-member", `${place}.${name}`);
    if (found.length === 0) return owner;
    return Object.fromEntries(Object.entries(owner).filter(([name]) => !(found as string[]).includes(name)));
  };
  return changed(messages, (message, at) => {
    const { tool_calls: calls, ...others } = message;
    const place = `messages[${at}]`;
    const fitted = fit(others, place);
    if (!Array.isArray(calls)) return fitted === others ? message : fitted;
    const fittedCalls = calls.map((call: unknown, index) =>
      isObject(call) ? fit(call, `${place}.tool_calls[${index}]`) : call,
    );
    const isSame = fitted === others && fittedCalls.every((call, index) => call === calls[index]);
    return isSame ? message : { ...fitted, tool_calls: fittedCalls };
  });
}

/**
 * Adds a documented value to messages with calls that lack the state of the first call: the turn was another model's, or the client has dropped
 * it. Later calls of a message have none. Earlier turns need no state, but have the same form in every request.
 */
function withDemandedState(messages: Messages, note: NoteAdaptation, { stateDemand }: ServerProfile): Messages {
  if (stateDemand === undefined) return messages;
  return changed(messages, (message, at) => {
    const { tool_calls: calls, reasoning_details: sent } = message;
    const first: unknown = Array.isArray(calls) ? calls[0] : undefined;
    if (!Array.isArray(calls) || !isObject(first)) return message;
    if (stateDemand === "reasoning_details") {
      const details: readonly unknown[] = Array.isArray(sent) ? sent : [];
      if (details.some((entry) => isObject(entry) && entry["type"] === "reasoning.encrypted")) return message;
      note("state-stand-in", `messages[${at}].reasoning_details`);
      return { ...message, reasoning_details: [...details, detailsStandIn(first["id"], details.length)] };
    }
    if (isObject(first[stateDemand])) return message;
    note("state-stand-in", `messages[${at}].tool_calls[0].${stateDemand}`);
    return { ...message, tool_calls: [{ ...first, [stateDemand]: callStandIns[stateDemand] }, ...calls.slice(1)] };
  });
}

/** Gives back the reasoning of earlier turns under the name that the server expects. */
function withReasoningMember(
  messages: Messages,
  note: NoteAdaptation,
  { reasoningMember = "reasoning_content" }: ServerProfile,
): Messages {
  if (reasoningMember === "content") return withReasoningChunks(messages, note);
  const other = reasoningMember === "reasoning" ? "reasoning_content" : "reasoning";
  return changed(messages, (message, at) => {
    const { [other]: reasoning, ...others } = message;
    if (reasoning === undefined) return message;
    note("reasoning-member", `messages[${at}].${other}`);
    return { ...others, [reasoningMember]: others[reasoningMember] ?? reasoning };
  });
}

/**
 * Writes the reasoning of earlier turns as a part of the content. Source: https://docs.mistral.ai/studio-api/conversations/reasoning,
 * "Handling thinking chunks".
 */
function withReasoningChunks(messages: Messages, note: NoteAdaptation): Messages {
  return changed(messages, (message, at) => {
    const { reasoning_content: one, reasoning: other, ...others } = message;
    const member = one === undefined ? "reasoning" : "reasoning_content";
    const text = one ?? other;
    if (one === undefined && other === undefined) return message;
    note("reasoning-member", `messages[${at}].${member}`);
    if (typeof text !== "string" || text === "") return others;
    const chunk = { type: "thinking", thinking: [{ type: "text", text }] };
    return { ...others, content: [chunk, ...partsOf(others["content"])] };
  });
}

/** Adds empty reasoning to the messages that must have some: the turn was another model's, or the client has dropped it. */
function withDemandedReasoning(
  messages: Messages,
  note: NoteAdaptation,
  { reasoningDemand, reasoningMember = "reasoning_content" }: ServerProfile,
): Messages {
  return changed(messages, (message, at) => {
    const { role, tool_calls: calls, [reasoningMember]: reasoning } = message;
    const isDemanded = reasoningDemand === "all" || (Array.isArray(calls) && calls.length > 0);
    if (role !== "assistant" || !isDemanded || typeof reasoning === "string") return message;
    note("reasoning-demand", `messages[${at}].${reasoningMember}`);
    return { ...message, [reasoningMember]: "" };
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
