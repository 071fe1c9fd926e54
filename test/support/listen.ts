import { createServer, type RequestListener } from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";

/** A server of a test on loopback. */
export interface Listening {
  /** `http://127.0.0.1:…` */
  readonly url: string;
  readonly port: number;
  /** Ends its connections, too. */
  close(): Promise<void>;
}

/** Starts a server, or an HTTP server with this listener, by default on a free port. */
export async function listen(given: Server | RequestListener, at = 0): Promise<Listening> {
  const server = typeof given === "function" ? createServer(given) : given;
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket.once("close", () => sockets.delete(socket))));
  await new Promise<void>((resolve) => server.listen(at, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
