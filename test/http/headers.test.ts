import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, json, serving, transports } from "../support/transports.ts";

describe.each(transports)("headers through $name", ({ open }) => {
  test("a chat stream has OpenAI's and the answer's own", async () => {
    const api = await open(serving(new ScriptedEngine(() => answer(["Hi"]))));
    const response = await api.fetch("/v1/chat/completions", chat("Hello", { stream: true }));
    const headers = Object.fromEntries(response.headers);
    expect(headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "openai-version": "2020-10-01",
    });
    expect(headers["x-request-id"]).toMatch(/^req_[0-9a-f]{32}$/);
    expect(headers["openai-processing-ms"]).toMatch(/^\d+$/);
    expect(Object.keys(headers).filter((name) => name.startsWith("x-ratelimit"))).toEqual([]);
    expect(await response.text()).toMatch(/data: \[DONE\]\n\n$/);
    await api.close();
  });

  // What the vendor refuses is known while a program is developed, also where it is served.
  test.each([
    [
      "/v1/chat/completions",
      { max_tokens: 5, max_completion_tokens: 5 },
      "OpenAI would answer 400: Setting 'max_tokens' and",
    ],
    [
      "/v1/messages",
      { max_tokens: 5, messages: [{ role: "user", content: "" }] },
      "Anthropic would answer 400: messages",
    ],
  ])("lean serves what the vendor refuses, and says so; exact refuses it (%s)", async (path, members, words) => {
    const api = await open(serving(new ScriptedEngine(() => answer(["Hi"]))));
    const asked = chat("Hello", members);
    const served = await api.fetch(path, asked);
    expect(served.status).toBe(200);
    expect(served.headers.get("x-truewire-warning")).toContain(words);
    const wire = {
      ...(asked.headers as Record<string, string>),
      "x-truewire-wire": "exact",
      "anthropic-version": "2023-06-01",
    };
    const refused = await api.fetch(path, { ...asked, headers: wire });
    expect(refused.status).toBe(400);
    expect(refused.headers.get("x-truewire-warning")).toBeNull();
    const { error } = (await refused.json()) as { error: { message: string } };
    expect(error.message.startsWith(words.replace(/^\w+ would answer 400: /, ""))).toBe(true);
    await api.close();
  });

  // Nothing is written of a start alone in profile exact, and the headers of a batch of which nothing is written were forgotten.
  test.each(["lean", "exact"] as const)(
    "rate limits of a source come with the start, wherever it stands (%s)",
    async (wire) => {
      const headers = { "x-ratelimit-remaining-requests": "9" };
      const start: GenerationEvent = { type: "start", choice: 0, source: { headers } };
      const before: GenerationEvent = { type: "extra", place: "chunk", value: { prompt_filter_results: [] } };
      const rest = [...answer(["Hi"])].map((batch) => batch.filter(({ type }) => type !== "start"));
      const api = await open(serving(new ScriptedEngine(() => [[before], [start], ...rest]), { wire }));
      for (const stream of [true, false]) {
        const response = await api.fetch("/v1/chat/completions", chat("Hello", { stream }));
        expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("9");
        await response.text();
      }
      await api.close();
    },
  );

  test("JSON answers and errors carry them, too", async () => {
    const api = await open(serving(new ScriptedEngine(() => answer(["Hi"]))));
    for (const init of [chat("Hello"), chat("Hello", { n: 0 }), json([])]) {
      const { headers } = await api.fetch("/v1/chat/completions", init);
      expect(headers.get("content-type")).toBe("application/json");
      expect(headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
      expect(headers.get("openai-version")).toBe("2020-10-01");
    }
    await api.close();
  });

  test("profile openai has its own: no cache-control on chat streams, no charset on completions streams", async () => {
    const api = await open(serving(new ScriptedEngine(() => answer(["Hi"])), { wire: "openai" }));
    const ofChat = await api.fetch("/v1/chat/completions", chat("Hello", { stream: true }));
    expect(ofChat.headers.get("cache-control")).toBeNull();
    expect(ofChat.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const ofText = await api.fetch("/v1/completions", json({ model: "scripted", prompt: "x", stream: true }));
    expect(ofText.headers.get("content-type")).toBe("text/event-stream");
    expect(ofText.headers.get("cache-control")).toBe("no-cache, must-revalidate");
    await Promise.all([ofChat.text(), ofText.text()]);
    await api.close();
  });
});
