import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { serveCommand } from "./serve.ts";
import { ownMark, shellWord, systemdUnit, unitPath } from "./systemd-unit.ts";
import type { ServiceCommand } from "./systemd-unit.ts";

/** The commands that start the service, and the one that stops it. */
const start = ["systemctl --user daemon-reload", "systemctl --user enable --now truewire"];
const stop = "systemctl --user disable --now truewire";

/** Options of `truewire serve` whose values are secrets, and where they belong instead. */
const secretOptions: Readonly<Record<string, string>> = {
  "--api-key": "TRUEWIRE_API_KEY",
  "--admin-key": "TRUEWIRE_ADMIN_KEY",
  "--metrics-key": "TRUEWIRE_METRICS_KEY",
  "--key": "a variable that truewire.yaml names (key: ${NAME})",
};

/**
 * `truewire service install`: writes a unit of systemd that runs `truewire serve` with these arguments when the user logs in, and
 * starts it. Writes no other file. `print`: prints the unit only. Throws an error of one sentence.
 */
export function installService(args: readonly string[], { print }: { readonly print?: true }): void {
  checkServeArguments(args);
  const command = {
    node: process.execPath,
    args: [fileURLToPath(new URL("../../cli/main.js", import.meta.url)), "serve", ...args],
    folder: resolve("."),
  };
  checkWritable(command);
  const path = ownUnit(command);
  const text = systemdUnit(command);
  if (print) {
    process.stdout.write(text);
    return;
  }
  refuseForeign(path);
  const isNew = !existsSync(path);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  console.log(`${isNew ? "Wrote" : "Updated"} ${path}.`);
  const problem = runAll([...start, ...(isNew ? [] : ["systemctl --user restart truewire"])]);
  if (problem === noSystemctl) {
    console.log(`It was not started: ${problem} ${ownManager(command)}`);
    return;
  }
  if (problem !== undefined) {
    console.log(`It was not started: ${problem} Start it with:\n\n${lines(start)}`);
    return;
  }
  console.log(
    "It runs now, and starts when you log in. To let it run while you are logged out: loginctl enable-linger",
  );
}

/**
 * Throws an error of one sentence for names that the files of services cannot hold. In a unit of systemd a line break, or a backslash at the
 * end of a line, would let the name of a folder write further settings. Source: systemd.syntax(7).
 */
function checkWritable({ node, args, folder }: ServiceCommand): void {
  const bad = [node, ...args, folder].find((text) => hasControlCharacter.test(text));
  if (bad !== undefined)
    throw new Error(
      `A service's file cannot hold ${JSON.stringify(bad)}, which has a line break or another control character. Rename it, or run the command in another folder.`,
    );
  if (/[\\\s]$/.test(folder) || /^\s/.test(folder))
    throw new Error(
      `A service's file cannot hold the folder ${JSON.stringify(folder)}, which begins or ends with a space, or ends with a backslash. Rename it, or run the command in another folder.`,
    );
}

// oxlint-disable-next-line no-control-regex
const hasControlCharacter = /[\0-\x1f\x7f\x85\u2028\u2029]/;

/** `truewire service uninstall`: stops the service and removes its file. */
export function uninstallService(): void {
  const path = ownUnit();
  if (!existsSync(path)) {
    console.log(`There is no service: ${path} does not exist.`);
    return;
  }
  refuseForeign(path);
  const problem = runAll([stop]);
  rmSync(path);
  console.log(`Removed ${path}.`);
  if (problem !== undefined) {
    console.log(`It was not stopped: ${problem} If it runs, stop it with:\n\n${lines([stop])}`);
  } else runAll(["systemctl --user daemon-reload"]);
}

/** `truewire service status`: prints the file, its command and the state. Returns whether the service runs, as far as is known. */
export function serviceStatus(): boolean {
  const path = ownUnit();
  if (!existsSync(path)) {
    console.log(`Not installed: ${path} does not exist. Install it with: truewire service install`);
    return false;
  }
  const text = readFileSync(path, "utf8");
  console.log(`Installed: ${path}${text.includes(ownMark) ? "" : " (not written by this command)"}`);
  const command = /^ExecStart=(.*)$/m.exec(text)?.[1];
  if (command !== undefined) console.log(`Command: ${command}`);
  const active = systemctl(["is-active", "truewire"]);
  const enabled = systemctl(["is-enabled", "truewire"]);
  // Both print the state, and end with another code than 0 for most states.
  if (active.output === "") {
    console.log(`State: unknown. ${active.problem}`);
    return false;
  }
  console.log(`State: ${active.output}, ${enabled.output || "unknown"}`);
  if (active.output !== "active") console.log("Its log: journalctl --user --unit truewire");
  return active.output === "active";
}

/** The path of the unit. Throws an error that says what to do instead where the platform has no systemd. */
function ownUnit(command?: ServiceCommand): string {
  if (process.platform === "linux") return unitPath(homedir(), process.env);
  const instead = command === undefined ? "" : ` ${ownManager(command)}`;
  throw new Error(`Services are units of systemd, which ${process.platform} does not have.${instead}`);
}

function ownManager({ node, args, folder }: ServiceCommand): string {
  return `Let your system's own service manager run this in ${folder}:\n\n  ${[node, ...args].map(shellWord).join(" ")}`;
}

/** Throws if the file exists and was not written by this command. */
function refuseForeign(path: string): void {
  if (!existsSync(path) || readFileSync(path, "utf8").includes(ownMark)) return;
  throw new Error(`${path} was not written by this command, so it is left as it is. Move it away first.`);
}

/** Throws for secrets. Ends the process with commander's error for options that `truewire serve` does not have. */
function checkServeArguments(args: readonly string[]): void {
  const secret = args.map((arg) => arg.split("=")[0] ?? "").find((name) => Object.hasOwn(secretOptions, name));
  if (secret !== undefined) {
    throw new Error(
      `${secret} would be readable in the service's file. Put it into the file truewire/environment in your configuration folder (~/.config), readable for you only, as ${secretOptions[secret]}.`,
    );
  }
  const parser = new Command("truewire");
  serveCommand(parser);
  const [serve] = parser.commands;
  serve?.showHelpAfterError("(run truewire serve --help for its arguments and options)").action(() => {});
  parser.parse(["serve", ...args], { from: "user" });
}

/** Runs commands of systemctl. Returns the reason why one could not be run, as a sentence. */
function runAll(commands: readonly string[]): string | undefined {
  for (const command of commands) {
    const { problem } = systemctl(command.split(" ").slice(2));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const noSystemctl = "systemctl cannot be run; this system may not use systemd.";

function systemctl(args: readonly string[]): { readonly output: string; readonly problem?: string } {
  const { error, status, stdout, stderr } = spawnSync("systemctl", ["--user", ...args], { encoding: "utf8" });
  if (error) return { output: "", problem: noSystemctl };
  const output = stdout.trim();
  if (status === 0) return { output };
  const reason = stderr.trim().split("\n")[0] || `it ended with code ${status}`;
  return { output, problem: `systemctl --user ${args[0]}: ${reason.replace(/\.?$/, ".")}` };
}

function lines(commands: readonly string[]): string {
  return commands.map((command) => `  ${command}`).join("\n");
}
