/** SIGHUP: the terminal is closed; SIGBREAK: Ctrl+Break of Windows, which no other system sends. */
const terminalSignals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"] as const;

/**
 * Ignores the signals that a terminal sends to all of its processes, for a process that ends with its parent: the parent handles them, and decides
 * when this process ends.
 */
export function ignoreTerminalSignals(): void {
  for (const signal of terminalSignals) process.on(signal, () => {});
}
