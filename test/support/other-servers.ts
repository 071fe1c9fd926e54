import type { Server } from "node:http";
import { afterAll } from "vitest";
import { listen, type Listening } from "./listen.ts";

/** Servers that a test starts beside the one under test: `listening` gives a server's address; all are closed after the tests. */
export function otherServers(): (server: Server) => Promise<string> {
  const servers: Listening[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.close())));
  return async (server) => {
    const listening = await listen(server);
    servers.push(listening);
    return listening.url;
  };
}
