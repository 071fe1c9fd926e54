import { withMark } from "../request/cache-mark.ts";
import type { JsonSchema, Tool } from "../../core/message.ts";
import type { AnthropicTool } from "./request-schema.ts";

/*
 * Anthropic's tools that the client runs. Anthropic's models know their schemas; any other model gets them as functions. Their calls and
 * results are blocks as of any tool. Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/bash-tool, …/text-editor-tool,
 * …/memory-tool, …/computer-use-tool, and the types of @anthropic-ai/sdk 1.12.0.
 */

interface Declaration {
  readonly description: string;
  readonly parameters: JsonSchema;
}

const text = { type: "string" };
const integer = { type: "integer" };
const point = { type: "array", items: integer, minItems: 2, maxItems: 2 };

function object(properties: Readonly<Record<string, object>>, ...required: string[]): JsonSchema {
  return { type: "object", properties, required };
}

const bash: Declaration = {
  description: "Runs a command in a bash session that lasts for the whole conversation, and returns its output.",
  parameters: object({
    command: { ...text, description: "The command. Required, unless the session is restarted." },
    restart: { type: "boolean", description: "Restarts the session." },
  }),
};

const path = { ...text, description: "The path of a file or a directory." };
const viewRange = { type: "array", items: integer, description: "view: the first and the last line; -1 is the end." };

function editor(...more: string[]): Declaration {
  return {
    description: "Shows, creates and changes text files.",
    parameters: object(
      {
        command: { ...text, enum: ["view", "create", "str_replace", "insert", ...more] },
        path,
        file_text: { ...text, description: "create: the content of the file." },
        old_str: { ...text, description: "str_replace: the text to replace, which must be in the file exactly once." },
        new_str: {
          ...text,
          description: "str_replace: the text that takes its place; insert, in older versions: the text.",
        },
        insert_line: {
          ...integer,
          description: "insert: the line after which the text is inserted; 0 is the beginning.",
        },
        insert_text: { ...text, description: "insert: the text." },
        view_range: viewRange,
      },
      "command",
      "path",
    ),
  };
}

const memory: Declaration = {
  description: "Shows and changes files in the directory /memories, which keeps what later conversations need to know.",
  parameters: object(
    {
      command: { ...text, enum: ["view", "create", "str_replace", "insert", "delete", "rename"] },
      path: { ...text, description: "The path, which begins with /memories: all commands but rename." },
      view_range: viewRange,
      file_text: { ...text, description: "create: the content of the file." },
      old_str: { ...text, description: "str_replace: the text to replace." },
      new_str: { ...text, description: "str_replace: the text that takes its place." },
      insert_line: { ...integer, description: "insert: the line after which the text is inserted." },
      insert_text: { ...text, description: "insert: the text." },
      old_path: { ...text, description: "rename: the path." },
      new_path: { ...text, description: "rename: the new path." },
    },
    "command",
  ),
};

const firstActions = ["key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click"];
const lastActions = ["double_click", "screenshot", "cursor_position"];
const actionsOf2025 = ["left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "triple_click"];

function computer(declared: AnthropicTool, actions: readonly string[]): Declaration {
  const { display_width_px: width, display_height_px: height } = declared;
  const size =
    typeof width === "number" && typeof height === "number" ? ` Its screen has ${width}×${height} pixels.` : "";
  return {
    description: `Controls the mouse and the keyboard of a computer, and takes screenshots.${size}`,
    parameters: object(
      {
        action: { ...text, enum: [...firstActions, ...lastActions, ...actions] },
        coordinate: { ...point, description: "x and y, in pixels from the left and from the top." },
        start_coordinate: { ...point, description: "left_click_drag: where it begins." },
        text: {
          ...text,
          description: "type: the text; key and hold_key: the keys; clicks and scroll: a key that is held.",
        },
        scroll_direction: { ...text, enum: ["up", "down", "left", "right"] },
        scroll_amount: { ...integer, description: "scroll: the number of steps." },
        duration: { type: "number", description: "hold_key and wait: in seconds." },
        region: { type: "array", items: integer, description: "zoom: x and y of two corners." },
      },
      "action",
    ),
  };
}

function declarationOf(declared: AnthropicTool): Declaration | undefined {
  switch (declared.type) {
    case "bash_20241022":
    case "bash_20250124":
      return bash;
    case "text_editor_20241022":
    case "text_editor_20250124":
      return editor("undo_edit");
    case "text_editor_20250429":
    case "text_editor_20250728":
      return editor();
    case "memory_20250818":
      return memory;
    case "computer_20241022":
      return computer(declared, []);
    case "computer_20250124":
      return computer(declared, actionsOf2025);
    case "computer_20251124":
      return computer(declared, [...actionsOf2025, "zoom"]);
    default:
      return undefined;
  }
}

/** Returns one of Anthropic's tools that the client runs as a function; undefined for any other tool. `path`: of its declaration. */
export function readClientTool(declared: AnthropicTool, path: string): (Tool & { readonly name: string }) | undefined {
  const { name } = declared;
  const declaration = declarationOf(declared);
  return declaration && name !== undefined ? withMark({ name, ...declaration, path }, declared) : undefined;
}
