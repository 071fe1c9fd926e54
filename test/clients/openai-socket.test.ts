import { createRequire } from "node:module";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";

/** What the socket client of every version of the SDK has. */
interface Socket {
  on(type: "event", listener: (event: Event) => void): void;
  on(type: "error", listener: (error: Error & { readonly error?: { readonly code?: string } }) => void): void;
  send(event: object): void;
  close(): void;
}
interface Event {
  readonly type: string;
  readonly stream_id?: string;
  readonly delta?: string;
  readonly response?: { readonly id: string; readonly previous_response_id?: string | null };
}

const { resolve } = createRequire(import.meta.url);
/** The newest SDK, where it is installed under its own name next to the pinned one. */
const newest = "openai-7";
const hasNewest = ((): boolean => {
  try {
    return resolve(newest) !== "";
  } catch {
    console.log(`skipped: ${newest} is not installed`);
    return false;
  }
})();

const clients: readonly [name: string, open: (baseURL: string) => Promise<Socket>][] = [
  ["the pinned SDK", async (baseURL) => new ResponsesWS(new OpenAI({ baseURL, apiKey: "none" })) as unknown as Socket],
  [
    "the newest SDK",
    async (baseURL) => {
      const { default: Client } = (await import(newest)) as { default: typeof OpenAI };
      const { ResponsesWS: Line } = (await import(`${newest}/resources/responses/ws`)) as {
        ResponsesWS: new (client: OpenAI) => unknown;
      };
      return new Line(new Client({ baseURL, apiKey: "none" })) as Socket;
    },
  ],
];

describe.each(clients)("the WebSocket client of %s", (name, open) => {
  let server: FixtureServer;
  let socket: Socket;
  const events: Event[] = [];
  const errors: unknown[] = [];
  const model = "programmed";
  const isSkipped = name === "the newest SDK" && !hasNewest;
  beforeAll(async () => {
    if (isSkipped) return;
    server = await serveFixture("--wire", "exact");
    socket = await open(server.baseURL);
    socket.on("event", (event) => events.push(event));
    socket.on("error", (error) => errors.push(error.error?.code ?? error.message));
  });
  afterAll(async () => {
    if (isSkipped) return;
    socket.close();
    await server.close();
  });

  const of = (lane: string | undefined, type: string): Event[] =>
    events.filter((event) => event.stream_id === lane && event.type === type);
  const text = (lane: string | undefined): string =>
    of(lane, "response.output_text.delta")
      .map(({ delta }) => delta)
      .join("");
  const seen = (lane: string | undefined, type: string, times = 1): Promise<void> =>
    expect.poll(() => of(lane, type).length).toBe(times);

  test.skipIf(isSkipped)("lanes: events come with the lane's id, and without one on the default lane", async () => {
    const create = { type: "response.create", model, store: false };
    socket.send({ ...create, stream_id: "a", input: "#plain" });
    socket.send({ ...create, stream_id: "b", input: "#unicode" });
    socket.send({ ...create, input: "#plain" });
    for (const lane of ["a", "b", undefined]) await seen(lane, "response.completed");
    expect([text("a"), text("b"), text(undefined)]).toEqual([said.plain, said.unicode, said.plain]);
    const [first] = of("a", "response.completed");
    socket.send({ ...create, stream_id: "c", input: "#plain", previous_response_id: first?.response?.id });
    await seen("c", "response.completed");
    expect(of("c", "response.created")[0]?.response?.previous_response_id).toBe(first?.response?.id);
    expect(errors).toEqual([]);
  });

  test.skipIf(isSkipped)("a steer that comes too late, and an invalid lane, are reported", async () => {
    const [first] = of("a", "response.completed");
    socket.send({ type: "response.steer", previous_response_id: first?.response?.id, input: "Hi" });
    await seen("a", "response.steer.failed");
    socket.send({ type: "response.create", model, stream_id: "", input: "#plain" });
    await expect.poll(() => errors.length + of(undefined, "error").length).toBeGreaterThan(0);
  });
});
