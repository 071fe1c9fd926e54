import { createHash } from "node:crypto";
import { RestartPause } from "../../../engines/lifecycle/restart-pause.ts";
import type { ExecutorSetup } from "../executor.ts";
import { httpTransport, McpConnection } from "./connection.ts";
import { type StdioCommand, StdioTransport } from "./stdio-transport.ts";

/** The longest pause before a restart that calls wait for, in milliseconds. */
const maxWaitMs = 2000;

/** A session with a server, for the credentials of one client. */
export type Sessions = {
  /** Resolves with an open session; rejects with an Error with a reason. `headers`: those of the client. */
  session(headers: Readonly<Record<string, string>>): Promise<McpConnection>;
  /** A call has succeeded. */
  succeeded?(): void;
  /** The session is not used again. */
  forget(connection: McpConnection): void;
  close(): Promise<void>;
};

/**
 * Keeps a server that is a child process running, from now on: it is started again when it has ended, after a pause that grows up to a
 * minute. No request of a client starts it; one that comes while it starts waits for it.
 */
export function openStdioServer(command: StdioCommand, { name, timeoutMs, log }: ExecutorSetup): Sessions {
  const pause = new RestartPause();
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<McpConnection>;
  let transport: StdioTransport;
  const start = (): void => {
    const own = (transport = new StdioTransport(command));
    current = McpConnection.open(own, timeoutMs);
    current.then(
      ({ closed }) => closed.then(() => startAgain(own.reason)),
      // What the process wrote says more than that the session was not opened.
      (error: unknown) => startAgain(own.hasEnded ? own.reason : reasonOf(error)),
    );
  };
  const startAgain = (reason: string): void => {
    if (isClosed) return;
    const ms = pause.next(Date.now());
    log?.(`the MCP server ${name} has ended, and is started again: ${reason}`, "warn", { pauseMs: ms });
    if (ms === 0) return start();
    // Calls wait for a short pause.
    const waiting = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
    timer?.unref();
    const begun = waiting.then(() => {
      if (!isClosed) start();
      return current;
    });
    current = ms <= maxWaitMs ? begun : Promise.reject(new Error("it has ended, and is started again after a pause"));
    for (const each of [begun, current]) each.catch(() => {});
  };
  start();
  return {
    session: () => current,
    succeeded: () => pause.succeeded(),
    forget: () => {},
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await transport.close();
    },
  };
}

interface Session {
  readonly connection: Promise<McpConnection>;
  readonly timer: NodeJS.Timeout;
  opened: McpConnection | undefined;
}

/** The most sessions with one server: one for the credentials of each client. */
const maxSessions = 64;
/** A session without a call for this long is closed, in milliseconds. */
const idleMs = 10 * 60_000;
/** A server over HTTP may be replaced by another version without a word: its list is believed for this long, in milliseconds. */
const usualListAgeMs = 60_000;

export interface HttpServerSetup {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** How long its list of functions is believed, in milliseconds; default: a minute. */
  readonly maxListAgeMs?: number;
}

/** Opens sessions with a server over HTTP, when they are needed: one for each client's credentials, which win over those of the configuration. */
export function openHttpServer(
  { url, headers, maxListAgeMs = usualListAgeMs }: HttpServerSetup,
  { timeoutMs }: ExecutorSetup,
): Sessions {
  const sessions = new Map<string, Session>();
  const drop = (key: string): void => {
    const found = sessions.get(key);
    if (!found) return;
    sessions.delete(key);
    clearTimeout(found.timer);
    found.connection.then(
      (connection) => connection.close(),
      () => {},
    );
  };
  return {
    session(ofClient) {
      const key = createHash("sha256")
        .update(JSON.stringify(Object.entries(ofClient).toSorted()))
        .digest("base64");
      const found = sessions.get(key);
      if (found) {
        found.timer.refresh();
        return found.connection;
      }
      const [oldest] = sessions.keys();
      if (sessions.size >= maxSessions && oldest !== undefined) drop(oldest);
      const connection = McpConnection.open(httpTransport(url, { ...ofClient, ...headers }), timeoutMs, maxListAgeMs);
      const session: Session = { connection, timer: setTimeout(() => drop(key), idleMs).unref(), opened: undefined };
      sessions.set(key, session);
      const forget = (): void => {
        if (sessions.get(key) === session) drop(key);
      };
      connection.then((opened) => {
        session.opened = opened;
        return opened.closed.then(forget);
      }, forget);
      return connection;
    },
    forget(connection) {
      for (const [key, { opened }] of sessions) if (opened === connection) drop(key);
    },
    async close() {
      for (const key of sessions.keys()) drop(key);
    },
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
