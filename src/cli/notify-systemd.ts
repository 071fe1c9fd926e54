import { spawn } from "node:child_process";

/**
 * Reports the server's state to systemd if it asks for it (`Type=notify`). Node cannot open datagram sockets of the file system, so this
 * runs `systemd-notify`; where that is missing, the start ends with systemd's time-out. Source: sd_notify(3), systemd-notify(1).
 */
export function notifySystemd(state: "ready" | "reloading" | "stopping", status: string): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  const command = spawn("systemd-notify", [`${state.toUpperCase()}=1`, `MAINPID=${process.pid}`, `STATUS=${status}`], {
    stdio: "ignore",
  });
  command.on("error", (error) => console.error(`truewire: systemd-notify cannot be run: ${error.message}`));
  command.unref();
}
