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
