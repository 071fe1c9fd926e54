import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { readBlocks } from "../docs/read-blocks.ts";
import { npmPackage } from "../support/npm-package.ts";
import { serveTurns } from "../support/serve-turns.ts";
import type { TurnsServer } from "../support/serve-turns.ts";
import { waitMs } from "../support/hang.ts";

const version = "1.18.33";
const platform = `opencode-${process.platform}-${process.arch}`;
const modules = npmPackage(`${platform}@${version}`);
const command = join(modules ?? "", platform, "bin/opencode");

interface OpencodeEvent {
  readonly type: string;
  readonly part: {
    readonly text?: string;
    readonly tool?: string;
    readonly state?: { readonly status: string; readonly output?: string };
  };
}

/** With the configuration of docs/clients/opencode.md, which also names the provider that speaks Responses. */
describe.skipIf(!existsSync(command))("opencode", () => {
  let server: TurnsServer | undefined;
  let home = "";
  afterEach(async () => {
    await server?.close();
    rmSync(home, { recursive: true, force: true });
  });

  test.each([
    ["@ai-sdk/openai-compatible", "/v1/chat/completions"],
    ["@ai-sdk/openai", "/v1/responses"],
  ])("reads, runs a command and ends, by %s", async (provider, path) => {
    server = await serveTurns([
      [
        { type: "reasoning", text: "First I read." },
        "I read the notes.",
        { type: "tool-call", name: "read", arguments: { filePath: "notes.txt" } },
      ],
      [{ type: "tool-call", name: "bash", arguments: { command: "wc -l < notes.txt", description: "Count" } }],
      ["Two ", "lines."],
    ]);
    mkdirSync(resolve(".cache"), { recursive: true });
    home = mkdtempSync(join(resolve(".cache"), "opencode-home-"));
    const work = join(home, "work");
    mkdirSync(work);
    writeFileSync(join(work, "notes.txt"), "first\nsecond\n");
    const page = "docs/clients/opencode.md";
    const [block] = readBlocks(page, readFileSync(page, "utf8"));
    const configuration = (block?.text ?? "")
      .replaceAll("my-model", "scripted")
      .replace("http://127.0.0.1:8080", server.url)
      .replace("@ai-sdk/openai-compatible", provider);
    writeFileSync(join(work, "opencode.json"), configuration);

    const events = await opencode(home, work);
    const shown = events.flatMap(({ type, part }) =>
      type === "text" ? [part.text] : type === "tool_use" ? [`${part.tool}: ${part.state?.status}`] : [],
    );
    expect(shown).toEqual(["I read the notes.", "read: completed", "bash: completed", "Two lines."]);
    // The title of the session is a question of its own, without tools.
    const asked = server.asked().filter(({ tools }) => tools !== undefined);
    expect(asked).toHaveLength(3);
    expect(asked.at(-1)?.messages.slice(-4)).toMatchObject([
      { role: "assistant", content: "I read the notes.", tool_calls: [{ function: { name: "read" } }] },
      { role: "tool", content: expect.stringContaining("second") as string },
      { role: "assistant", tool_calls: [{ function: { name: "bash" } }] },
      { role: "tool", content: "2\n" },
    ]);
    await expect.poll(() => server?.stderr()).toContain(`"path":"${path}"`);
  });
});

/** `opencode run` in a home of its own, with nothing of this process's environment. Whatever else it would call is refused. */
async function opencode(home: string, work: string): Promise<OpencodeEvent[]> {
  const nowhere = "http://127.0.0.1:9";
  const child = spawn(command, ["run", "--format", "json", "Count the lines."], {
    cwd: work,
    env: {
      HOME: home,
      PATH: "/usr/bin:/bin",
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      NO_PROXY: "127.0.0.1,localhost",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
    },
    stdio: ["ignore", "pipe", "inherit"],
    timeout: waitMs,
  });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  await new Promise((settle) => child.on("close", settle));
  const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line) as OpencodeEvent);
}
