import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { recordServer } from "../../src/judge/capture/record-server.ts";
import { writeRecording } from "../../src/judge/capture/recording.ts";
import { startCachingServer } from "../support/caching-server.ts";
import { closeAfterTest, listenInTest } from "../support/close-after-test.ts";
import { runTruewire } from "../support/serve.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-cache-why-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const user = (content: string): object => ({ role: "user", content });
const says = (content: string): object => ({ role: "assistant", content });
const system = (content: string): object => ({ role: "system", content });
const rules = Array.from({ length: 300 }, (_, at) => `Rule ${at}: read the file before you edit it.`).join("\n");
const first = user("What is in the folder?");
const turns = [first, says("Two files."), user("Which?")];

let recordings = 0;

/** Records chat requests to a server with a prompt cache, and returns the file. */
async function recorded(bodies: readonly object[]): Promise<string> {
  const source = await startCachingServer();
  closeAfterTest(() => source.close());
  const lines: string[] = [];
  const recorder = recordServer({
    target: source.url,
    refusal: () => undefined,
    keep: (exchange) => lines.push(writeRecording(exchange)),
    log: () => {},
  });
  const { url } = await listenInTest(recorder);
  for (const body of bodies) {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", stream: true, stream_options: { include_usage: true }, ...body }),
    });
    expect(await response.text()).toContain("[DONE]");
  }
  const file = join(folder, `session-${++recordings}.jsonl`);
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

describe("truewire cache why", () => {
  test("exits with 0 if prompts only grow", async () => {
    const file = await recorded([
      { messages: [system(rules), first] },
      { messages: [system(rules), ...turns] },
      // A title for the conversation is another conversation.
      { messages: [system("Write a title."), first] },
      { messages: [system(rules), ...turns, says("a and b."), user("Read a.")] },
    ]);
    const { code, stdout, stderr } = await runTruewire(["cache", "why", file]);
    expect(stderr).toBe("");
    expect(stdout).toBe("4 requests: every prompt begins as an earlier one, or is new.\n");
    expect(code).toBe(0);
  });

  test("says what changed, where, and what it cost, and exits with 1", async () => {
    const file = await recorded([
      { messages: [system(`Today is 2026-11-22.\n${rules}`), first] },
      { messages: [system(`Today is 2026-11-23.\n${rules}`), ...turns] },
    ]);
    const { code, stdout } = await runTruewire(["cache", "why", file, "--price", "3", "--cached-price", "0.3"]);
    expect(code).toBe(1);
    expect(stdout).toContain(`${file}:2  about `);
    expect(stdout).toMatch(/prompt tokens again \(\$0\.00\d\d\)\n {2}A date or time changed in messages\[0\]\./);
    expect(stdout).toContain("2 requests: 1 prompt does not begin as the earlier one.");
    const json = await runTruewire(["cache", "why", file, "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      requests: 2,
      misses: [{ from: `${file}:2`, cause: "date", where: "messages[0]", brokenPrefix: true }],
    });
  });

  test("reads a folder, and recordings of a source that reports no cached tokens", async () => {
    const own = join(folder, "several");
    mkdirSync(own);
    const line = (messages: readonly object[]): string =>
      `${writeRecording({
        request: {
          method: "POST",
          path: "/v1/messages?beta=true",
          body: JSON.stringify({ model: "m", max_tokens: 5, messages }),
        },
        response: { status: 200, headers: [], pieces: [{ ms: 0, text: '{"type":"message","content":[]}' }] },
      })}\n`;
    writeFileSync(join(own, "1.jsonl"), line([user(`One. ${rules}`), says("First."), user("Two?")]));
    writeFileSync(
      join(own, "2.jsonl"),
      line([user(`Changed. ${rules}`), says("First."), user("Two?"), says("2."), user("3?")]),
    );
    writeFileSync(join(own, "notes.txt"), "not a recording");
    const { code, stdout } = await runTruewire(["cache", "why", own]);
    expect(stdout).toContain("An earlier message changed (messages.0).");
    expect(code).toBe(1);
  });

  test.each([
    [["cache", "why", join(folder, "absent")], "there is no such file or folder"],
    [["cache", "why", folder, "--price", "much"], "--price must be a number of US dollars, not much"],
    [["cache", "why", folder, "--cached-price", "1"], "--cached-price needs --price"],
  ])("%j is refused in a sentence", async (args, message) => {
    const { code, stderr } = await runTruewire(args);
    expect(code).not.toBe(0);
    expect(stderr).toContain(message);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });
});
