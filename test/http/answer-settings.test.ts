import { describe, expect, test } from "vitest";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, events, transports } from "../support/transports.ts";
import type { Api } from "../support/transports.ts";
import type { EngineModel } from "../../src/serve/config/model-schema.ts";

// What the configuration of a model says of the form of its answers, in both places where it shows: chunks and bodies.

interface Shown {
  readonly service_tier?: string;
  readonly system_fingerprint?: string | null;
  readonly choices: readonly object[];
}

async function shown(api: Api, more: Readonly<Record<string, unknown>> = {}): Promise<readonly Shown[]> {
  const body = await (await api.fetch("/v1/chat/completions", chat("Hello", more))).json();
  const stream = await (await api.fetch("/v1/chat/completions", chat("Hello", { ...more, stream: true }))).text();
  const chunks = events(stream).filter((event) => typeof event === "object");
  expect(chunks.length).toBeGreaterThan(2);
  return [body, ...chunks] as readonly Shown[];
}

describe.each(transports)("through $name", ({ open }) => {
  const serve = (name: string, settings: Partial<EngineModel>): Promise<Api> => {
    const engine = new ScriptedEngine(() => answer(["Hi"]), name);
    return open({ models: [{ kind: "engine", engine, wire: "openai", ...settings }] });
  };

  test("serviceTier stands in every chunk and body; without it, default", async () => {
    const flex = await serve("scripted", { serviceTier: "flex" });
    for (const one of await shown(flex)) expect(one.service_tier).toBe("flex");
    await flex.close();
    const plain = await serve("scripted", {});
    for (const one of await shown(plain)) expect(one.service_tier).toBe("default");
    await plain.close();
  });

  test("the form lean has no service_tier, and always the logprobs key, whatever is set", async () => {
    const api = await serve("gpt-5", { wire: "lean", serviceTier: "flex", logprobsKey: false });
    for (const one of await shown(api, { model: "gpt-5" })) {
      expect(one).not.toHaveProperty("service_tier");
      for (const choice of one.choices) expect(choice).toHaveProperty("logprobs", null);
    }
    await api.close();
  });

  test.each<[string, Partial<EngineModel>, boolean]>([
    ["gpt-4o", {}, true],
    ["gpt-5-mini", {}, false],
    ["gpt-4o", { logprobsKey: false }, false],
    ["gpt-5-mini", { logprobsKey: true }, true],
  ])("%s with %j: a logprobs key: %j", async (name, settings, has) => {
    const api = await serve(name, settings);
    for (const one of await shown(api, { model: name }))
      for (const choice of one.choices) expect("logprobs" in choice).toBe(has);
    await api.close();
  });

  test("whoever asks for log probabilities gets the key", async () => {
    const api = await serve("gpt-5-mini", { logprobsKey: false });
    for (const one of await shown(api, { model: "gpt-5-mini", logprobs: true }))
      for (const choice of one.choices) expect(choice).toHaveProperty("logprobs");
    await api.close();
  });
});
