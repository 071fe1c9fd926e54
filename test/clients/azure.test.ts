import OpenAI, { AzureOpenAI } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

const messages = [{ role: "user", content: "Hi" }] as const;

// Clients that are set up for Azure got 404: its paths and its header for the key were not known.
describe("clients of Azure", () => {
  const engine = new ScriptedEngine(() => answer(["Hello."]), "small", "org/large");
  let server: TruewireServer;
  beforeAll(async () => {
    server = await createServer({ port: 0, logLevel: "silent", apiKey: "sk-plain-0123456789", ...serving(engine) });
  });
  afterAll(() => server.close(0));

  const azure = (apiKey: string, deployment?: string): AzureOpenAI =>
    new AzureOpenAI({
      endpoint: server.url,
      apiKey,
      apiVersion: "2025-04-01-preview",
      maxRetries: 0,
      ...(deployment !== undefined && { deployment }),
    });

  test("the official SDK: chat, with a stream and without, responses and models", async () => {
    const client = azure("sk-plain-0123456789");
    const chat = await client.chat.completions.create({ model: "small", messages: [...messages] });
    expect(chat.choices[0]?.message.content).toBe("Hello.");
    let text = "";
    for await (const chunk of await client.chat.completions.create({
      model: "small",
      messages: [...messages],
      stream: true,
    }))
      text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("Hello.");
    expect((await client.responses.create({ model: "small", input: "Hi" })).output_text).toBe("Hello.");
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["small", "org/large"]);
  });

  test("the deployment of the client is the model, whatever the body names", async () => {
    const client = azure("sk-plain-0123456789", "small");
    await client.chat.completions.create({ model: "gpt-4o", messages: [...messages] });
    expect(engine.requests.at(-1)?.model).toBe("small");
  });

  test("a wrong key is a 401", async () => {
    await expect(azure("sk-wrong").models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });

  test.each([
    ["/openai/deployments/small/chat/completions?api-version=2024-10-21", { messages }, "small"],
    ["/openai/deployments/org%2Flarge/chat/completions", { messages }, "org/large"],
    ["/openai/deployments/org/large/chat/completions/", { messages }, "org/large"],
    ["/openai/deployments/small/completions?api-version=1", { prompt: "Hi" }, "small"],
    ["/v1/deployments/small/chat/completions", { messages }, "small"],
    ["/deployments/small/chat/completions", { messages }, "small"],
    ["/openai/v1/chat/completions", { model: "small", messages }, "small"],
    ["/openai/v1/responses", { model: "small", input: "Hi" }, "small"],
    ["/openai/responses?api-version=preview", { model: "small", input: "Hi" }, "small"],
    ["/openai/deployments/small/responses", { input: "Hi" }, "small"],
  ])("POST %s", async (path, body, model) => {
    const { headers, ...init } = json(body);
    const response = await fetch(server.url + path, {
      ...init,
      headers: { ...headers, "api-key": "sk-plain-0123456789" },
    });
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("Hello.")]);
    expect(engine.requests.at(-1)?.model).toBe(model);
  });

  test.each(["/openai/deployments/", "/openai/deployments/small", "/openai/deployments/small/chat"])(
    "POST %s is a 404",
    async (path) => {
      const { headers, ...init } = json({ model: "small", messages });
      const response = await fetch(server.url + path, {
        ...init,
        headers: { ...headers, "api-key": "sk-plain-0123456789" },
      });
      expect(response.status).toBe(404);
    },
  );
});
