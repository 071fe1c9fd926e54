import type { RealServer, StartedServer } from "../servers/server.ts";

/** What a trial has: a real server, and Truewire in front of it. */
export interface Place {
  /** Of Truewire, without `/v1`. */
  readonly truewire: string;
  /** The server's model, as Truewire names it. */
  readonly model: string;
  readonly server: RealServer;
  readonly started: StartedServer;
  /** Starts the server again on its port. */
  restart(): Promise<void>;
}

export interface Result {
  /** Undefined: the server or its model has no such thing. */
  readonly ok: boolean | undefined;
  /** What happened, in one line; empty: nothing is to be said. */
  readonly detail: string;
}

export interface Trial {
  readonly name: string;
  run(place: Place): Promise<Result>;
}
