import * as z from "zod";
import type {
  HostedFunction,
  HostedServer,
  HostedTool,
  HostedToolKind,
  HostedToolOptions,
} from "../../core/hosted-tool.ts";
import { given } from "../../core/json.ts";
import { messageIssueFailure, refusal } from "./request-issue.ts";
import type { AnthropicTool } from "./request-schema.ts";

const text = z.string().nullish();
const texts = z.array(z.string()).nullish();
const count = z.int().min(1).nullish();

/** The members of `web_search_…` and `web_fetch_…` that executors read. Source: the types of Anthropic's SDK, `WebSearchTool20250305` and later ones. */
const webTool = z.looseObject({
  max_uses: count,
  allowed_domains: texts,
  blocked_domains: texts,
  user_location: z.object({ city: text, region: text, country: text, timezone: text }).nullish(),
  max_content_tokens: count,
  citations: z.object({ enabled: z.boolean().nullish() }).nullish(),
});

const toolConfig = z.object({ enabled: z.boolean().optional() }).optional();

const mcpTools = z.array(
  z.looseObject({ name: z.string(), description: text, input_schema: z.record(z.string(), z.unknown()) }),
);

/** An MCP server as a tool. Source: betas `mcp-client-2025-11-20` and `mcp-client-2026-09-15` (`tools`), `BetaMCPToolset`. */
const mcpToolset = z.looseObject({
  mcp_server_name: z.string(),
  default_config: toolConfig,
  configs: z.record(z.string(), toolConfig).nullish(),
  tools: mcpTools.nullish(),
});

/** The functions of an MCP server as an earlier answer has listed them. Source: beta `mcp-client-2026-09-15`, `BetaMCPToolListingBlockParam`. */
const mcpToolListing = z.looseObject({ mcp_server_name: z.string(), tools: mcpTools });

/**
 * The servers that toolsets name. Source: `BetaRequestMCPServerURLDefinition`; `tool_configuration` is that of beta `mcp-client-2025-04-04`,
 * in which a server needs no toolset.
 */
const mcpServers = z.array(
  z.looseObject({
    name: z.string(),
    url: z.string(),
    authorization_token: text,
    tool_configuration: z.object({ enabled: z.boolean().nullish(), allowed_tools: texts }).nullish(),
  }),
);

type McpServer = z.infer<typeof mcpServers>[number];
type McpToolset = z.infer<typeof mcpToolset>;

const kinds: Readonly<Record<string, HostedToolKind>> = {
  web_search: "web_search",
  web_fetch: "web_fetch",
  code_execution: "code_interpreter",
  mcp_toolset: "mcp",
};

interface HostedToolOrigin {
  /** `mcp_servers` of the request. */
  readonly servers: unknown;
  /** The blocks of the conversation that list functions of MCP servers. */
  readonly listings: readonly unknown[];
  /** The client knows such blocks. */
  readonly knowsListings: boolean;
  /** A server of this API judges the members, so that those of another form are left out here. */
  readonly forwards: boolean;
}

/**
 * Reads the tools that Anthropic's servers run, and the MCP servers to which they connect. Throws `FailureError` in Anthropic's words.
 */
export function readHostedTools(
  tools: readonly { readonly tool: AnthropicTool; readonly path: string }[],
  { servers, listings, knowsListings, forwards }: HostedToolOrigin,
): HostedTool[] {
  const read = mcpServers.safeParse(servers ?? []);
  if (!read.success && !forwards) throw messageIssueFailure("mcp_servers", servers, read.error.issues);
  const named = new Map((read.data ?? []).map((server) => [server.name, server]));
  const hosted = tools.map(({ tool, path }) => hostedTool(tool, path, named, forwards));
  const inToolset = new Set(hosted.flatMap(({ kind, name }) => (kind === "mcp" ? [name] : [])));
  for (const [index, server] of (read.data ?? []).entries()) {
    if (inToolset.has(server.name) || server.tool_configuration?.enabled === false) continue;
    const options = { server: hostedServer(server) };
    const path = `mcp_servers.${index}`;
    hosted.push({ type: "mcp_toolset", kind: "mcp", name: server.name, options, path, declaration: server });
  }
  const listed = new Map(
    listings.flatMap((block) => {
      const { mcp_server_name: name, tools: functions } = mcpToolListing.safeParse(block).data ?? {};
      return name === undefined ? [] : [[name, functions] as const];
    }),
  );
  return hosted.map((tool) => {
    const { server } = tool.options;
    if (!server) return tool;
    const functions = server.listed ?? functionsOf(listed.get(server.label));
    const isListed = !knowsListings || functions !== undefined;
    return { ...tool, options: { server: { ...server, isListed, ...(functions && { listed: functions }) } } };
  });
}

function functionsOf(tools: z.infer<typeof mcpTools> | null | undefined): readonly HostedFunction[] | undefined {
  return tools?.map(({ name, description, input_schema: parameters }) => ({
    name,
    ...(typeof description === "string" && { description }),
    parameters,
  }));
}

function hostedTool(
  tool: AnthropicTool,
  path: string,
  servers: ReadonlyMap<string, McpServer>,
  forwards: boolean,
): HostedTool {
  const type = tool.type.replace(/_\d+$/, "");
  const kind = kinds[type] ?? "other";
  const checked = <Schema extends z.ZodType>(schema: Schema): z.output<Schema> | undefined => {
    const { data, error } = schema.safeParse(tool);
    if (error && !forwards) {
      const issues = error.issues.map((issue) => ({ ...issue, path: [tool.type, ...issue.path] }));
      throw messageIssueFailure(path, { [tool.type]: tool }, issues);
    }
    return data;
  };
  const members = { type, kind, path, declaration: { ...tool } };
  if (kind === "mcp") {
    const toolset = checked(mcpToolset);
    const label = toolset?.mcp_server_name ?? "";
    const server = servers.get(label);
    // Anthropic's words: a toolset of a server that `mcp_servers` does not list.
    if (!server && !forwards)
      throw refusal(`${path}.mcp_server_name`, `MCP server '${label}' not found in mcp_servers`);
    return { ...members, name: label, options: server ? { server: hostedServer(server, toolset) } : {} };
  }
  const web = kind === "other" ? undefined : checked(webTool);
  return { ...members, name: tool.name ?? type, options: web ? webOptions(web) : {} };
}

function webOptions(web: z.infer<typeof webTool>): HostedToolOptions {
  const { max_uses: maxUses, allowed_domains: allowedDomains, blocked_domains: blockedDomains } = web;
  const { user_location: location, max_content_tokens: maxContentTokens, citations } = web;
  return {
    ...given({ maxUses, allowedDomains, blockedDomains, maxContentTokens, citations: citations?.enabled }),
    ...(location && { userLocation: given(location) }),
  };
}

function hostedServer(server: McpServer, toolset?: McpToolset): HostedServer {
  const { name: label, url, authorization_token: authorization, tool_configuration: configuration } = server;
  const configs = Object.entries(toolset?.configs ?? {});
  const withEnabled = (enabled: boolean) =>
    configs.filter(([, config]) => config?.enabled === enabled).map(([name]) => name);
  const isClosed = toolset?.default_config?.enabled === false;
  const names = isClosed ? withEnabled(true) : configuration?.allowed_tools;
  const excluded = isClosed ? [] : withEnabled(false);
  return {
    label,
    url,
    ...given({ authorization }),
    ...(names && { allowed: { names } }),
    ...(excluded.length > 0 && { excluded }),
    ...given({ listed: functionsOf(toolset?.tools) }),
  };
}
