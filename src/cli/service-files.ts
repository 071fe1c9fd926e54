import { join } from "node:path";

/** A service: the command that it runs, and the folder that relative paths of the command are relative to. */
export interface ServiceCommand {
  /** The absolute path of Node. */
  readonly node: string;
  /** The absolute path of the command's module, and its arguments. */
  readonly args: readonly string[];
  readonly folder: string;
}

/** A platform's way to run Truewire when the user logs in. */
export interface ServiceKind {
  /** The name of what runs it. */
  readonly manager: string;
  /** The file, in the user's own configuration. */
  path(home: string, env: Readonly<Record<string, string | undefined>>): string;
  write(command: ServiceCommand): string;
  /** The commands that start it, and those that stop it, for a file at this path. */
  start(path: string): readonly string[];
  stop(path: string): readonly string[];
  /** The file has never been tried on its platform. */
  readonly isUntested?: true;
}

/** A line of every file. Files without it are not Truewire's, and are left alone. */
export const ownMark = "Written by `truewire service install`.";
/** What systemd, launchd and the task scheduler call the service. */
const serviceName = "truewire";

/** The kinds of services by the platform of Node. */
export const serviceKinds: Readonly<Partial<Record<NodeJS.Platform, ServiceKind>>> = {
  linux: {
    manager: "systemd",
    path: (home, env) => join(env["XDG_CONFIG_HOME"] || join(home, ".config"), `systemd/user/${serviceName}.service`),
    write: systemdUnit,
    start: () => ["systemctl --user daemon-reload", `systemctl --user enable --now ${serviceName}`],
    stop: () => [`systemctl --user disable --now ${serviceName}`],
  },
  darwin: {
    manager: "launchd",
    path: (home) => join(home, `Library/LaunchAgents/${serviceName}.plist`),
    write: launchdPlist,
    start: (path) => [`launchctl bootstrap gui/$(id -u) ${shellWord(path)}`],
    stop: () => [`launchctl bootout gui/$(id -u)/${serviceName}`],
    isUntested: true,
  },
  win32: {
    manager: "the task scheduler",
    path: (home, env) => join(env["LOCALAPPDATA"] || join(home, "AppData/Local"), "Truewire/truewire-task.xml"),
    write: scheduledTask,
    start: (path) => [`schtasks /Create /TN ${serviceName} /XML "${path}"`, `schtasks /Run /TN ${serviceName}`],
    stop: () => [`schtasks /End /TN ${serviceName}`, `schtasks /Delete /TN ${serviceName} /F`],
    isUntested: true,
  },
};

/**
 * Returns a systemd unit for the user's manager. Source: systemd.service(5), systemd.exec(5). It is ready when the models are loaded
 * (`Type=notify`); the state is reported by `systemd-notify`, a process of its own.
 */
function systemdUnit({ node, args, folder }: ServiceCommand): string {
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

/** Returns a launchd property list. Source: launchd.plist(5). */
function launchdPlist({ node, args, folder }: ServiceCommand): string {
  const words = [node, ...args].map((word) => `    <string>${xmlText(word)}</string>\n`).join("");
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ${ownMark} -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${serviceName}</string>
  <key>ProgramArguments</key>
  <array>
${words}  </array>
  <key>WorkingDirectory</key>
  <string>${xmlText(folder)}</string>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>30</integer>
</dict>
</plist>
`;
}

/**
 * Returns a task for Windows' task scheduler, which starts at log-on: Windows runs only programs as services that are written as services.
 * Source: https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema.
 */
function scheduledTask({ node, args, folder }: ServiceCommand): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${ownMark} -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Triggers>
    <LogonTrigger />
  </Triggers>
  <Settings>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>3</Count>
    </RestartOnFailure>
  </Settings>
  <Actions>
    <Exec>
      <Command>${xmlText(node)}</Command>
      <Arguments>${xmlText(args.map(windowsWord).join(" "))}</Arguments>
      <WorkingDirectory>${xmlText(folder)}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`;
}

/** Quotes an argument as Microsoft's C runtime reads it: backslashes count only in front of a quote. */
function windowsWord(word: string): string {
  if (/^[^\s"]+$/.test(word)) return word;
  return `"${word.replaceAll(/(\\*)("|$)/g, (_, slashes: string, quote: string) => slashes + slashes + quote.replace('"', '\\"'))}"`;
}

function xmlText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Quotes a word for a POSIX shell. */
export function shellWord(word: string): string {
  return /^[\w@+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
