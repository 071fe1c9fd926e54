import { invalidRequest } from "../../core/failure.ts";
import type { Tool, ToolChoice } from "../../core/message.ts";
import { qualifiedName } from "../../core/qualified-name.ts";
import { invalidType, unsupportedEnumValue, unsupportedValue } from "../request/refusals.ts";
import { valuePhrase } from "../request/issue-failure.ts";
import { RawMembers } from "./raw-members.ts";
import type { ReadTools } from "./read-tools.ts";

/**
 * The choice of tools, held against those that there are. A tool that the API's server would run cannot be forced: nobody runs it.
 * `passesOn`: another server judges that. Throws `FailureError`.
 */
export function readToolChoice(
  value: unknown,
  { tools, hosted }: Pick<ReadTools, "tools" | "hosted">,
  passesOn: boolean,
): ToolChoice | undefined {
  if (typeof value === "string") {
    if (value !== "none" && value !== "auto" && value !== "required") {
      throw unsupportedEnumValue("tool_choice", value, ["none", "auto", "required"]);
    }
    if (value !== "required") return tools.length === 0 ? undefined : { type: value };
    if (tools.length === 0 && hosted.length === 0) {
      throw invalidRequest("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice");
    }
    if (tools.length === 0 && !passesOn) throw unsupportedValue("tool_choice", "required");
    return tools.length === 0 ? undefined : { type: value };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidType("tool_choice", "one of a string or object", valuePhrase(value));
  }
  const choice = new RawMembers(value, "tool_choice");
  const type = choice.string("type");
  if (type === "function" || type === "custom") return { type: "named", name: nameOf(choice, tools) };
  if (type !== "allowed_tools") {
    if (passesOn) return undefined;
    throw unsupportedValue("tool_choice", type);
  }
  const mode = choice.word("mode", ["auto", "required"]);
  const allowed = choice.list("tools").filter((tool) => isRunByClient(tool.string("type")));
  if (allowed.length === 0) {
    if (mode === "required" && !passesOn) throw unsupportedValue("tool_choice", "allowed_tools");
    return { type: "none" };
  }
  return { type: "allowed", mode, names: allowed.map((tool) => nameOf(tool, tools)) };
}

function isRunByClient(type: string): boolean {
  return type === "function" || type === "custom";
}

function nameOf(choice: RawMembers, tools: readonly Tool[]): string {
  const own = choice.string("name");
  const namespace = choice.optionalString("namespace");
  const name = namespace === undefined ? own : qualifiedName(namespace, own);
  if (tools.some((tool) => tool.name === name)) return name;
  throw invalidRequest(`Tool choice '${own}' not found in 'tools' parameter.`, choice.at("name"));
}
