import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accumulate, type Generation } from "../../src/wire/core/accumulate.ts";
import type { CacheMiss } from "../../src/wire/core/cache-miss.ts";
import type { Engine } from "../../src/wire/core/engine.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { Message } from "../../src/wire/core/message.ts";
import { writeRandomKind } from "../fixtures/random-kinds.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { openBuilt, request } from "./local-engine.ts";

const kinds = ["mamba", "lfm2", "gemma3", "llama"] as const;
const chatTemplate =
  "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
beforeAll(() => {
  for (const kind of kinds) {
    if (kind === "llama") writeRandomModel(join(folder, "llama.gguf"));
    else writeRandomKind(join(folder, `${kind}.gguf`), kind);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One slot, so that each other conversation takes it. */
function open(kind: string, cacheMemory: number): Promise<Engine> {
  return openBuilt({ model: join(folder, `${kind}.gguf`), slots: 1, chatTemplate, cacheMemory, flashAttention: "off" });
}

interface Heard extends Generation {
  readonly missed: readonly CacheMiss[];
}

async function chat(engine: Engine, messages: readonly Message[]): Promise<Heard> {
  const events: GenerationEvent[] = [];
  const missed: CacheMiss[] = [];
  const asked = request({ prompt: { kind: "chat", messages, template: {} }, limits: { maxTokens: 4 } });
  const observer = {
    attempt: (): never => {
      throw new Error("no other server is asked");
    },
    cacheMissed: (miss: CacheMiss) => void missed.push(miss),
    repaired: () => {},
  };
  for await (const batch of engine.generate(asked, observer)) events.push(...batch);
  return { ...accumulate(events), missed };
}

function cached({ usage }: Generation): number {
  return Number((usage?.promptDetails as { cached_tokens?: number } | undefined)?.cached_tokens);
}

function said({ choices, end }: Generation): unknown {
  return [end, choices.map(({ text }) => text)];
}

const system: Message = { role: "system", content: "ba ga fa ".repeat(20) };
const first: Message[] = [system, { role: "user", content: "da ka la ".repeat(15) }];
/** The answer is told in other words than the model's, as a template does that drops thoughts. */
const second: Message[] = [...first, { role: "assistant", content: "ma" }, { role: "user", content: "na ".repeat(9) }];
const edited: Message[] = [...second.slice(0, -1), { role: "user", content: "pa ra sa ".repeat(9) }];
const other: Message[] = [
  { role: "system", content: "zo zu ".repeat(40) },
  { role: "user", content: "ti to ".repeat(20) },
];
const sameSystem: Message[] = [system, { role: "user", content: "vo vu ".repeat(20) }];

describe.each(kinds)("%s", (kind) => {
  test("a conversation continues from the checkpoint before the answer, and from the one before a last message that is edited", async () => {
    const [engine, fresh] = [await open(kind, 2 ** 26), await open(kind, 0)];
    try {
      for (const [messages, least] of [
        [first, 0],
        [second, 200],
        [edited, 230],
      ] as const) {
        const heard = await chat(engine, messages);
        await chat(fresh, other);
        expect(said(heard)).toEqual(said(await chat(fresh, messages)));
        expect(cached(heard), JSON.stringify(heard.usage)).toBeGreaterThanOrEqual(least);
      }
    } finally {
      await Promise.all([engine.close(0), fresh.close(0)]);
    }
  });

  test("a conversation that has lost its slot is restored from the prompt cache", async () => {
    const [engine, fresh] = [await open(kind, 2 ** 26), await open(kind, 0)];
    try {
      await chat(engine, first);
      await chat(engine, other);
      const heard = await chat(engine, second);
      expect(cached(heard)).toBeGreaterThanOrEqual(200);
      expect(heard.missed.map(({ cause }) => cause)).not.toContain("evicted");
      const again = await chat(engine, other);
      expect(cached(again)).toBeGreaterThanOrEqual(200);
      // Of another conversation's copy the beginning is of use, and the copy stays.
      const branch = await chat(engine, sameSystem);
      expect(cached(branch)).toBeGreaterThanOrEqual(120);
      const back = await chat(engine, edited);
      expect(cached(back)).toBeGreaterThanOrEqual(230);
      for (const [messages, answer] of [
        [second, heard],
        [sameSystem, branch],
        [edited, back],
      ] as const) {
        await chat(fresh, other);
        expect(said(answer)).toEqual(said(await chat(fresh, messages)));
      }
    } finally {
      await Promise.all([engine.close(0), fresh.close(0)]);
    }
  });

  test("without memory for that, its prompt is decoded again, and the miss is reported as an eviction", async () => {
    const engine = await open(kind, 0);
    try {
      await chat(engine, first);
      await chat(engine, other);
      const heard = await chat(engine, second);
      expect(cached(heard)).toBeLessThan(16);
      expect(heard.missed.map(({ cause }) => cause)).toEqual(["evicted"]);
    } finally {
      await engine.close(0);
    }
  });
});
