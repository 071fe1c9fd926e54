import { isObject } from "../core/json.ts";
import { parametersOf } from "../core/custom-tool.ts";
import type { JsonSchema, Tool } from "../core/message.ts";
import type { TemplateCapabilities } from "./capabilities.ts";
import type { UserText } from "./user-text.ts";

/** Tools in OpenAI's shape, as templates read them, the client's text marked. Templates know functions; a custom tool is shown as one. */
export function templateTools(tools: readonly Tool[], wants: TemplateCapabilities, user: UserText): unknown[] {
  return tools.map((tool) => {
    const { name, description } = tool;
    const parameters = parametersOf(tool);
    const described = wants.descriptions === "required";
    const shown = described ? withDescriptions(parameters ?? emptyParameters) : parameters;
    const text = described ? (description ?? "") : description;
    return {
      type: "function",
      function: user.mark({
        name,
        ...(text !== undefined && { description: text }),
        ...(shown !== undefined && { parameters: shown }),
      }),
    };
  });
}

const emptyParameters: JsonSchema = { type: "object", properties: {} };

/** Some templates (Command R+) concatenate each parameter's description, and fail if there is none. */
function withDescriptions(schema: JsonSchema): JsonSchema {
  if (!isObject(schema) || !isObject(schema["properties"])) return schema;
  const described = Object.entries(schema["properties"]).map(([name, property]) => {
    if (!isObject(property)) return [name, property] as const;
    const inner = withDescriptions(property) as object;
    return [name, "description" in inner ? inner : { ...inner, description: "" }] as const;
  });
  return { ...schema, properties: Object.fromEntries(described) };
}
