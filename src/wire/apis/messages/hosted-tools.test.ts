import { expect, test } from "vitest";
import { readMessageRequest } from "./request.ts";

const hello = { model: "m", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };

function hosted(more: object, forwards = false) {
  return readMessageRequest({ ...hello, ...more }, "", { forwards }).request.hostedTools;
}

test("the members of web tools are read into options of no API", () => {
  const location = { type: "approximate", city: "Berlin", country: "DE", region: null };
  const search = { type: "web_search_20250305", name: "web_search", max_uses: 3, user_location: location };
  const fetch = { type: "web_fetch_20250910", name: "web_fetch", allowed_domains: ["a.example"] };
  const limits = { max_content_tokens: 500, citations: { enabled: true } };
  expect(hosted({ tools: [search, { ...fetch, ...limits }] })).toMatchObject([
    { kind: "web_search", options: { maxUses: 3, userLocation: { city: "Berlin", country: "DE" } } },
    { kind: "web_fetch", options: { allowedDomains: ["a.example"], maxContentTokens: 500, citations: true } },
  ]);
});

test("a toolset has the server that it names, and its functions", () => {
  const servers = [{ type: "url", name: "docs", url: "https://mcp.example/", authorization_token: "t" }];
  const configs = { search: { enabled: true }, write: { enabled: false } };
  const toolset = { type: "mcp_toolset", mcp_server_name: "docs", configs };
  const server = { label: "docs", url: "https://mcp.example/", authorization: "t" };
  expect(hosted({ mcp_servers: servers, tools: [toolset] })).toMatchObject([
    { kind: "mcp", name: "docs", path: "tools.0", options: { server: { ...server, excluded: ["write"] } } },
  ]);
  const closed = { ...toolset, default_config: { enabled: false } };
  expect(hosted({ mcp_servers: servers, tools: [closed] })).toMatchObject([
    { options: { server: { ...server, allowed: { names: ["search"] } } } },
  ]);
});

test("in the older beta a server is a tool without a toolset", () => {
  const configuration = { allowed_tools: ["search"] };
  const server = { type: "url", name: "docs", url: "https://mcp.example/", tool_configuration: configuration };
  expect(hosted({ mcp_servers: [server] })).toMatchObject([
    { kind: "mcp", name: "docs", path: "mcp_servers.0", options: { server: { allowed: { names: ["search"] } } } },
  ]);
  expect(hosted({ mcp_servers: [{ ...server, tool_configuration: { enabled: false } }] })).toBeUndefined();
});

test("with the newest beta a server's functions are listed once, and are then those of the list", () => {
  const servers = [{ type: "url", name: "docs", url: "mcp:docs" }];
  const tools = [{ name: "read", description: null, input_schema: { type: "object" } }];
  const toolset = { type: "mcp_toolset", mcp_server_name: "docs" };
  const read = (more: object, beta = "mcp-client-2026-09-15") => {
    const { request, warnings } = readMessageRequest(
      { ...hello, mcp_servers: servers, tools: [toolset], ...more },
      "",
      {
        header: (name) => (name === "anthropic-beta" ? beta : "2023-06-01"),
      },
    );
    expect(warnings.filter((warning) => warning.includes("listing"))).toEqual([]);
    return request.hostedTools?.[0]?.options.server;
  };
  expect(read({}, "mcp-client-2025-11-20")).toMatchObject({ isListed: true });
  expect(read({})).toMatchObject({ isListed: false });
  expect(read({})).not.toHaveProperty("listed");
  const listed = [{ name: "read", parameters: { type: "object" } }];
  expect(read({ tools: [{ ...toolset, tools }] })).toMatchObject({ isListed: true, listed });
  const messages = [
    ...hello.messages,
    {
      role: "assistant",
      content: [
        { type: "mcp_tool_listing", mcp_server_name: "docs", tools },
        { type: "text", text: "Hi" },
      ],
    },
    { role: "user", content: "Read." },
  ];
  expect(read({ messages })).toMatchObject({ isListed: true, listed });
});

test("a mistake is refused with its place, unless a server of this API judges it", () => {
  const search = { type: "web_search_20250305", name: "web_search", max_uses: "three" };
  expect(() => hosted({ tools: [search] })).toThrow(
    "tools.0.web_search_20250305.max_uses: Input should be a valid number",
  );
  expect(hosted({ tools: [search] }, true)).toMatchObject([{ kind: "web_search", options: {} }]);
  const toolset = { type: "mcp_toolset", mcp_server_name: "docs" };
  expect(() => hosted({ tools: [toolset] })).toThrow(
    "tools.0.mcp_server_name: MCP server 'docs' not found in mcp_servers",
  );
});
