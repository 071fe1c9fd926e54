import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { dailyPart } from "../support/runs.ts";

const search = { type: "web_search_20250305", name: "web_search", max_uses: 8 } as const;
const custom: Anthropic.Tool = { name: "read", input_schema: { type: "object" } };
const query = "Perform a web search for the query: truewire release notes";
const asked = { model: "scripted", max_tokens: 100, messages: [{ role: "user" as const, content: query }] };

// The search of Claude Code is a request of its own that has only Anthropic's tool. The tool was left out, and the model invented what it
// had found; Claude Code took that for results.
describe.each(dailyPart(["lean", "exact"], 2, 1))("a request for a web search, wire %s", (wire) => {
  const engine = new ScriptedEngine(() => answer(["I have found three pages."]));
  let server: TruewireServer;
  let client: Anthropic;
  beforeAll(async () => {
    server = await createServer({ port: 0, logLevel: "silent", ...serving(engine) });
    const defaultHeaders = { "x-truewire-wire": wire };
    client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0, defaultHeaders });
  });
  afterAll(() => server.close(0));

  test("is answered with the error of the tool, and asks no model", async () => {
    const request = { ...asked, tools: [search], tool_choice: { type: "auto" as const } };
    for (const message of [
      await client.messages.create(request),
      await client.messages.stream(request).finalMessage(),
    ]) {
      const id = expect.stringMatching(/^srvtoolu_01\w{22}$/) as string;
      expect(message).toMatchObject({
        stop_reason: "end_turn",
        content: [
          { type: "server_tool_use", id, name: "web_search", input: { query } },
          {
            type: "web_search_tool_result",
            tool_use_id: id,
            content: { type: "web_search_tool_result_error", error_code: "unavailable" },
          },
          { type: "text", text: "Web search is not available on this server." },
        ],
      });
      const [call, result] = message.content;
      expect(result).toHaveProperty("tool_use_id", (call as { id: string }).id);
    }
    expect(engine.requests).toHaveLength(0);
  });

  test("beside other tools fails if the model calls it, as a warning says", async () => {
    const { data, response } = await client.messages.create({ ...asked, tools: [search, custom] }).withResponse();
    expect(data.content).toMatchObject([{ type: "text", text: "I have found three pages." }]);
    expect(response.headers.get("x-truewire-warning")).toContain(
      "nothing here runs web_search; its calls fail as unavailable",
    );
    expect(engine.requests.at(-1)?.tools).toMatchObject([{ name: "read" }, { name: "web_search" }]);
  });
});
