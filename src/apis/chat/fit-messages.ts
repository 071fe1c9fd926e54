import { argumentsOfInput } from "../../core/custom-tool.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { ShortIds } from "../../core/message.ts";
import { isInstruction, placeSystemMessages, withPlainText } from "../adapt/place-system-messages.ts";
import type { NoteAdaptation, ServerProfile } from "../adapt/server-profile.ts";

type Messages = readonly JsonObject[];

/**
 * Adapts the messages of a chat request to what a server with this profile accepts. Each adaptation is a pure function below; one that
 * changes nothing returns the same list. `note` is called for each change.
 */
export function fitMessages(messages: Messages, profile: ServerProfile, note: NoteAdaptation): Messages {
  let fitted = messages;
  const { instructionRole = "system" } = profile;
  if (instructionRole !== "any") fitted = withInstructionRole(fitted, instructionRole, note);
  if (profile.systemMessages !== "anywhere") fitted = placeSystemMessages(fitted, note);
  if (profile.customTools !== true) fitted = withoutCustomCalls(fitted, note);
  if (profile.toolImages !== true) fitted = withoutToolImages(fitted, note);
  if (profile.reasoningHistory === false) fitted = withoutReasoning(fitted, note);
  if (profile.callIds === "nine") fitted = withShortIds(fitted, note);
  if (profile.userAfterTool === false) fitted = withAnswerAfterTool(fitted, note);
  return fitted;
}

/** Gives every instruction this role. */
function withInstructionRole(messages: Messages, role: "system" | "developer", note: NoteAdaptation): Messages {
  return changed(messages, (message) => {
    if (!isInstruction(message) || message["role"] === role) return message;
    note("instruction-role");
    return { ...message, role };
  });
}

/** Writes earlier calls of custom tools as calls of the functions that represent them. */
function withoutCustomCalls(messages: Messages, note: NoteAdaptation): Messages {
  return changed(messages, (message) => {
    const calls = message["tool_calls"];
    if (!Array.isArray(calls) || !calls.some(isCustom)) return message;
    return {
      ...message,
      tool_calls: calls.map((call: unknown) => {
        if (!isCustom(call)) return call;
        note("custom-tool");
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
  for (const message of messages) {
    if (message["role"] === "tool") {
      const images = imagesOf(message);
      fitted.push(images.length === 0 ? message : withoutImages(message));
      for (const image of images) {
        note("tool-image");
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
  return changed(messages, (message) => {
    if (message["reasoning_content"] === undefined && message["reasoning"] === undefined) return message;
    note("reasoning-history");
    const { reasoning_content: _, reasoning: __, ...others } = message;
    return others;
  });
}

/** Replaces ids of calls that are not nine letters or digits. An id has the same replacement in every request. */
function withShortIds(messages: Messages, note: NoteAdaptation): Messages {
  const ids = new ShortIds();
  const short = (id: unknown): unknown => {
    if (typeof id !== "string") return id;
    const fitting = ids.of(id);
    if (fitting !== id) note("short-call-id");
    return fitting;
  };
  return changed(messages, (message) => {
    const { tool_calls: calls, tool_call_id: answered } = message;
    if (typeof answered === "string") return { ...message, tool_call_id: short(answered) };
    if (!Array.isArray(calls)) return message;
    return {
      ...message,
      tool_calls: calls.map((call: unknown) => (isObject(call) ? { ...call, id: short(call["id"]) } : call)),
    };
  });
}

/** Puts a short message of the assistant's between the result of a tool and a user's message. */
function withAnswerAfterTool(messages: Messages, note: NoteAdaptation): Messages {
  const fitted: JsonObject[] = [];
  for (const message of messages) {
    if (message["role"] === "user" && fitted.at(-1)?.["role"] === "tool") {
      note("answer-after-tool");
      fitted.push({ role: "assistant", content: "OK." });
    }
    fitted.push(message);
  }
  return fitted.length === messages.length ? messages : fitted;
}

/** The list with each message changed; the same list where no message changes. */
function changed(messages: Messages, change: (message: JsonObject) => JsonObject): Messages {
  const fitted = messages.map(change);
  return fitted.some((message, at) => message !== messages[at]) ? fitted : messages;
}
