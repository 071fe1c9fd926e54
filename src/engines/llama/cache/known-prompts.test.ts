import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { describeCacheMiss } from "../../../wire/core/cache-miss.ts";
import type { CacheMiss } from "../../../wire/core/cache-miss.ts";
import type { Message, Tool } from "../../../wire/core/message.ts";
import { ChatTemplate } from "../../../text/templates/chat-template.ts";
import { KnownPrompts, missOf } from "./known-prompts.ts";
import type { NewPrompt } from "./known-prompts.ts";
import { messageCause } from "../../../wire/core/compare-outlines.ts";
import { outlineText } from "../../../wire/core/prompt-outline.ts";
import type { PromptOutline } from "../../../wire/core/prompt-outline.ts";
import { outlineRendered, outlineRenderedText } from "./rendered-outline.ts";

const chatml = `{%- set system = messages[0].role == 'system' -%}
{%- if tools or system %}{{ '<|im_start|>system\\n' }}{% if system %}{{ messages[0].content }}{% endif -%}
{%- if tools %}{{ '\\n<tools>' }}{% for t in tools %}{{ '\\n' + t | tojson }}{% endfor %}{{ '\\n</tools>' }}{% endif -%}
{{- '<|im_end|>\\n' }}{% endif -%}
{%- for m in messages %}{% if m.role != 'system' or not loop.first -%}
{{- '<|im_start|>' + m.role + '\\n' -}}
{%- if m.reasoning_content and loop.index0 > messages | length - 3 %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif -%}
{{- m.content or '' -}}
{%- for c in m.tool_calls %}{{ '<tool_call>' + c.function | tojson + '</tool_call>' }}{% endfor -%}
{{- '<|im_end|>\\n' -}}{% endif %}{% endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% if enable_thinking %}{{ '<think>' }}{% endif %}{% endif %}`;

/** Messages with headers that say where they go, as gpt-oss writes them. */
const routed = `{%- for m in messages %}{{ '<|start|>' + m.role }}{% if m.role == 'assistant' %}{{ '<|channel|>final' }}{% endif -%}
{{- '<|message|>' + m.content + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}`;

interface Asked {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly source?: string;
  readonly now?: Date;
  readonly owner?: string;
}

const bytesOf = (token: number): Uint8Array => Uint8Array.of(token);
const utf8 = new TextEncoder();

/** A prompt whose tokens are its bytes. */
function prompt({ messages, tools = [], variables = {}, source = chatml, now = new Date(0), owner }: Asked): NewPrompt {
  const template = new ChatTemplate({ source, specialTokens: ["<|im_start|>", "<|im_end|>"] });
  const rendered = template.render({ messages, tools, options: { variables }, now });
  const outline = outlineRendered({
    messages,
    tools,
    options: variables,
    rendered: rendered.text,
    opening: rendered.generationPrefix,
  });
  return {
    owner,
    tokens: [...utf8.encode(rendered.text)],
    outline,
    reasoningMarkers: ["<think>", "</think>", "<|channel|>analysis"],
  };
}

function text(words: string): NewPrompt {
  return {
    owner: undefined,
    tokens: [...utf8.encode(words)],
    outline: outlineRenderedText(words),
    reasoningMarkers: [],
  };
}

/** Slots that know what they were given last, and its answer. */
class Slots {
  readonly known = new KnownPrompts(bytesOf);
  readonly tokens: (readonly number[])[];

  constructor(count = 1) {
    this.tokens = Array.from({ length: count }, () => []);
  }

  ask(asked: NewPrompt, answer = "", slot = 0): CacheMiss | null {
    const draft = this.known.beforeSlotChange(slot, asked, this.tokens);
    const before = this.tokens[slot] ?? [];
    let cached = 0;
    while (cached < asked.tokens.length - 1 && before[cached] === asked.tokens[cached]) cached++;
    this.tokens[slot] = [...asked.tokens, ...utf8.encode(answer)];
    return draft && missOf(draft, cached);
  }
}

const user = (content: string): Message => ({ role: "user", content });
const says = (content: string): Message => ({ role: "assistant", content });
const system = (content: string): Message => ({ role: "system", content });
const first = "What is the capital of France, and how many people live there?";
const paris = "The capital of France is Paris, where about two million people live.";
const talk = [user(first), says(paris), user("And of Spain?")];
const long = "You are a helpful assistant. Answer in one sentence. Never use a word that a child does not know.";
const tool = (name: string, description = `Tells the ${name} of a town, in metric units`): Tool => ({
  name,
  description,
});
const tools = [tool("weather"), tool("time"), tool("traffic")];

/** The miss of the second of two conversations, the first of which was answered. */
function missed(one: Asked, two: Asked, answer = paris): CacheMiss | null {
  const slots = new Slots();
  slots.ask(prompt(one), answer);
  return slots.ask(prompt(two));
}

describe("no miss", () => {
  test("the next turn", () => {
    expect(missed({ messages: talk.slice(0, 1) }, { messages: talk })).toBeNull();
    expect(
      missed({ messages: [system(long), ...talk.slice(0, 1)], tools }, { messages: [system(long), ...talk], tools }),
    ).toBeNull();
  });

  test("the same again, another question, another conversation behind the same system prompt, an answer that is asked for anew", () => {
    const one = { messages: [system(long), user(first)] };
    expect(missed(one, one)).toBeNull();
    expect(missed(one, { messages: [system(long), user("How high is the highest mountain of the Alps?")] })).toBeNull();
    expect(missed({ messages: [system(long), ...talk] }, one)).toBeNull();
  });

  test("the same document with another question behind it", () => {
    const pages = "The Alps are high. The Rhine is long. The Rhône is longer. The Loire is the longest. ".repeat(4);
    const ask = (question: string): Asked => ({ messages: [user(`${pages}\n${question}`)] });
    expect(missed(ask("Which river is long?"), ask("What is high?"))).toBeNull();
  });
});

describe("the cause", () => {
  const told = (miss: CacheMiss | null): unknown => miss && [miss.cause, miss.where];
  const dated = (date: string): Message => system(`It is ${date}. ${long}`);

  test.each([
    ["date", "2026-11-22", "2026-11-23"],
    ["date", "Sunday, November 22, 2026", "Monday, November 23, 2026"],
    ["date", "11:59:58", "12:00:03"],
    ["date", "22 Nov 2026", "23 Nov 2026"],
    ["date", "1795348800", "1795348912"],
    ["id", "0b6dfb4c-8e0e-4b7c-9d3a-a54b6f0c2d11", "4f0ad1f2-8e0e-4b7c-9d3a-a54b6f0c2d11"],
    ["id", "sess_01JD2k9fQ7", "sess_01JD2m1xB3"],
    ["counter", "request 17", "request 18"],
    ["system-changed", "fine", "cold"],
  ])("%s in the system prompt: %s, then %s", (cause, one, two) => {
    const miss = missed({ messages: [dated(one), ...talk.slice(0, 1)] }, { messages: [dated(two), ...talk] });
    expect(told(miss)).toEqual([cause, "messages[0]"]);
    const { texts } = miss ?? {};
    expect(`${texts?.before}${texts?.known}`).toContain(one);
    expect(`${texts?.before}${texts?.asked}`).toContain(two);
  });

  test("a billing header, which Claude Code puts first", () => {
    const headed = (value: string): Message[] => [
      system(`x-anthropic-billing-header: cc_version=2.1.233.3f3; cc_entrypoint=sdk-ts; cch=${value};\n${long}`),
      user(first),
    ];
    expect(told(missed({ messages: headed("3f3a1") }, { messages: headed("04bc2") }))).toEqual([
      "billing-header",
      "messages[0]",
    ]);
  });

  test("another system prompt before the same messages", () => {
    const other = system("Speak like a pirate at all times! Arr.");
    const miss = missed({ messages: [system(long), ...talk] }, { messages: [other, ...talk] });
    expect(told(miss)).toEqual(["system-replaced", "messages[0]"]);
    expect(told(missed({ messages: [system(long), ...talk] }, { messages: talk }))).toEqual([
      "messages-dropped",
      "messages[0]",
    ]);
  });

  test("tools", () => {
    const one = { messages: [system(long), ...talk.slice(0, 1)], tools };
    const then = (now: readonly Tool[]): unknown =>
      told(missed(one, { messages: [system(long), ...talk], tools: now }));
    expect(then([tool("time"), tool("weather"), tool("traffic")])).toEqual(["tools-reordered", "tools[0]"]);
    expect(then([...tools, tool("air")])).toEqual(["tool-added", "tools[3]"]);
    expect(then([tool("weather"), tool("air"), tool("time"), tool("traffic")])).toEqual(["tool-added", "tools[1]"]);
    expect(then([tool("weather"), tool("traffic")])).toEqual(["tool-removed", "tools"]);
    expect(then([])).toEqual(["tool-removed", "tools"]);
    expect(then([tool("weather"), tool("time", "Tells the time"), tool("traffic")])).toEqual([
      "tool-changed",
      "tools[1]",
    ]);
    expect(told(missed({ ...one, tools: [] }, { messages: [system(long), ...talk], tools }))).toEqual([
      "tool-added",
      "tools[0]",
    ]);
  });

  test("of tools and messages that both changed, what comes first in the prompt", () => {
    const one = { messages: [system(long), ...talk], tools };
    const reordered = [...tools].reverse();
    const changed = [
      system(long),
      user("What is the capital of Italy?"),
      ...talk.slice(1),
      says("Madrid."),
      user("Why?"),
    ];
    expect(told(missed(one, { messages: changed, tools: reordered }))).toEqual(["tools-reordered", "tools[0]"]);
    const both = [system(`Be kind. ${long}`), ...changed.slice(1)];
    expect(told(missed(one, { messages: both, tools: reordered }))).toEqual(["system-changed", "messages[0]"]);
    expect(told(missed(one, { messages: changed, tools }))).toEqual(["message-changed", "messages[1]"]);
  });

  test("earlier messages", () => {
    const madrid = "The capital of Spain is Madrid, which is larger than Paris.";
    const history = [...talk, says(madrid), user("Which of them is nearer to the sea?")];
    const before = { messages: [system(long), ...talk] };
    const then = (messages: readonly Message[]): unknown =>
      told(missed(before, { messages: [system(long), ...messages] }, madrid));
    expect(then(history)).toBeNull();
    expect(then(history.slice(2))).toEqual(["messages-dropped", "messages[1]"]);
    expect(then([...history.slice(0, 1), says("[left out]"), ...history.slice(2)])).toEqual([
      "message-changed",
      "messages[2]",
    ]);
    expect(then([user("Mind the time."), ...history])).toEqual(["message-inserted", "messages[1]"]);
    expect(then([user(`${first} It is 2026-11-23.`), ...history.slice(1)])).toEqual(["message-changed", "messages[1]"]);
  });

  test("a date at the beginning of a long question", () => {
    const pages = "The Alps are high. The Rhine is long. The Rhône is longer. The Loire is the longest. ".repeat(4);
    const ask = (date: string, question: string): Asked => ({ messages: [user(`${date}\n${pages}\n${question}`)] });
    expect(told(missed(ask("2026-11-22", "Why?"), ask("2026-11-23", "How?")))).toEqual(["date", "messages[0]"]);
  });

  test("an answer that comes back otherwise", () => {
    const one = { messages: talk.slice(0, 1) };
    expect(told(missed(one, { messages: talk }, `\n\n${paris}`))).toEqual(["answer-changed", "messages[1]"]);
    const call: Message = {
      role: "assistant",
      content: [{ type: "tool-call", id: "call_1", name: "weather", arguments: '{"town":"Paris","unit":"C"}' }],
    };
    const result: Message = { role: "tool", toolCallId: "call_1", content: "It rains." };
    const compact = '<tool_call>{"name":"weather","arguments":{"town":"Paris","unit":"C"}}</tool_call>';
    expect(told(missed(one, { messages: [user(first), call, result] }, compact))).toEqual([
      "answer-changed",
      "messages[1]",
    ]);
  });

  test("thoughts that are not in the prompt any more", () => {
    const thought = "The user asks for a capital, which is easy, and for a number.";
    const variables = { enable_thinking: true };
    const thinking: Message = {
      role: "assistant",
      content: [
        { type: "reasoning", text: thought },
        { type: "text", text: paris },
      ],
    };
    const one = { messages: talk.slice(0, 1), variables };
    expect(told(missed(one, { messages: talk, variables }, `${thought}</think>${paris}`))).toEqual([
      "reasoning-dropped",
      "messages[1]",
    ]);
    // The template writes those of the last turn only.
    const two = { messages: [user(first), thinking, user("Sure?")], variables };
    const three = { messages: [...two.messages, says("Yes."), user("Really?")], variables };
    expect(told(missed(two, three, "</think>Yes."))).toEqual(["reasoning-dropped", "messages[1]"]);
    const without = { messages: [user(first), says(paris), user("Sure?")], variables };
    expect(told(missed(two, without, "</think>Yes."))).toEqual(["reasoning-dropped", "messages[1]"]);
  });

  test("thoughts in messages of their own", () => {
    const thought =
      "<|channel|>analysis<|message|>The user asks for a capital, which is easy.<|end|><|start|>assistant";
    const answer = `${thought}<|channel|>final<|message|>${paris}`;
    const one = { messages: talk.slice(0, 1), source: routed };
    const two = { messages: talk, source: routed };
    expect(told(missed(one, two, answer))).toEqual(["reasoning-dropped", "messages[1]"]);
    expect(missed(one, two, `<|channel|>final<|message|>${paris}`)).toBeNull();
  });

  test("other options of the template, a date that the template writes, and what else it writes otherwise", () => {
    const source = `{{ '<|im_start|>system\\nEffort: ' + (effort or 'low') + '\\n' + strftime_now('%d %b %Y') }}{% if messages | length > 2 %}{{ ' Be brief.' }}{% endif %}
{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`;
    const one = { messages: talk.slice(0, 1), source };
    expect(told(missed(one, { messages: talk, source, variables: { effort: "high" } }))).toEqual([
      "template-options",
      undefined,
    ]);
    expect(told(missed(one, { messages: talk, source, now: new Date(86_400_000) }))).toEqual(["date", undefined]);
    expect(told(missed(one, { messages: talk, source }))).toEqual(["template-changed", "messages[0]"]);
  });

  test("a prompt that is no conversation", () => {
    const slots = new Slots();
    expect(slots.ask(text(`It is 2026-11-22.\n${long}\nQ: one?`))?.cause).toBe("nothing-known");
    expect(told(slots.ask(text(`It is 2026-11-23.\n${long}\nQ: two?`)))).toEqual(["date", "prompt"]);
    expect(told(slots.ask(text(`Well, it is 2026-11-23.\n${long}\nQ: three?`)))).toEqual(["prompt-changed", undefined]);
    expect(slots.ask(text(`Well, it is 2026-11-23.\n${long}\nQ: four?`))).toBeNull();
  });

  test("nothing in common with an earlier prompt", () => {
    const slots = new Slots();
    expect(slots.ask(prompt({ messages: talk }))).toEqual({
      cause: "nothing-known",
      at: 0,
      cachedTokens: 0,
      promptTokens: prompt({ messages: talk }).tokens.length,
    });
    expect(slots.ask(prompt({ messages: [system("Write titles."), user("A long story.")] }))?.cause).toBe(
      "nothing-known",
    );
  });

  test("its slot was taken by another request", () => {
    const slots = new Slots();
    const one = prompt({ messages: [system(long), user(first)] });
    slots.ask(one, paris);
    slots.ask(prompt({ messages: [user("Something else altogether, and at some length.")] }));
    const next = prompt({ messages: [system(long), ...talk] });
    expect(slots.ask(next)).toEqual({
      cause: "evicted",
      at: "<|im_start|>".length,
      cachedTokens: "<|im_start|>".length,
      promptTokens: next.tokens.length,
      knownTokens: one.tokens.length + paris.length,
    });
    // Now it is known again, and nothing of the past is left of it.
    expect(
      slots.ask(prompt({ messages: [system(long), ...talk, says("Madrid."), user("And of Italy?")] }), "Rome."),
    ).toBeNull();
  });

  test("is one of an earlier prompt that is alike, though another one begins the same for longer", () => {
    const slots = new Slots(2);
    slots.ask(prompt({ messages: [dated("2026-11-22"), ...talk] }), "Madrid.", 0);
    slots.ask(prompt({ messages: [dated("2026-11-29")] }), "Hello!", 1);
    const miss = slots.ask(prompt({ messages: [dated("2026-11-23"), ...talk, says("Madrid."), user("Sure?")] }), "", 0);
    expect(told(miss)).toEqual(["date", "messages[0]"]);
    expect(miss?.texts?.known).toMatch(/^2\. You/);
  });
});

describe("of another's prompts", () => {
  test("nothing is told, not even that they were alike", () => {
    const slots = new Slots(2);
    const secret = "The password of the vault is swordfish, and the code of the door is 4711.";
    const asked = (date: string, owner: string): NewPrompt =>
      prompt({ messages: [system(`${date} ${secret}`), user(first)], owner });
    slots.ask(asked("2026-11-22", "ann"), paris, 0);
    expect(slots.ask(asked("2026-11-23", "bob"), "", 1)).toMatchObject({ cause: "nothing-known" });
    // The owner's own is explained, with its text.
    const own = slots.ask(asked("2026-11-24", "ann"), "", 0);
    expect(own).toMatchObject({ cause: "date" });
    expect(own?.texts?.known).toMatch(/^2 The password/);
    // And what was evicted is told to its owner only.
    expect(slots.ask(asked("2026-11-22", "carl"), "", 1)).toMatchObject({ cause: "nothing-known" });
    slots.ask(prompt({ messages: [user("Something else altogether, and at some length.")], owner: "carl" }), "", 0);
    expect(slots.ask(asked("2026-11-24", "ann"), "", 1)).toMatchObject({ cause: "evicted" });
  });

  test("nothing is told where a slot holds other tokens than its owner gave it", () => {
    const slots = new Slots();
    const mine = prompt({ messages: [system(long), user(first)], owner: "ann" });
    slots.ask(mine, paris);
    // A copy of another client's tokens that was not cleared away after a failure.
    const theirs = prompt({ messages: [system(`A secret. ${long}`), user(first)], owner: "bob" });
    slots.tokens[0] = theirs.tokens;
    const miss = slots.ask(prompt({ messages: [system(`My own. ${long}`), user(first)], owner: "ann" }));
    expect(miss).toMatchObject({ cause: "nothing-known" });
    expect(JSON.stringify(miss)).not.toContain("secret");
  });

  test("no text of one owner ever stands in a note to another one", () => {
    const word = fc.stringMatching(/^[a-z]{4,12}$/);
    const conversation = fc.array(fc.array(word, { minLength: 3, maxLength: 30 }), { minLength: 1, maxLength: 5 });
    const requests = fc.array(
      fc.record({ owner: fc.constantFrom("ann", "bob"), slot: fc.nat(1), turns: conversation }),
      { minLength: 2, maxLength: 12 },
    );
    fc.assert(
      fc.property(requests, (all) => {
        const slots = new Slots(2);
        for (const { owner, slot, turns } of all) {
          const mark = owner.toUpperCase();
          const messages = turns.map((words, at): Message => {
            const content = `${words.join(" ")}. ${mark} ${words.join(` ${mark} `)}`;
            return at % 2 === 0 ? user(content) : says(content);
          });
          const miss = slots.ask(prompt({ messages, owner }), `${mark} answers.`, slot);
          expect(JSON.stringify(miss)).not.toContain(owner === "ann" ? "BOB" : "ANN");
        }
      }),
    );
  });
});

// 64 conversations of thousands of messages each were gone through for each new prompt, while the model stood still.
test("only so many messages of past conversations are remembered", () => {
  const conversation = (name: string, messages: number): NewPrompt => {
    const texts = Array.from({ length: messages }, (_, at) => `${name} says ${at}`);
    return {
      owner: undefined,
      tokens: [...utf8.encode(`${name} has talked for a while about this and that`)],
      outline: { ...outlineRenderedText(""), messages: texts.flatMap((words) => outlineText(words).messages) },
      reasoningMarkers: [],
    };
  };
  const causeAfter = (messages: number): string | undefined => {
    const slots = new Slots();
    for (const name of ["Ada", "Bob", "Cleo"]) slots.ask(conversation(name, messages));
    return slots.ask(conversation("Ada", messages))?.cause;
  };
  expect(causeAfter(4000)).toBe("evicted");
  expect(causeAfter(6000)).toBe("nothing-known");
});

// The model stands still meanwhile.
test("messages that say the same are compared a few times each", () => {
  let reads = 0;
  const outlineOf = (texts: readonly string[]): PromptOutline => ({
    ...outlineText(""),
    messages: texts.map((text) => ({
      role: "user",
      path: "",
      tokens: 1,
      parts: [text],
      text,
      get digest() {
        reads++;
        return text;
      },
    })),
  });
  const same = Array.from({ length: 2000 }, () => "Go on.");
  const cause = messageCause(outlineOf(["Hello.", ...same, "Why?"]), outlineOf([...same, "How?"]), 0);
  expect(cause?.cause).toBe("message-changed");
  expect(reads).toBeLessThan(50 * same.length);
});

test("every cause has a sentence, and one of advice", () => {
  expect(describeCacheMiss({ cause: "date", where: "system" })).toBe(
    "A date or time changed in system. Put what changes after what stays the same.",
  );
  expect(describeCacheMiss({ cause: "date" })).toMatch(/^A date or time changed in the prompt\./);
});
