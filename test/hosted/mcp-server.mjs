// MCP servers of the SDK over stdio, which behave as the argument says: "plain", or in a way that a client must survive.
import { writeSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const [behaviour = "plain"] = process.argv.slice(2);
const server = new McpServer({ name: "test", version: "1.0.0" });
const text = (value) => ({ content: [{ type: "text", text: value }] });

server.registerTool(
  "add",
  {
    description: "Adds two numbers",
    inputSchema: { a: z.number(), b: z.number() },
    annotations: { readOnlyHint: true },
  },
  ({ a, b }) => text(String(a + b)),
);
server.registerTool("environment", { description: "Names of variables" }, () =>
  text(Object.keys(process.env).toSorted().join(" ")),
);
server.registerTool("identity", { description: "Which process this is" }, () => text(String(process.pid)));
server.registerTool("picture", { description: "A picture" }, () => ({
  content: [
    { type: "text", text: "Here it is:" },
    { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" },
    { type: "image", mimeType: "image/svg+xml", data: "PHN2Zy8+" },
    { type: "audio", mimeType: "audio/wav", data: "AAAA" },
    { type: "resource_link", uri: "file:///notes.txt", name: "notes" },
    { type: "resource", resource: { uri: "file:///a.txt", text: "the text of a file" } },
  ],
}));
server.registerTool("fail", { description: "Fails" }, () => {
  throw new Error("the disk is full");
});
server.registerTool("long", { description: "A long text" }, () => text("x".repeat(300_000)));
server.registerTool("die", { description: "Ends its process" }, () => process.exit(3));
server.registerTool("hang", { description: "Never answers" }, () => new Promise(() => {}));
server.registerTool("grow", { description: "Adds a function" }, () => {
  server.registerTool("grown", { description: "It was added" }, () => text("grown"));
  return text("done");
});
server.registerTool("raw", { description: "Writes to the client", inputSchema: { kind: z.string() } }, ({ kind }) => {
  if (kind === "huge") process.stdout.write("x".repeat(20_000_000));
  if (kind === "garbage") writeSync(1, "this is not JSON\n");
  if (kind === "wrong") writeSync(1, '{"jsonrpc":"2.0","id":1,"result":7,"error":8}\n');
  if (kind === "empty") writeSync(1, "\n\n");
  return text("written");
});

if (behaviour === "endless") {
  let page = 0;
  server.server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [{ name: `tool${page}`, inputSchema: { type: "object" } }],
    nextCursor: String(page++),
  }));
}
if (behaviour === "large") {
  server.server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Array.from({ length: 1000 }, (_, at) => ({ name: `tool${at}`, inputSchema: { type: "object" } })),
  }));
}
if (behaviour === "mute") process.stdin.resume();
else if (behaviour === "broken") {
  process.stderr.write("no configuration was found\n");
  process.exitCode = 2;
} else if (behaviour === "bytes") {
  // Each answer byte by byte.
  const transport = new StdioServerTransport();
  transport.send = async (message) => {
    for (const byte of Buffer.from(`${JSON.stringify(message)}\n`))
      await new Promise((resolve) => process.stdout.write(Uint8Array.of(byte), resolve));
  };
  await server.connect(transport);
} else await server.connect(new StdioServerTransport());
