import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { builtMain } from "../support/serve.ts";

const run = promisify(execFile);

/** What `truewire … --help` prints. */
async function help(...command: string[]): Promise<string> {
  return (await run(process.execPath, [builtMain, ...command, "--help"])).stdout;
}

describe("the help", () => {
  let text = "";
  /** The names of the commands under each heading. */
  const groups = new Map<string, string[]>();
  beforeAll(async () => {
    text = await help();
    let names: string[] = [];
    for (const line of text.split("\n")) {
      const [, heading] = /^(\S.*:)$/.exec(line) ?? [];
      if (heading !== undefined) groups.set(heading, (names = []));
      const [, name] = /^ {2}([a-z]+) /.exec(line) ?? [];
      if (name !== undefined) names.push(name);
    }
  });

  test("lists each command under what it is for", () => {
    const serving = ["serve", "launch", "batch", "models", "libraries", "keys", "config", "service"];
    expect(groups.get("Serve and use:")).toEqual(serving);
    expect(groups.get("Test servers:")).toEqual(["doctor", "check", "between", "vendor", "record", "replay", "repair"]);
    expect(groups.get("Look inside:")).toEqual(["render", "parse", "formats", "cache", "completion", "help"]);
    expect(text).toMatch(/Exit codes:\n +0 +1 +2\n {2}check, between +no errors/);
  });

  test("of each command begins with the line that most people need", async () => {
    const names = ["Serve and use:", "Test servers:", "Look inside:"].flatMap((heading) => groups.get(heading) ?? []);
    expect(names).toHaveLength(21);
    for (const name of names.filter((one) => one !== "help"))
      expect(await help(name)).toMatch(new RegExp(`^For example: .*truewire ${name}\\b.*\\n\\nUsage: `));
  });
});
