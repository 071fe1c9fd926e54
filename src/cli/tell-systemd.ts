import { spawn } from "node:child_process";

/**
 * Tells systemd where it asks for it (`Type=notify`): Node has no datagram sockets of the file system, so systemd's own command says it.
 * Where there is none, nothing is told, and systemd's time-out for a start says so.
 * Source: sd_notify(3), systemd-notify(1).
 */
export function tellSystemd(state: "ready" | "reloading" | "stopping", status: string): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  const told = [`${state.toUpperCase()}=1`, `MAINPID=${process.pid}`, `STATUS=${status}`];
  const command = spawn("systemd-notify", told, { stdio: "ignore" });
  command.on("error", (error) => console.error(`truewire: systemd-notify cannot be run: ${error.message}`));
  command.unref();
}
