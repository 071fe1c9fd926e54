import type { CallToolResult, Tool } from "@modelcontextprotocol/client";
import type { HostedContents, HostedFunction, HostedServer, FunctionFilter } from "../../../wire/core/hosted-tool.ts";
import type { ContentPart, JsonSchema } from "../../../wire/core/message.ts";
import { OutputBudget } from "../executor.ts";

/** The images that models are shown; others are named. */
const imageTypes = /^image\/(?:png|jpeg|gif|webp)$/i;

/** Returns the contents of a result: texts, images as data URLs, and a text for what is neither. `maxOutput`: of all, in characters. */
export function contentsOf({ content, structuredContent, isError }: CallToolResult, maxOutput: number): HostedContents {
  const budget = new OutputBudget(maxOutput);
  const contents: ContentPart[] = [];
  const add = (text: string): void => {
    if (!budget.isSpent) contents.push({ type: "text", text: budget.text(text) });
  };
  for (const part of content ?? []) {
    switch (part.type) {
      case "text":
        add(part.text);
        break;
      case "image":
        if (imageTypes.test(part.mimeType) && budget.takes(part.data.length))
          contents.push({ type: "image", url: `data:${part.mimeType};base64,${part.data}` });
        else add(`[An image (${part.mimeType.slice(0, 100)}) was left out.]`);
        break;
      case "audio":
        add(`[A recording (${part.mimeType.slice(0, 100)}) was left out.]`);
        break;
      case "resource_link":
        add(`${part.title ?? part.name}: ${part.uri}`);
        break;
      case "resource": {
        const { resource } = part;
        if ("text" in resource) add(resource.text);
        else if (imageTypes.test(resource.mimeType ?? "") && budget.takes(resource.blob.length))
          contents.push({ type: "image", url: `data:${resource.mimeType};base64,${resource.blob}` });
        else add(`[The file ${resource.uri.slice(0, 500)} was left out.]`);
      }
    }
  }
  // A server that sends it should send it as a text, too.
  if (contents.length === 0 && structuredContent !== undefined) add(JSON.stringify(structuredContent));
  return { kind: "contents", contents, isError: isError === true };
}

/** Returns a function of a server as a model sees it. */
export function functionOf({ name, title, description, inputSchema, annotations }: Tool): HostedFunction {
  const about = description ?? title ?? annotations?.title;
  return {
    name,
    ...(about !== undefined && { description: about }),
    parameters: inputSchema as JsonSchema,
    ...(annotations?.readOnlyHint !== undefined && { readOnly: annotations.readOnlyHint }),
    ...(annotations && { annotations: { ...annotations } }),
  };
}

/** Whether the client allows a function of a server. */
export function isAllowedFunction(
  each: HostedFunction,
  { allowed, excluded = [] }: Pick<HostedServer, "allowed" | "excluded">,
): boolean {
  return !excluded.includes(each.name) && (allowed === undefined || isIn(each, allowed));
}

function isIn({ name, readOnly }: HostedFunction, { names, readOnly: onlyReading }: FunctionFilter): boolean {
  return (names === undefined || names.includes(name)) && (onlyReading !== true || readOnly === true);
}
