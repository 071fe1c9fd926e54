import { isObject, type JsonObject } from "../../core/json.ts";
import type { Content, JsonSchema, Tool } from "../../core/message.ts";
import type { JsonValue } from "../json-text.ts";

/*
 * Tools of OpenAI that the client runs. OpenAI's models know their schemas; any other model gets them as functions, whose calls become the
 * items that OpenAI's clients run. Source: https://platform.openai.com/docs/guides/tools-shell, …/tools-local-shell, …/tools-apply-patch,
 * …/tools-computer-use, and the types of openai 7.57.
 */

export type ClientToolKind = "shell" | "local_shell" | "apply_patch" | "computer" | "computer_use_preview";

interface ClientTool {
  readonly description: string;
  readonly parameters: JsonSchema;
  /** The type of the item of a call. Its output has the same with `_output`. */
  readonly item: ClientCallType;
  /** Returns the members of a call's item that follow its status, from the arguments of the function. */
  readonly members: (args: JsonObject, callId: string) => { readonly [name: string]: JsonValue };
}

export type ClientCallType = "shell_call" | "local_shell_call" | "apply_patch_call" | "computer_call";

const milliseconds = { type: "integer", description: "How long it may run, in milliseconds." };
const strings = { type: "array", items: { type: "string" } };
const number = { type: "integer" };

const computerAction = {
  type: "object",
  properties: {
    type: {
      type: "string",
      enum: ["click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"],
    },
    x: { ...number, description: "In pixels from the left: click, double_click, move, scroll." },
    y: { ...number, description: "In pixels from the top." },
    button: { type: "string", enum: ["left", "right", "wheel", "back", "forward"], description: "Of a click." },
    scroll_x: { ...number, description: "How far to scroll to the right." },
    scroll_y: { ...number, description: "How far to scroll down." },
    keys: { ...strings, description: "Keys that are pressed together: keypress." },
    text: { type: "string", description: "What to type." },
    path: {
      type: "array",
      items: { type: "object", properties: { x: number, y: number }, required: ["x", "y"] },
      description: "The points of a drag.",
    },
  },
  required: ["type"],
};

export const clientTools: Readonly<Record<ClientToolKind, ClientTool>> = {
  shell: {
    description:
      "Runs shell commands on the computer of the user. Each command runs in a shell of its own; the result has their output and exit codes.",
    parameters: {
      type: "object",
      properties: {
        commands: { ...strings, description: "The commands." },
        timeout_ms: milliseconds,
        max_output_length: { ...number, description: "The number of characters of output to return." },
      },
      required: ["commands"],
    },
    item: "shell_call",
    members: (args, callId) => ({
      action: {
        commands: stringsIn(args["commands"] ?? args["command"]),
        max_output_length: integerIn(args["max_output_length"]),
        timeout_ms: integerIn(args["timeout_ms"]),
      },
      call_id: callId,
      environment: { type: "local" },
    }),
  },
  local_shell: {
    description: "Runs a program on the computer of the user, and returns its output.",
    parameters: {
      type: "object",
      properties: {
        command: { ...strings, description: 'The program and its arguments: ["bash", "-lc", "ls"].' },
        env: { type: "object", additionalProperties: { type: "string" }, description: "Environment variables." },
        timeout_ms: milliseconds,
        working_directory: { type: "string" },
        user: { type: "string", description: "The user who runs it." },
      },
      required: ["command"],
    },
    item: "local_shell_call",
    members: (args, callId) => ({
      action: {
        type: "exec",
        command: typeof args["command"] === "string" ? ["bash", "-lc", args["command"]] : stringsIn(args["command"]),
        env: Object.fromEntries(
          Object.entries(isObject(args["env"]) ? args["env"] : {}).map(([name, value]) => [name, String(value)]),
        ),
        timeout_ms: integerIn(args["timeout_ms"]),
        user: stringIn(args["user"]),
        working_directory: stringIn(args["working_directory"]),
      },
      call_id: callId,
    }),
  },
  apply_patch: {
    description: "Creates, changes or deletes a file in the workspace of the user.",
    parameters: {
      type: "object",
      properties: {
        type: { type: "string", enum: ["create_file", "update_file", "delete_file"] },
        path: { type: "string", description: "The path of the file, relative to the workspace." },
        diff: {
          type: "string",
          description:
            "create_file: every line of the file after a +. update_file: sections that begin with a line @@, whose lines begin with a space (unchanged), - (removed) or + (added). Not for delete_file.",
        },
      },
      required: ["type", "path"],
    },
    item: "apply_patch_call",
    members: (args, callId) => {
      const operation = isObject(args["operation"]) ? args["operation"] : args;
      const type = stringIn(operation["type"]) ?? "update_file";
      const diff = type === "delete_file" ? {} : { diff: stringIn(operation["diff"]) ?? "" };
      return { call_id: callId, operation: { type, ...diff, path: stringIn(operation["path"]) ?? "" } };
    },
  },
  computer: {
    description: "Controls the computer of the user: does the actions one after the other, and returns a screenshot.",
    parameters: {
      type: "object",
      properties: { actions: { type: "array", items: computerAction } },
      required: ["actions"],
    },
    item: "computer_call",
    members: (args, callId) => ({
      // They were read from JSON.
      actions: (Array.isArray(args["actions"]) ? args["actions"] : [args]).filter(isObject) as JsonValue,
      call_id: callId,
      pending_safety_checks: [],
    }),
  },
  computer_use_preview: {
    description: "Controls the computer of the user: does one action, and returns a screenshot.",
    parameters: computerAction,
    item: "computer_call",
    members: (args, callId) => ({
      action: args as JsonValue & object,
      call_id: callId,
      pending_safety_checks: [],
    }),
  },
};

export function isClientTool(kind: string): kind is ClientToolKind {
  return Object.hasOwn(clientTools, kind);
}

/** Returns a declared tool as a function; null if OpenAI would run it: a shell in a container. */
export function readClientTool(declared: JsonObject, path: string): Tool | null {
  const { type, environment, display_width: width, display_height: height } = declared;
  if (typeof type !== "string" || !isClientTool(type)) return null;
  if (isObject(environment) && environment["type"] !== "local") return null;
  const { description, parameters } = clientTools[type];
  const size =
    typeof width === "number" && typeof height === "number" ? ` Its screen has ${width}×${height} pixels.` : "";
  return { name: type, description: description + size, parameters, path };
}

/** Returns the members of a call's item that follow its status. `text`: the arguments as the model wrote them. */
export function clientCall(
  kind: ClientToolKind,
  callId: string,
  text: string,
): { readonly type: ClientCallType; readonly members: { readonly [name: string]: JsonValue } } {
  const { item, members } = clientTools[kind];
  return { type: item, members: members(argumentsIn(text), callId) };
}

/** Returns the function and its arguments that an item of a call means; null for any other item. */
export function calledClientTool(
  item: JsonObject,
): { readonly name: ClientToolKind; readonly arguments: string } | null {
  const { type, action, actions, operation } = item;
  switch (type) {
    case "shell_call":
      return { name: "shell", arguments: argumentsOf(action) };
    case "local_shell_call": {
      const { type: _, ...members } = isObject(action) ? action : {};
      return { name: "local_shell", arguments: argumentsOf(members) };
    }
    case "apply_patch_call":
      return { name: "apply_patch", arguments: argumentsOf(operation) };
    case "computer_call":
      return Array.isArray(actions)
        ? { name: "computer", arguments: argumentsOf({ actions }) }
        : { name: "computer_use_preview", arguments: argumentsOf(action) };
    default:
      return null;
  }
}

/** Returns the id of the call and what its tool returned, from an item of its output; null for any other item. */
export function clientToolResult(item: JsonObject): { readonly callId: unknown; readonly content: Content } | null {
  const { type, output, status, call_id: callId } = item;
  switch (type) {
    case "shell_call_output":
      return { callId, content: JSON.stringify(output ?? []) };
    case "local_shell_call_output":
      // openai 7.57 names the call `id`, and the guide `call_id`.
      return {
        callId: callId ?? item["id"],
        content: typeof output === "string" ? output : JSON.stringify(output ?? ""),
      };
    case "apply_patch_call_output":
      return { callId, content: [status, output].filter((text) => typeof text === "string" && text !== "").join(": ") };
    case "computer_call_output":
      return { callId, content: screenshot(output) };
    default:
      return null;
  }
}

function screenshot(output: unknown): Content {
  const { image_url: url, file_id: id } = isObject(output) ? output : {};
  if (typeof url === "string") return [{ type: "image", url }];
  if (typeof id === "string") return [{ type: "file", id }];
  return JSON.stringify(output ?? "");
}

/** The arguments of a call, without those that are null. */
function argumentsOf(value: unknown): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(isObject(value) ? value : {}).filter(([, member]) => member !== null)),
  );
}

function argumentsIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function stringsIn(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).filter((text) => typeof text === "string");
}

function stringIn(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function integerIn(value: unknown): number | null {
  return Number.isSafeInteger(value) ? Number(value) : null;
}
