import { describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { answer, ScriptedEngine, until } from "../support/scripted-engine.ts";
import { chat, events } from "../support/transports.ts";

describe("another configuration while it runs", () => {
  test("running streams end as they began; models that stay are not opened again; keys change at once", async () => {
    let go: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (go = resolve));
    const leaving = new ScriptedEngine(async function* () {
      const [first, ...rest] = answer(["Hello", " world"]);
      if (first) yield first;
      await waiting;
      yield* rest;
    }, "leaving");
    const staying = new ScriptedEngine(() => answer(["Hi"]), "staying");
    const coming = new ScriptedEngine(() => answer(["New"]), "coming");
    const entry = (engine: ScriptedEngine): { kind: "engine"; engine: ScriptedEngine } => ({ kind: "engine", engine });
    const server = await createServer({ port: 0, logLevel: "silent", models: [entry(leaving), entry(staying)] });
    const names = async (): Promise<string[]> => {
      const list = (await (
        await fetch(`${server.url}/v1/models`, { headers: { authorization: "Bearer key" } })
      ).json()) as {
        data: { id: string }[];
      };
      return list.data.map(({ id }) => id);
    };
    expect(await names()).toEqual(["leaving", "staying"]);
    const response = await fetch(`${server.url}/v1/chat/completions`, chat("x", { stream: true, model: "leaving" }));
    await server.reload({ apiKey: "key", models: [entry(staying), entry(coming)] });
    expect(await names()).toEqual(["staying", "coming"]);
    expect((await fetch(`${server.url}/v1/models`)).status).toBe(401);
    await until(() => leaving.closedWith !== undefined, "the old engine is closed");
    expect(leaving.closedWith).toBeGreaterThan(3_600_000);
    expect(staying.closedWith).toBeUndefined();
    go();
    const chunks = events(await response.text());
    expect(JSON.stringify(chunks)).toContain(" world");
    expect(chunks.at(-1)).toBe("data: [DONE]");
    await server.close(0);
  });

  test("one that is wrong changes nothing", async () => {
    const engine = new ScriptedEngine(() => answer(["Hi"]));
    const server = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "engine", engine }] });
    await expect(server.reload({ port: -1, models: [] })).rejects.toThrow("port: expected a whole number");
    await expect(server.reload({ models: ["./no/such/program.ts"] })).rejects.toThrow();
    const response = await fetch(`${server.url}/v1/chat/completions`, chat("x"));
    expect(response.status).toBe(200);
    expect(engine.closedWith).toBeUndefined();
    await server.close(0);
  });
});
