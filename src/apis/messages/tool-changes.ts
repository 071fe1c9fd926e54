import { isObject } from "../../core/json.ts";
import { Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { RawMessage, RawTool } from "./request-shapes.ts";

/** What a conversation says of its tools, beside the list that the request has. */
export interface ToolChanges {
  /** By name: whether the tool was made available, or withdrawn; the last word counts. */
  readonly available: ReadonlyMap<string, boolean>;
  /** Tools that were defined on the way, with the paths of their definitions. */
  readonly defined: readonly { readonly tool: RawTool; readonly path: string }[];
}

/**
 * The results of a search for tools name those that are now there, and so do additions; removals take them away.
 * Source: https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool, and the types of Anthropic's SDK 1.12.0.
 */
export function* toolChanges(messages: readonly RawMessage[]): Steps<ToolChanges> {
  const available = new Map<string, boolean>();
  const defined: { readonly tool: RawTool; readonly path: string }[] = [];
  const look = (content: unknown): void => {
    if (isObject(content)) return look(content["tool_references"] ?? content["content"]);
    if (!Array.isArray(content)) return;
    for (const block of content) {
      if (!isObject(block)) continue;
      if (block["type"] === "tool_reference" && typeof block["tool_name"] === "string")
        available.set(block["tool_name"], true);
      else if (block["type"] === "tool_result" || block["type"] === "tool_search_tool_result") look(block["content"]);
    }
  };
  const pace = new Pace();
  for (const [at, { content }] of messages.entries()) {
    if (pace.isOver(1 + (typeof content === "object" ? content.length : 0))) yield;
    look(content);
    if (typeof content !== "object") continue;
    for (const [place, block] of content.entries()) {
      if (block.type !== "tool_addition" && block.type !== "tool_removal") continue;
      const { name, definition } = block.tool;
      const named = definition?.name ?? name;
      if (named !== undefined) available.set(named, block.type === "tool_addition");
      if (definition) defined.push({ tool: definition, path: `messages.${at}.content.${place}.tool.definition` });
    }
  }
  return { available, defined };
}
