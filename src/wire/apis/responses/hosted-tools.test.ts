import { expect, test } from "vitest";
import { readHostedTool } from "./hosted-tools.ts";

function options(declaration: { readonly type: string; readonly [member: string]: unknown }) {
  return readHostedTool(declaration, "tools[0]", false).options;
}

test("the members of searches are read into options of no API", () => {
  const location = { type: "approximate", country: "FR", city: null };
  const filters = { allowed_domains: ["a.example"], blocked_domains: null };
  expect(options({ type: "web_search", filters, search_context_size: "low", user_location: location })).toEqual({
    allowedDomains: ["a.example"],
    contextSize: "low",
    userLocation: { country: "FR" },
  });
  expect(options({ type: "file_search", vector_store_ids: ["vs_1"], max_num_results: 3 })).toEqual({
    stores: ["vs_1"],
    maxResults: 3,
  });
  expect(readHostedTool({ type: "web_search_preview_2025_03_11" }, "tools[0]", false)).toMatchObject({
    kind: "web_search",
    type: "web_search_preview_2025_03_11",
  });
});

test("an MCP server needs approval of all calls, unless the request says otherwise", () => {
  const server = { type: "mcp", server_label: "docs", server_url: "https://mcp.example/" };
  const read = (more: object) => options({ ...server, ...more }).server;
  expect(read({})).toEqual({ label: "docs", url: "https://mcp.example/", approval: true });
  expect(read({ require_approval: null })?.approval).toBe(true);
  expect(read({ require_approval: "never" })?.approval).toBeUndefined();
  expect(read({ require_approval: { never: { tool_names: ["search"] } } })?.approval).toEqual({
    never: { names: ["search"] },
  });
  expect(read({ allowed_tools: ["search"] })?.allowed).toEqual({ names: ["search"] });
  expect(read({ allowed_tools: { read_only: true } })?.allowed).toEqual({ readOnly: true });
});

test("a mistake is refused with its place, unless a server of this API judges it", () => {
  const declaration = { type: "mcp", server_label: 1 };
  expect(() => readHostedTool(declaration, "tools[0]", false)).toThrow("tools[0].server_label");
  expect(readHostedTool(declaration, "tools[0]", true)).toMatchObject({ kind: "mcp", options: {} });
  expect(() => readHostedTool({ type: "mcp", server_label: "docs" }, "tools[2]", false)).toThrow("'server_url'");
});
