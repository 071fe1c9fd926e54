import * as z from "zod";
import type { HostedServer, HostedTool, HostedToolKind, HostedToolOptions } from "../../core/hosted-tool.ts";
import { invalidRequest } from "../../core/failure.ts";
import { given, type JsonObject } from "../../core/json.ts";
import { parsed, typed } from "./request-schema.ts";

const text = z.string().nullish();
const texts = z.array(z.string()).nullish();

/** The members of `web_search` and `web_search_preview` that executors read. Source of all schemas here: OpenAI's OpenAPI document, `Tool`. */
const webSearchTool = z.object({
  filters: z.object({ allowed_domains: texts, blocked_domains: texts }).nullish(),
  search_context_size: z.enum(["low", "medium", "high"]).nullish(),
  user_location: z.object({ city: text, region: text, country: text, timezone: text }).nullish(),
});

const fileSearchTool = z.object({
  vector_store_ids: z.array(z.string()),
  max_num_results: z.int().nullish(),
  filters: z.record(z.string(), z.unknown()).nullish(),
});

const filter = z.object({ tool_names: texts, read_only: z.boolean().nullish() });

const mcpTool = z.object({
  server_label: z.string(),
  server_url: text,
  connector_id: text,
  server_description: text,
  authorization: text,
  headers: z.record(z.string(), z.string()).nullish(),
  allowed_tools: z.union([z.array(z.string()), filter]).nullish(),
  require_approval: z
    .union([z.enum(["always", "never"]), z.object({ always: filter.nullish(), never: filter.nullish() })])
    .nullish(),
});

/** The kinds of the types, without the date of their version. */
const kinds: Readonly<Record<string, HostedToolKind>> = {
  web_search: "web_search",
  web_search_preview: "web_search",
  mcp: "mcp",
  code_interpreter: "code_interpreter",
  file_search: "file_search",
  image_generation: "image_generation",
};

/**
 * Reads a tool that OpenAI's servers run. `forwards`: a server of this API judges the members, so that those of another form are left out
 * here. Throws `FailureError` in OpenAI's words.
 */
export function readHostedTool(declaration: JsonObject, path: string, forwards: boolean): HostedTool {
  const { type } = parsed(typed, declaration, path);
  const kind = kinds[type.replace(/_\d{4}_\d\d_\d\d$/, "")] ?? "other";
  const checked = <Schema extends z.ZodType>(schema: Schema): z.output<Schema> | undefined =>
    forwards ? schema.safeParse(declaration).data : parsed(schema, declaration, path);
  const members = { type, kind, path, declaration };
  switch (kind) {
    case "web_search":
      return { ...members, name: type, options: webSearchOptions(checked(webSearchTool)) };
    case "file_search": {
      const { vector_store_ids: stores, max_num_results: maxResults, filters } = checked(fileSearchTool) ?? {};
      return { ...members, name: type, options: given({ stores, maxResults, filters }) };
    }
    case "mcp": {
      const tool = checked(mcpTool);
      if (!tool) return { ...members, name: type, options: {} };
      if (!forwards && (tool.server_url ?? tool.connector_id ?? null) === null)
        throw invalidRequest(
          "One of 'server_url' or 'connector_id' must be provided.",
          path,
          "missing_required_parameter",
        );
      return { ...members, name: tool.server_label, options: { server: hostedServer(tool) } };
    }
    default:
      return { ...members, name: type, options: {} };
  }
}

function webSearchOptions(tool: z.infer<typeof webSearchTool> = {}): HostedToolOptions {
  const { filters, search_context_size: contextSize, user_location: location } = tool;
  const { allowed_domains: allowedDomains, blocked_domains: blockedDomains } = filters ?? {};
  return {
    ...given({ allowedDomains, blockedDomains, contextSize }),
    ...(location && { userLocation: given(location) }),
  };
}

function hostedServer(tool: z.infer<typeof mcpTool>): HostedServer {
  const { server_label: label, server_url: url, connector_id: connector, server_description: description } = tool;
  const { authorization, headers, allowed_tools: allowed, require_approval: approval = "always" } = tool;
  return {
    label,
    ...given({ url, connector, description, authorization, headers }),
    ...(allowed && { allowed: functionFilter(Array.isArray(allowed) ? { tool_names: allowed } : allowed) }),
    ...(approval !== "never" && { approval: approvalOf(approval) }),
  };
}

/** Without `require_approval`, and with null, all calls need approval. */
function approvalOf(
  approval: Exclude<z.infer<typeof mcpTool>["require_approval"], "never" | undefined>,
): Exclude<HostedServer["approval"], undefined> {
  if (approval === null || approval === "always") return true;
  const { always, never } = approval;
  return { ...(always && { always: functionFilter(always) }), ...(never && { never: functionFilter(never) }) };
}

function functionFilter({ tool_names: names, read_only: readOnly }: z.infer<typeof filter>): {
  readonly names?: readonly string[];
  readonly readOnly?: boolean;
} {
  return given({ names, readOnly });
}
