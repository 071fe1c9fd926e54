import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { responseWriter } from "../support/response-stream.ts";
import { said, SocketClient } from "../support/response-socket.ts";
import type { SocketEvent } from "../support/response-socket.ts";
import { until } from "../support/scripted-engine.ts";
import { lean } from "../../src/wire/apis/profile.ts";
import { startGateway } from "./gateway.ts";
import { done, event, finish, startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";

const open: { gateway?: TruewireServer; upstream?: ScriptedServer; client?: SocketClient } = {};
afterEach(async () => {
  open.client?.socket.terminate();
  await open.gateway?.close(0);
  await open.upstream?.close();
});

/** Chunks of a dialect: the reasoning that comes at once, the rest of the answer, and a whole short answer. */
interface Dialect {
  readonly begin: () => string;
  readonly rest: () => string;
  readonly whole: () => string;
}

function newDialect(): Dialect {
  // Each response has an id of its own: when both had the same, the lane that began first was steered, whichever the test meant.
  const newWriter = (): ReturnType<typeof responseWriter> => responseWriter(lean, {}, Math.random);
  const writer = newWriter();
  const start = { type: "start", choice: 0 } as const;
  const end = [
    { type: "finish", choice: 0, reason: "stop" },
    { type: "end", end: { kind: "done" } },
  ] as const;
  return {
    begin: () => writer.write([start, { type: "reasoning-delta", choice: 0, text: "Hm." }]),
    rest: () => writer.write([{ type: "text-delta", choice: 0, text: "The plan." }, ...end]),
    whole: () => newWriter().write([start, { type: "text-delta", choice: 0, text: "Done." }, ...end]),
  };
}

describe("lanes and steering over an upstream", () => {
  test("that speaks Responses: each request is a POST of its own; a steer stops it and sends the next one", async () => {
    const waiting: { readonly response: ServerResponse; readonly dialect: Dialect }[] = [];
    let left = 0;
    const upstream = (open.upstream = await startScripted((response, body) => {
      const dialect = newDialect();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.on("close", () => void (response.writableFinished || left++));
      if (!JSON.stringify(body).includes("plan") || JSON.stringify(body).includes("weeks"))
        return void response.end(dialect.whole());
      response.write(dialect.begin());
      waiting.push({ response, dialect });
    }));
    const gateway = (open.gateway = await startGateway(upstream.url, { api: "responses" }));
    const client = (open.client = await new SocketClient(gateway.url).opened());
    for (const stream_id of ["b", "a"]) client.send({ model: "m", stream_id, input: "plan", store: false });
    await until(
      () => ["a", "b"].every((lane) => client.ofLane(lane).some(({ type }) => /delta/.test(type))),
      "both run",
    );
    const id = client.ofLane("a")[0]?.response?.id ?? "";
    client.steer(id, "Two weeks.");
    await until(() => client.ofLane("a").some(({ type }) => type === "response.steer.accepted"), "it is accepted");
    for (const { response, dialect } of waiting) response.write(dialect.rest());
    for (const { response } of waiting) response.end();
    await until(() => client.events.filter(({ type }) => type === "response.completed").length === 2, "all end");
    const ofA = client.ofLane("a");
    expect(ofA.find(({ type }) => type === "response.incomplete")?.response).toMatchObject({
      id,
      incomplete_details: { reason: "steered" },
      output: [{ type: "reasoning" }],
    });
    expect([said(ofA), said(client.ofLane("b"))]).toEqual(["Done.", "The plan."]);
    expect(upstream.requests).toHaveLength(3);
    const last = JSON.stringify(upstream.requests[2]?.body);
    expect(last).toContain("plan");
    expect(last).toContain("Two weeks.");
    for (const { body } of upstream.requests)
      expect(JSON.stringify(body)).not.toMatch(/stream_id|previous_response_id|steer|continuous_usage_stats/);
    expect(left).toBeLessThanOrEqual(1);
  });

  // Lanes and steering over servers of other APIs had users nowhere, and a steered answer of theirs had no usage.
  test("that speaks chat: a lane is refused, and so is a steer; the answer goes on", async () => {
    const waiting: ServerResponse[] = [];
    const upstream = (open.upstream = await startScripted((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event({ role: "assistant", content: "The " }));
      waiting.push(response);
    }));
    const gateway = (open.gateway = await startGateway(upstream.url, { api: "chat" }));
    const client = (open.client = await new SocketClient(gateway.url).opened());
    client.send({ model: "m", stream_id: "a", input: "plan" });
    await until(() => client.ofLane("a").length > 0, "it is answered");
    expect(client.ofLane("a")).toEqual([
      {
        type: "error",
        status: 400,
        stream_id: "a",
        error: expect.objectContaining({ code: "unsupported_parameter", param: "stream_id" }) as unknown,
      },
    ]);
    expect(upstream.requests).toEqual([]);
    client.send({ model: "m", input: "plan" });
    await until(() => client.ofLane(null).some(({ type }) => /delta/.test(type)), "it runs");
    client.steer(client.ofLane(null)[0]?.response?.id ?? "", "Two weeks.");
    const failed = (): SocketEvent | undefined => client.events.find(({ type }) => type === "response.steer.failed");
    await until(() => failed() !== undefined, "it is refused");
    expect(failed()?.error).toMatchObject({ code: "steering_not_supported" });
    for (const response of waiting) response.end(event({ content: "plan." }) + finish + done);
    await until(() => client.events.some(({ type }) => type === "response.completed"), "it ends");
    expect(said(client.ofLane(null))).toBe("The plan.");
  });
});
