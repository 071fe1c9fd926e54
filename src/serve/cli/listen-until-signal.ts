import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * The signals that stop a server. Windows sends SIGHUP when the console is closed, and ends the process ten seconds later, and SIGBREAK for
 * Ctrl+Break; it has no SIGTERM from other processes. Elsewhere, SIGHUP reads the configuration again. Source: Node.js, "Signal events".
 */
export function stopSignals(platform: NodeJS.Platform): readonly NodeJS.Signals[] {
  return platform === "win32" ? ["SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"] : ["SIGINT", "SIGTERM"];
}

/** Listens, and resolves with the URL. A signal (`stopSignals`) closes the server, calls `closed`, and ends the process with code 0. */
export async function listenUntilSignal(
  server: Server,
  { host, port }: { readonly host: string; readonly port: string },
  closed: () => void = () => {},
): Promise<string> {
  if (!/^\d+$/.test(port) || Number(port) > 65_535)
    throw new Error(`--port must be a number from 0 to 65535, not ${port}`);
  server.listen({ port: Number(port), host });
  await once(server, "listening");
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
    closed();
    process.exit(0);
  };
  for (const signal of stopSignals(process.platform)) process.on(signal, stop);
  const shown = host.includes(":") ? `[${host}]` : host;
  return `http://${shown}:${(server.address() as AddressInfo).port}`;
}
