import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, serving, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";

describe.each(transports)("keys through $name", ({ open }) => {
  let api: Api;
  const engine = new ScriptedEngine(() => answer(["Hi"]));
  beforeAll(async () => {
    api = await open(serving(engine, { apiKey: ["sk-first-0123456789", "sk-second-0123456789"] }));
  });
  afterAll(() => api.close());

  async function withAuthorization(
    authorization?: string,
    more: Record<string, string> = {},
  ): Promise<{ status: number; error?: { message: string; code: string | null } }> {
    const init = chat("Hello");
    const headers = {
      ...(init.headers as Record<string, string>),
      ...(authorization !== undefined && { authorization }),
      ...more,
    };
    const response = await api.fetch("/v1/chat/completions", { ...init, headers });
    return { status: response.status, ...((await response.json()) as object) };
  }

  test.each(["Bearer sk-first-0123456789", "bearer  sk-second-0123456789", `Basic ${btoa(":sk-first-0123456789")}`])(
    "%s may enter",
    async (authorization) => {
      expect(await withAuthorization(authorization)).toMatchObject({ status: 200 });
    },
  );

  test("a key may come as X-Api-Key, unless there is another one", async () => {
    const key = { "x-api-key": "sk-second-0123456789" };
    expect(await withAuthorization(undefined, key)).toMatchObject({ status: 200 });
    expect(await withAuthorization("Bearer sk-wrong-9876543210", key)).toMatchObject({ status: 401 });
  });

  // Ours pointed to OpenAI's page for keys.
  test("a 401 says whose keys these are", async () => {
    for (const authorization of [undefined, "Bearer sk-wrong-9876543210"]) {
      const { status, error } = await withAuthorization(authorization);
      expect(status).toBe(401);
      expect(error?.message).toContain("(apiKey, keys or keysFile)");
      expect(error?.message).not.toContain("openai.com");
    }
  });

  test("a wrong key is a 401 in OpenAI's words that shows it masked", async () => {
    const exact = { "x-truewire-wire": "exact" };
    expect(await withAuthorization("Bearer sk-wrong-9876543210", exact)).toMatchObject({
      status: 401,
      error: {
        message: `Incorrect API key provided: sk-wrong${"*".repeat(7)}3210. You can find your API key at https://platform.openai.com/account/api-keys.`,
        type: "invalid_request_error",
        param: null,
        code: "invalid_api_key",
      },
    });
  });

  test.each([undefined, "", "Bearer", "Bearer ", "Basic !!!", "Digest x", "sk-first-0123456789"])(
    "%j holds no key: 401",
    async (authorization) => {
      const { status, error } = await withAuthorization(authorization);
      expect(status).toBe(401);
      expect(error?.message).toMatch(/^You didn't provide an API key\./);
    },
  );

  test("part of a key, or more than it, is no key", async () => {
    for (const key of ["sk-first-012345678", "sk-first-01234567890", "SK-FIRST-0123456789"]) {
      expect(await withAuthorization(`Bearer ${key}`)).toMatchObject({
        status: 401,
        error: { code: "invalid_api_key" },
      });
    }
  });

  test("models need a key, health does not, and nothing reached the engine without one", async () => {
    const before = engine.requests.length;
    expect((await api.fetch("/v1/models")).status).toBe(401);
    expect((await withAuthorization()).status).toBe(401);
    expect((await api.fetch("/health")).status).toBe(200);
    // Both named the models to everybody.
    for (const path of ["/", "/health"]) {
      const accept = "text/plain";
      expect(await (await api.fetch(path, { headers: { accept } })).text()).not.toContain("scripted");
      const headers = { accept, authorization: `Bearer sk-first-0123456789` };
      expect(await (await api.fetch(path, { headers })).text()).toContain("scripted");
    }
    expect(engine.requests.length).toBe(before);
  });
});
