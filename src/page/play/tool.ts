import { isObject } from "../../wire/core/json.ts";

/** A tool as the user entered it. */
export interface PlayTool {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  /** A JSON schema. */
  readonly parameters: string;
  /** What it always gives back; "": a person answers. */
  readonly canned: string;
}

/** A tool in the form that requests have. */
export interface PlayToolDefinition {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description?: string; readonly parameters?: unknown };
}

/**
 * What a pasted text says of a tool: the whole definition in OpenAI's form, the function alone, Anthropic's form, or only the schema of its
 * parameters (whose `title` then names it). undefined: it is no JSON object.
 */
export function toolIn(text: string): Partial<Omit<PlayTool, "id">> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const tool = isObject(value["function"]) ? value["function"] : value;
  const schema = tool["parameters"] ?? tool["input_schema"];
  const isSchema = typeof tool["name"] !== "string";
  const name = isSchema ? tool["title"] : tool["name"];
  const description = tool["description"];
  return {
    ...(typeof name === "string" && { name }),
    ...(typeof description === "string" && { description }),
    parameters: isSchema ? pretty(tool) : isObject(schema) ? pretty(schema) : "",
  };
}

/** Returns the definition for a request. Throws an error for people if they must correct something. */
export function definitionOf({ name, description, parameters }: PlayTool): PlayToolDefinition {
  if (name.trim() === "") throw new Error("a tool has no name");
  let schema: unknown;
  if (parameters.trim() !== "") {
    try {
      schema = JSON.parse(parameters);
    } catch {
      throw new Error(`the parameters of the tool ${name} are no valid JSON`);
    }
  }
  return {
    type: "function",
    function: {
      name: name.trim(),
      ...(description.trim() !== "" && { description: description.trim() }),
      ...(schema !== undefined && { parameters: schema }),
    },
  };
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
