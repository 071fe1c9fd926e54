import { join } from "node:path";

/** A service: the command that it runs, and the folder that relative paths of the command are relative to. */
export interface ServiceCommand {
  /** The absolute path of Node. */
  readonly node: string;
  /** The absolute path of the command's module, and its arguments. */
  readonly args: readonly string[];
  readonly folder: string;
}

/** A line of every unit. Units without it are not Truewire's, and are left alone. */
export const ownMark = "Written by `truewire service install`.";
/** The path of the unit of the user's manager. */
export function unitPath(home: string, env: Readonly<Record<string, string | undefined>>): string {
  return join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "systemd/user/truewire.service");
}

/**
 * Returns a systemd unit for the user's manager. Source: systemd.service(5), systemd.exec(5). It is ready when the models are loaded
 * (`Type=notify`); the state is reported by `systemd-notify`, a process of its own.
 */
export function systemdUnit({ node, args, folder }: ServiceCommand): string {
  return `# ${ownMark} \`truewire service uninstall\` removes it.
[Unit]
Description=Truewire

[Service]
Type=notify
NotifyAccess=all
# Keys, such as TRUEWIRE_API_KEY=sk-…: a file that only you can read.
EnvironmentFile=-%E/truewire/environment
WorkingDirectory=${folder.replaceAll("%", "%%")}
ExecStart=${[node, ...args].map(systemdWord).join(" ")}
ExecReload=/bin/kill -HUP $MAINPID
# A large model takes its time to load, or to be downloaded.
TimeoutStartSec=30min
# More than --grace.
TimeoutStopSec=30
Restart=on-failure
RestartSec=2
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`;
}

/** Quotes an argument of ExecStart. Source: systemd.service(5), "COMMAND LINES"; systemd.unit(5), "SPECIFIERS". */
function systemdWord(word: string): string {
  if (/^[\w@+=:,./-]+$/.test(word)) return word;
  const escaped = word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%").replaceAll("$", "$$$$");
  return `"${escaped}"`;
}

/** Quotes a word for a POSIX shell. */
export function shellWord(word: string): string {
  return /^[\w@+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
