import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runTruewire } from "../support/serve.ts";

/** Asks each shell what it offers for a line whose last word is being typed; one name a line. */
const questions: Readonly<Record<string, (script: string, line: string) => string>> = {
  bash: (script, line) =>
    `source ${script}; COMP_WORDS=(${line}); COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); _truewire; printf '%s\\n' "\${COMPREPLY[@]}"`,
  // Without a terminal, the functions that show what was found print it.
  zsh: (script, line) =>
    `compdef() { : }; _files() { : }
    _describe() { local one; for one in "\${(@P)@[-1]}"; do [[ "$one" == "\${words[CURRENT]}"* ]] && print -- "\${one%%:*}"; done }
    source ${script}; words=(${line}); CURRENT=$#words; PREFIX="\${words[CURRENT]}"; _truewire; true`,
  fish: (script, line) => `source ${script}; complete -C "${line}" | string split -f1 \\t`,
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(Object.keys(questions))("truewire completion %s", (shell) => {
  const missing = spawnSync(shell, ["--version"]).error !== undefined;
  if (missing) console.log(`skipped: ${shell} is not installed`);

  test.skipIf(missing)(
    "offers commands, their commands, and options, as the shell itself reads the script",
    async () => {
      const { stdout, code } = await runTruewire(["completion", shell]);
      expect(code).toBe(0);
      const script = join(folder, `completion.${shell}`);
      writeFileSync(script, stdout);
      const offered = (line: string): string[] => {
        const flags = shell === "zsh" ? ["-fc"] : ["-c"];
        const asked = questions[shell]?.(script, line) ?? "";
        return execFileSync(shell, [...flags, asked], { cwd: folder, encoding: "utf8" })
          .trim()
          .split("\n");
      };
      expect(offered("truewire mod")).toEqual(["models"]);
      expect(offered("truewire models lo")).toEqual(["load"]);
      expect(offered("truewire models load --adm")).toEqual(["--admin-key"]);
      // Without a command, it serves.
      expect(offered("truewire --context")).toEqual(["--context-size"]);
      expect(offered("truewire doctor --js")).toEqual(["--json"]);
    },
  );
});

test("another shell: which there are", async () => {
  const { code, stderr } = await runTruewire(["completion", "tcsh"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("Allowed choices are bash, zsh, fish")]);
});
