import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readChatRequest } from "../../src/wire/apis/chat/request.ts";
import { ChatTemplate } from "../../src/text/templates/chat-template.ts";

// llama.cpp's own renders of published templates: the same bytes must come out, except for those waived by name and reason.

const shared = new URL("../../../shared/", import.meta.url);
const renders = new URL("vectors/_renders.jsonl", shared);
const waivers = JSON.parse(readFileSync(new URL("../waivers/renders.json", import.meta.url), "utf8")) as Readonly<
  Record<string, string>
>;

interface Render {
  readonly template: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly tools: readonly unknown[];
  readonly params: {
    readonly enable_thinking: boolean;
    readonly add_generation_prompt?: boolean;
    readonly continue_final_message?: "content" | "reasoning";
  };
  readonly prompt: string;
  readonly generation_prompt: string;
}

// The day on which they were rendered; some templates print it.
const now = new Date(2026, 10, 21);

if (!existsSync(renders)) console.log("skipped: no ../shared/vectors with renders to compare with");

describe.skipIf(!existsSync(renders))("llama.cpp's renders (skipped without ../shared)", () => {
  const cases = existsSync(renders) ? named(readFileSync(renders, "utf8").trim().split("\n")) : [];
  const templates = new Map<string, ChatTemplate>();

  test.each(cases)("%s", (name, render) => {
    let template = templates.get(render.template);
    if (!template) {
      const source = readFileSync(new URL(`chat-templates/${render.template}`, shared), "utf8");
      templates.set(render.template, (template = new ChatTemplate({ source, specialTokens: [] })));
    }
    const got = rendered(template, render);
    const want = { prompt: render.prompt, generationPrefix: render.generation_prompt };
    if (name in waivers) expect(got, "the waiver is needed no more").not.toEqual(want);
    else expect(got).toEqual(want);
  });

  test("every waiver names a render", () => {
    const names = new Set(cases.map(([name]) => name));
    expect(Object.keys(waivers).filter((name) => !names.has(name))).toEqual([]);
  });
});

function rendered(template: ChatTemplate, { messages, tools, params }: Render): unknown {
  const continues = params.continue_final_message;
  const shown = messages.map((message, index) =>
    // Without content the thought is still open.
    continues === "reasoning" && index === messages.length - 1 ? { ...message, content: null } : message,
  );
  const { request } = readChatRequest(
    {
      model: "m",
      messages: shown,
      ...(tools.length > 0 && { tools }),
      chat_template_kwargs: { enable_thinking: params.enable_thinking },
      add_generation_prompt: params.add_generation_prompt ?? true,
      ...(continues !== undefined && { continue_final_message: true }),
    },
    "req_1",
  );
  if (request.prompt.kind !== "chat") throw new Error("not a chat");
  try {
    const { messages, template: options } = request.prompt;
    const prompt = template.render({ messages, ...(request.tools && { tools: request.tools }), options, now });
    return { prompt: prompt.text, generationPrefix: prompt.generationPrefix };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** Template, kind and a number: the names that waivers use. */
function named(lines: readonly string[]): [name: string, render: Render][] {
  const counts = new Map<string, number>();
  return lines.map((line) => {
    const render = JSON.parse(line) as Render;
    const { continue_final_message: continues } = render.params;
    const kind = `${render.template.replace(".jinja", "")}, ${continues ? `continued ${continues}` : `${render.tools.length} tools`}`;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return [count === 1 ? kind : `${kind} (${count})`, render];
  });
}
