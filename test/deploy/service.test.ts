import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { installService, uninstallService } from "../../src/serve/cli/service-action.ts";
import { builtMain } from "../support/serve.ts";

const isLinux = process.platform === "linux";
if (!isLinux) console.log("skipped: `truewire service` is tested where it writes units of systemd");

/** A systemctl that notes what it is asked. `active` and `enabled` are what it says of every unit. */
const fakeSystemctl = `#!/bin/sh
echo "$*" >> "$CALLS"
case "$2" in
  is-active) echo "$ACTIVE"; [ "$ACTIVE" = active ] ;;
  is-enabled) echo enabled ;;
  *) [ -z "$BROKEN" ] || { echo "Failed to connect to bus: No medium found" >&2; exit 1; } ;;
esac
`;

describe.skipIf(!isLinux)("truewire service", () => {
  let home: string;
  let unit: string;
  let calls: string;
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), "truewire service-")));
    unit = join(home, ".config/systemd/user/truewire.service");
    calls = join(home, "calls");
    mkdirSync(join(home, "bin"));
    mkdirSync(join(home, "empty"));
    writeFileSync(join(home, "bin/systemctl"), fakeSystemctl, { mode: 0o755 });
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  function service(args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = home) {
    const own = { HOME: home, PATH: join(home, "bin"), CALLS: calls, ACTIVE: "active", ...env };
    const { status, stdout, stderr } = spawnSync(process.execPath, [builtMain, "service", ...args], {
      cwd,
      env: own,
      encoding: "utf8",
    });
    return { status, stdout, stderr };
  }
  const asked = (): string[] => (existsSync(calls) ? readFileSync(calls, "utf8").trim().split("\n") : []);
  const filesIn = (folder: string): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => path !== calls && !path.includes("/bin/"));

  test("installs a unit with the targets and options of serve, and starts it; nothing else is written", () => {
    const { status, stdout } = service(["install", "./program.ts", "--port", "9000"]);
    expect([status, stdout]).toEqual([0, expect.stringContaining(`Wrote ${unit}.\nIt runs now`)]);
    expect(filesIn(home)).toEqual([unit]);
    const text = readFileSync(unit, "utf8");
    expect(text).toContain(`\nExecStart=${process.execPath} ${builtMain} serve ./program.ts --port 9000\n`);
    expect(text).toContain(`\nWorkingDirectory=${home}\n`);
    expect(text).toContain("\nType=notify\n");
    expect(asked()).toEqual(["--user daemon-reload", "--user enable --now truewire"]);
    expect(service(["status"])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("State: active, enabled\n") as string,
    });
    expect(service(["status"], { ACTIVE: "failed" })).toMatchObject({
      status: 1,
      stdout: expect.stringContaining("journalctl --user --unit truewire") as string,
    });
  });

  test("installs again with other options, and restarts", () => {
    service(["install"]);
    const { stdout } = service(["install", "--port", "9001"]);
    expect(stdout).toContain(`Updated ${unit}.`);
    expect(readFileSync(unit, "utf8")).toContain("serve --port 9001\n");
    expect(asked().at(-1)).toBe("--user restart truewire");
  });

  test("uninstalls: stops the service and removes its file only", () => {
    service(["install"]);
    const other = join(home, ".config/systemd/user/other.service");
    writeFileSync(other, "[Unit]\n");
    expect(service(["uninstall"])).toMatchObject({ status: 0, stdout: `Removed ${unit}.\n` });
    expect(filesIn(home)).toEqual([other]);
    expect(asked().slice(-2)).toEqual(["--user disable --now truewire", "--user daemon-reload"]);
    expect(service(["uninstall"])).toMatchObject({
      status: 0,
      stdout: `There is no service: ${unit} does not exist.\n`,
    });
    expect(service(["status"])).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/^Not installed: /) as string,
    });
  });

  test("--print prints the unit, and writes and starts nothing", () => {
    const { status, stdout } = service(["install", "--print", "--port", "9000"]);
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^# Written by `truewire service install`/)]);
    expect(filesIn(home)).toEqual([]);
    expect(asked()).toEqual([]);
  });

  test("keeps to XDG_CONFIG_HOME", () => {
    const config = join(home, "elsewhere");
    service(["install"], { XDG_CONFIG_HOME: config });
    expect(filesIn(home)).toEqual([join(config, "systemd/user/truewire.service")]);
  });

  test("leaves a unit alone that it has not written", () => {
    mkdirSync(join(unit, ".."), { recursive: true });
    writeFileSync(unit, "[Service]\nExecStart=/opt/own\n");
    for (const command of ["install", "uninstall"]) {
      const { status, stderr } = service([command]);
      expect([status, stderr]).toEqual([
        1,
        expect.stringContaining("was not written by this command, so it is left as it is"),
      ]);
    }
    expect(readFileSync(unit, "utf8")).toBe("[Service]\nExecStart=/opt/own\n");
    expect(asked()).toEqual([]);
    expect(service(["status"]).stdout).toContain("(not written by this command)\nCommand: /opt/own\n");
  });

  test("where there is no systemctl, or no session, it says what to do", () => {
    const without = service(["install"], { PATH: join(home, "empty") });
    expect(without.status).toBe(0);
    expect(without.stdout).toContain(
      "systemctl cannot be run; this system may not use systemd. Let your system's own service",
    );
    expect(without.stdout).toContain(`${process.execPath} ${builtMain} serve`);
    const broken = service(["install"], { BROKEN: "1" });
    expect(broken.stdout).toContain(
      "daemon-reload: Failed to connect to bus: No medium found. Start it with:\n\n  systemctl",
    );
    expect(service(["uninstall"], { PATH: join(home, "empty") }).stdout).toContain(
      "If it runs, stop it with:\n\n  systemctl --user disable",
    );
    expect(existsSync(unit)).toBe(false);
  });

  test("refuses options that serve does not have, and secrets", () => {
    expect(service(["install", "--prot", "9000"])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("Did you mean --port?") as string,
    });
    for (const option of [["--api-key", "sk-1"], ["--admin-key=sk-1"], ["--key", "sk-1"]]) {
      const { status, stderr } = service(["install", ...option]);
      expect([status, stderr]).toEqual([
        1,
        expect.stringMatching(/would be readable in the service's file\. Put it into/),
      ]);
      expect(stderr).not.toContain("sk-1");
    }
    expect(filesIn(home)).toEqual([]);
  });

  // The folder's name was written as it is, so a line break in it wrote settings of its own. Names in tests had spaces and quotes only.
  test.each(["a\n[Service]\nExecStart=/bin/evil", "a\rb", "a\\", "a ", "a\u2028b"])(
    "a folder with the name %j is refused, and nothing is written",
    (name) => {
      const folder = join(home, name);
      mkdirSync(folder, { recursive: true });
      for (const more of [[], ["--print"]]) {
        const { status, stdout, stderr } = service(["install", ...more], {}, folder);
        expect([status, stdout]).toEqual([1, ""]);
        expect(stderr).toMatch(
          /^truewire: A service's file cannot hold [^]*\. Rename it, or run the command in another folder\.\n$/,
        );
      }
      expect(existsSync(unit)).toBe(false);
      expect(service(["install", "--print", `a${"\n"}ExecStartPre=/bin/evil`]).status).toBe(1);
    },
  );

  test("systemd reads the unit as it is meant, with every character", ({ skip }) => {
    if (spawnSync("systemd-analyze", ["--version"]).status !== 0) {
      console.log("skipped: systemd-analyze is not on the PATH");
      return skip();
    }
    const word = `name=a b$HOME"%d\\'é.gguf`;
    expect(service(["install", word], { BROKEN: "1" }).status).toBe(0);
    expect(readFileSync(unit, "utf8")).toContain(` "name=a b$$HOME\\"%%d\\\\'é.gguf"\n`);
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--user", unit], {
      env: { ...process.env, XDG_RUNTIME_DIR: home },
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([0, ""]);
  });
});

// Files for launchd and Windows' task scheduler were written, and had never been run there.
test("without systemd, the command is named that the system's own manager has to run", () => {
  const platform = vi.spyOn(process, "platform", "get").mockReturnValue("darwin");
  try {
    expect(() => installService(["a b.gguf"], {})).toThrow(
      /^Services are units of systemd, which darwin does not have\. Let your system's own service manager run this in .*:\n\n {2}\S+ \S+ serve 'a b\.gguf'$/,
    );
    expect(() => uninstallService()).toThrow("Services are units of systemd, which darwin does not have.");
  } finally {
    platform.mockRestore();
  }
});
