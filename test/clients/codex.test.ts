import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { searxngDouble } from "../doubles/searxng.ts";
import { codexLauncher, startCodex } from "../support/codex.ts";
import { dailyPart } from "../support/runs.ts";
import type { Codex } from "../support/codex.ts";
import { serveTurns } from "../support/serve-turns.ts";
import type { TurnItem, TurnsServer } from "../support/serve-turns.ts";

const launcher = codexLauncher();

const run = (cmd: string): TurnItem => ({ type: "tool-call", name: "exec_command", arguments: { cmd } });
const thought = (text: string): TurnItem => ({ type: "reasoning", text });

const trains = `[mcp_servers.trains]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(resolve("test/fixtures/trains-mcp.js"))}]`;

describe.skipIf(launcher === undefined)("Codex", () => {
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((thing) => thing.close()));
  });

  async function start(
    turns: readonly (readonly TurnItem[])[],
    {
      args = [],
      ...settings
    }: { args?: readonly string[]; config?: string; searches?: boolean; asksForModels?: boolean } = {},
  ): Promise<{ server: TurnsServer; codex: Codex }> {
    const server = await serveTurns(turns, ...args);
    open.push(server);
    const codex = await startCodex(launcher ?? "", { url: server.url, model: "scripted", ...settings });
    open.push(codex);
    return { server, codex };
  }

  test.each(dailyPart(["lean", "exact"], 2))("a whole agent loop, wire %s", async (wire) => {
    const patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n first\n-second\n+zweite Zeile 😀\n*** End Patch\n";
    const turns = [
      [thought("First I read."), "I read the notes.", run("cat notes.txt")],
      [
        thought("Two at once."),
        run("wc -l < notes.txt"),
        { type: "tool-call", name: "mcp__trains__next_train", arguments: { station: "Łódź" } },
      ],
      [thought("Now the patch."), { type: "tool-call", name: "apply_patch", arguments: patch }],
      [{ type: "tool-call", name: "view_image", arguments: { path: "dot.png" } }],
      [thought("That is all."), "Done. ", "All of it."],
    ] satisfies TurnItem[][];
    const { server, codex } = await start(turns, { args: ["--wire", wire], config: trains });
    const notes = join(codex.folder, "notes.txt");
    writeFileSync(notes, "first\nsecond\nthird\n");
    writeFileSync(join(codex.folder, "dot.png"), dot);

    const { code, items, events, stderr } = await codex.exec("Translate the second line.");
    expect({ code, stderr: stderr.replace(/^(WARNING: proceeding|Reading additional).*\n/gm, "") }).toEqual({
      code: 0,
      stderr: "",
    });
    expect(items).toMatchObject([
      { type: "reasoning", text: "First I read." },
      { type: "agent_message", text: "I read the notes." },
      { type: "command_execution", aggregated_output: "first\nsecond\nthird\n", exit_code: 0 },
      { type: "reasoning", text: "Two at once." },
      { type: "command_execution", aggregated_output: "3\n", exit_code: 0 },
      { type: "mcp_tool_call", server: "trains", tool: "next_train", arguments: { station: "Łódź" }, error: null },
      { type: "reasoning", text: "Now the patch." },
      { type: "file_change", status: "completed" },
      { type: "reasoning", text: "That is all." },
      { type: "agent_message", text: "Done. All of it." },
    ]);
    expect(events.at(-1)?.type).toBe("turn.completed");
    expect(readFileSync(notes, "utf8")).toBe("first\nzweite Zeile 😀\nthird\n");

    // Nothing was asked twice, and the model gets its own words, thoughts and calls back, each with its result.
    const asked = server.asked();
    expect(asked).toHaveLength(turns.length);
    const question = asked[0]?.messages.length ?? 0;
    expect(asked.at(-1)?.messages.slice(question)).toMatchObject([
      {
        role: "assistant",
        reasoning_content: "First I read.",
        content: "I read the notes.",
        tool_calls: [{ type: "function", function: { name: "exec_command", arguments: '{"cmd":"cat notes.txt"}' } }],
      },
      { role: "tool", content: expect.stringContaining("first\nsecond\nthird\n") as string },
      {
        role: "assistant",
        reasoning_content: "Two at once.",
        tool_calls: [
          { function: { name: "exec_command" } },
          { function: { name: "mcp__trains__next_train", arguments: '{"station":"Łódź"}' } },
        ],
      },
      { role: "tool", content: expect.stringContaining("3\n") as string },
      { role: "tool", content: [{}, { type: "text", text: "The next train from Łódź leaves at 12:34." }] },
      {
        role: "assistant",
        reasoning_content: "Now the patch.",
        tool_calls: [{ type: "custom", custom: { name: "apply_patch", input: patch } }],
      },
      { role: "tool", content: expect.stringContaining("M notes.txt") as string },
      { role: "assistant", tool_calls: [{ function: { name: "view_image" } }] },
      { role: "tool", content: [{ type: "image_url", image_url: { url: expect.stringMatching(/^data:image\/png/) } }] },
    ]);
    expect(server.stderr()).not.toMatch(/"level":[56]0/);
  });

  // Codex took OpenAI's list for none, warned, and offered no apply_patch.
  test("the models of the server, where Codex gets its key from a command", async () => {
    const args = ["--log-level", "debug"];
    const { server, codex } = await start([["Good day."]], { asksForModels: true, args });
    const { code, items, stderr } = await codex.exec("Hello");
    expect(code, stderr).toBe(0);
    expect(items).toMatchObject([{ type: "agent_message", text: "Good day." }]);
    expect(stderr).not.toMatch(/failed to decode models|Model metadata/);
    const [asked] = server.asked();
    expect(JSON.stringify(asked?.messages)).toContain("You are a coding agent. You work in the user's folder");
    expect(JSON.stringify(asked?.tools)).toContain('"apply_patch"');
  });

  test("a session that is taken up again", async () => {
    const { server, codex } = await start([[thought("Hm."), "Good day."], ["Still here."]]);
    await codex.exec("Hello");
    const { items } = await codex.exec("resume", "--last", "Are you there?");
    expect(items).toMatchObject([{ type: "agent_message", text: "Still here." }]);
    const roles = server.asked()[1]?.messages.map(({ role }) => role);
    expect(roles?.slice(-3)).toEqual(["user", "assistant", "user"]);
  });

  // Codex hides the tools of MCP servers behind a search where it knows the model by name, and runs that search itself.
  test("the search for tools, which brings those of an MCP server", async () => {
    const turns = [
      [{ type: "tool-call", name: "tool_search", arguments: { query: "train" } }],
      [{ type: "tool-call", name: "mcp__trains__next_train", arguments: { station: "Bern" } }],
      ["At 12:34."],
    ] satisfies TurnItem[][];
    const { server, codex } = await start(turns, { config: trains, searches: true });
    const { items } = await codex.exec("When?");
    expect(items).toMatchObject([
      { type: "mcp_tool_call", server: "trains", tool: "next_train", arguments: { station: "Bern" }, error: null },
      { type: "agent_message", text: "At 12:34." },
    ]);
    const offers = (ask: number): boolean =>
      JSON.stringify(server.asked()[ask]?.tools ?? []).includes('"mcp__trains__next_train"');
    expect([offers(0), offers(1), offers(2)]).toEqual([false, true, true]);
    const found = server.asked()[1]?.messages.at(-1)?.content;
    expect(JSON.parse(String(found))).toEqual({
      tools: [{ name: "mcp__trains__next_train", description: "When the next train leaves" }],
    });
  });

  // Codex asks OpenAI for its searches. Other servers left the tool out, and the model had none.
  test.each(dailyPart([[""], ["supports_websockets = true"]], 2))(
    "a web search that the server runs, and a function (%s)",
    async (config) => {
      const page = { url: "https://truewire.example/notes", title: "Release notes", content: "Version 2 is faster." };
      const searxng = await searxngDouble([page]);
      open.push({ close: async () => searxng.close() });
      const { server, codex } = await start(
        [
          [thought("I search."), { type: "tool-call", name: "web_search", arguments: { query: "truewire notes" } }],
          [run("echo ran")],
          [`See [the notes](${page.url}).`],
          ["You are welcome."],
        ],
        { args: ["--web-search", searxng.url], config },
      );
      const { code, items, stderr } = await codex.exec("What is new?", "-c", 'web_search="live"');
      expect(code, stderr).toBe(0);
      expect(items).toMatchObject([
        { type: "reasoning", text: "I search." },
        { type: "web_search", query: "truewire notes", action: { type: "search", query: "truewire notes" } },
        { type: "command_execution", aggregated_output: "ran\n" },
        { type: "agent_message", text: `See [the notes](${page.url}).` },
      ]);
      expect(searxng.searches.map((search) => search.get("q"))).toEqual(["truewire notes"]);
      expect(JSON.stringify(server.asked()[1]?.messages.at(-1))).toContain(page.content);
      // The next turn sends the items of the search back.
      const { items: next } = await codex.exec("resume", "--last", "Thanks", "-c", 'web_search="live"');
      expect(next).toMatchObject([{ type: "agent_message", text: "You are welcome." }]);
    },
  );

  test("by WebSocket", async () => {
    const { server, codex } = await start(
      [
        [thought("Look."), run("echo ran")],
        [thought("Seen."), "It ran."],
      ],
      {
        config: "supports_websockets = true",
      },
    );
    const { code, items } = await codex.exec("Hello");
    expect({ code, items }).toMatchObject({
      code: 0,
      items: [
        { type: "reasoning", text: "Look." },
        { type: "command_execution", aggregated_output: "ran\n" },
        { type: "reasoning", text: "Seen." },
        { type: "agent_message", text: "It ran." },
      ],
    });
    const asked = server.asked();
    expect(asked).toHaveLength(2);
    expect(asked[1]?.messages.slice(asked[0]?.messages.length)).toMatchObject([
      { role: "assistant", reasoning_content: "Look." },
      { role: "tool", content: expect.stringContaining("ran\n") as string },
    ]);
  });

  // Comments in the stream do not count for Codex, so it gave up on prompts that take long to read, and asked again.
  test.each(dailyPart(["lean", "exact"], 2, 1))(
    "waits for a first word that comes later than its patience, wire %s",
    async (wire) => {
      const { server, codex } = await start([[{ wait: 5000 }, "Here I am."]], {
        args: ["--hold", "300ms", "--keep-alive", "500ms", "--wire", wire],
        config: "stream_idle_timeout_ms = 2000\nstream_max_retries = 1",
      });
      const { items } = await codex.exec("Hello");
      expect(items).toMatchObject([{ type: "agent_message", text: "Here I am." }]);
      expect(server.asked()).toHaveLength(1);
    },
  );

  test("a call is not run when the answer fails at it", async () => {
    const { server, codex } = await start([[run("echo ran >> ran.txt"), { fail: "broken" }]], {
      config: "stream_max_retries = 1",
    });
    const { code, events } = await codex.exec("Hello");
    expect(code).toBe(1);
    expect(events.at(-1)).toMatchObject({
      type: "turn.failed",
      error: { message: expect.stringContaining("The program failed.") },
    });
    expect(existsSync(join(codex.folder, "ran.txt"))).toBe(false);
    expect(server.asked()).toHaveLength(2);
  });

  // Codex asks again after a failure, and would run again what it has run.
  test("a call that was told runs once, though the answer fails after it", async () => {
    const turns = [[run("echo ran >> ran.txt"), "And now", { wait: 500 }, { fail: "broken" }], ["Done."]];
    const { server, codex } = await start(turns);
    const { code, items } = await codex.exec("Hello");
    expect(code).toBe(0);
    expect(items.at(-1)).toMatchObject({ type: "agent_message", text: "Done." });
    expect(readFileSync(join(codex.folder, "ran.txt"), "utf8")).toBe("ran\n");
    expect(server.asked()).toHaveLength(2);
  });

  // Codex runs a call whatever its status is.
  test("half of a call behind a whole one is not run", async () => {
    const half: TurnItem[] = [
      { type: "tool-call-start", name: "exec_command" },
      { type: "tool-call-delta", arguments: '{"cmd":"echo half >> ran.txt"}' },
    ];
    const turns = [[run("echo ran >> ran.txt"), ...half, { wait: 500 }, { fail: "broken" }], ["Done."]];
    const { server, codex } = await start(turns);
    const { code, items } = await codex.exec("Hello");
    expect(code).toBe(0);
    expect(items.at(-1)).toMatchObject({ type: "agent_message", text: "Done." });
    expect(readFileSync(join(codex.folder, "ran.txt"), "utf8")).toBe("ran\n");
    expect(server.asked()).toHaveLength(2);
  });

  test.each([
    ["invalid_value", "Too hot."],
    ["context_length_exceeded", "Codex ran out of room in the model's context window."],
  ])("a mistake is told at once: %s", async (code, told) => {
    const error = { name: "RequestError", status: 400, param: "input", code };
    const { server, codex } = await start([[{ fail: "Too hot.", error }]]);
    const { events } = await codex.exec("Hello");
    expect(events.at(-1)).toMatchObject({ type: "turn.failed", error: { message: expect.stringContaining(told) } });
    expect(server.asked()).toHaveLength(1);
  });
});

/** A PNG of one pixel. */
const dot = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64",
);
