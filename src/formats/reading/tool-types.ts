import type { JsonSchema, Tool } from "../../generation/message.ts";

/** The declared parameters of the tools of a request, for values that are written without types. */
export class ToolTypes {
  readonly #tools: ReadonlyMap<string, JsonSchema | undefined>;

  constructor(tools: readonly Tool[]) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool.parameters]));
  }

  schemaOf(name: string): JsonSchema | undefined {
    return this.#tools.get(name);
  }
}
