// An MCP server with the notes of a folder: a model lists them and reads them.
//   truewire serve model.gguf --mcp notes=./examples/mcp-notes.js
// A request names it in the tools of POST /v1/responses:
//   { "type": "mcp", "server_label": "notes", "server_url": "mcp:notes", "require_approval": "never" }
// The folder is NOTES, or the notes next to this file. It needs the package @modelcontextprotocol/server.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const folder = process.env.NOTES ?? fileURLToPath(new URL("notes", import.meta.url));
const server = new McpServer({ name: "notes", version: "1.0.0" });
const text = (value) => ({ content: [{ type: "text", text: value }] });
const names = async () => (await readdir(folder)).filter((name) => name.endsWith(".md")).toSorted();

server.registerTool(
  "list_notes",
  { description: "Lists the names of the user's notes", annotations: { readOnlyHint: true } },
  async () => text((await names()).join("\n")),
);

server.registerTool(
  "read_note",
  {
    description: "Returns the text of a note",
    inputSchema: z.object({ name: z.string().describe("A name that list_notes returns") }),
    annotations: { readOnlyHint: true },
  },
  async ({ name }) => {
    // Only what is in the list is read: a name may have been made up, or be a path.
    if (!(await names()).includes(name)) throw new Error(`There is no note ${name}. list_notes returns their names.`);
    return text(await readFile(join(folder, name), "utf8"));
  },
);

await server.connect(new StdioServerTransport());
