import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Listens, and resolves with the URL. SIGINT and SIGTERM close the server, call `closed`, and end the process with code 0. */
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
  process.on("SIGINT", stop).on("SIGTERM", stop);
  const shown = host.includes(":") ? `[${host}]` : host;
  return `http://${shown}:${(server.address() as AddressInfo).port}`;
}
