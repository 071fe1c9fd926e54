import { once } from "node:events";
import { WebSocket } from "ws";
import { until } from "./scripted-engine.ts";

/** An event, as a client reads it. */
export interface SocketEvent {
  readonly type: string;
  readonly status?: number;
  readonly error?: { readonly code: string | null; readonly message: string; readonly param: string | null };
  readonly response?: { readonly id: string; readonly output: readonly unknown[] };
  readonly [member: string]: unknown;
}

/** A client's end of a connection. */
export class SocketClient {
  readonly socket: WebSocket;
  readonly events: SocketEvent[] = [];
  /** The messages as they came. */
  readonly texts: string[] = [];
  closed: { readonly code: number } | undefined;

  constructor(url: string, headers: Record<string, string> = {}) {
    this.socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, { headers });
    this.socket.on("message", (data: Buffer) => {
      this.texts.push(data.toString());
      this.events.push(JSON.parse(data.toString()) as SocketEvent);
    });
    this.socket.on("close", (code) => (this.closed = { code }));
    this.socket.on("error", () => {});
  }

  async opened(): Promise<this> {
    await once(this.socket, "open");
    return this;
  }

  send(body: object): void {
    this.socket.send(JSON.stringify({ type: "response.create", model: "scripted", ...body }));
  }

  steer(id: string, input: unknown, members: object = {}): void {
    this.socket.send(JSON.stringify({ type: "response.steer", previous_response_id: id, input, ...members }));
  }

  /** The events of a lane; of `null`: those of no lane. */
  ofLane(lane: string | null): SocketEvent[] {
    return this.events.filter(({ stream_id: own = null }) => own === lane);
  }

  /** All events up to the one that ends the answer. */
  async answer(body: object): Promise<SocketEvent[]> {
    this.events.length = 0;
    this.send(body);
    await until(() => ends.has(this.events.at(-1)?.type ?? ""), "the answer ends");
    return [...this.events];
  }
}

const ends = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);

export function said(events: readonly SocketEvent[]): string {
  return events.map((event) => (event.type === "response.output_text.delta" ? String(event["delta"]) : "")).join("");
}

export function idOf(events: readonly SocketEvent[]): string {
  return events.at(-1)?.response?.id ?? "";
}
