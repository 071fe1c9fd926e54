import { describe, expect, test } from "vitest";
import { FailureError } from "../../wire/core/failure.ts";
import type { Message, Tool } from "../../wire/core/message.ts";
import { ChatTemplate, requestedThinking, type RenderInput } from "./chat-template.ts";

const now = new Date(2024, 4, 6);
const chatml = `{%- if messages[0].role == 'system' %}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}
{%- if m.role != 'system' or not loop.first %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content %}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n' }}{% endif %}
{{- m.content | trim }}
{%- for c in m.tool_calls %}{{ '<tool_call>' + c.function | tojson + '</tool_call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% if enable_thinking %}{{ '<think>\\n' }}{% endif %}{% endif %}`;

function template(source: string, tokens: { bosToken?: string; eosToken?: string } = {}): ChatTemplate {
  return new ChatTemplate({ source, specialTokens: ["<|im_start|>", "<|im_end|>"], ...tokens });
}

function render(source: string, messages: readonly Message[], more: Partial<RenderInput> = {}): string {
  return template(source).render({ messages, options: {}, now, ...more }).text;
}

function failure(act: () => unknown): { status: number; message: string; param: unknown } {
  try {
    act();
  } catch (error) {
    if (error instanceof FailureError) {
      const { status, message, param } = error.failure;
      return { status, message, param };
    }
    throw error;
  }
  throw new Error("nothing failed");
}

const hello: Message[] = [{ role: "user", content: "Hi" }];
const tool: Tool = {
  name: "f",
  description: "F.",
  parameters: { type: "object", properties: { x: { type: "integer" } } },
};

describe("exactly one BOS", () => {
  test.each([
    ["{{ bos_token }}{{ messages[0].content }}", true],
    ["{{ bos_token }}{{ bos_token }}{{ messages[0].content }}", true],
    ["{{ messages[0].content }}", false],
  ])("%s", (source, startsWithBos) => {
    const prompt = template(source, { bosToken: "<s>" }).render({ messages: hello, options: {}, now });
    expect(prompt).toMatchObject({ text: "Hi", startsWithBos });
  });

  test("a BOS that the user wrote stays, as text", () => {
    const guarded = new ChatTemplate({
      source: "{{ messages[0].content }}",
      bosToken: "<s>",
      specialTokens: ["<s>"],
    });
    const prompt = guarded.render({ messages: [{ role: "user", content: "<s>Hi" }], options: {}, now });
    expect(prompt).toMatchObject({ text: "<s>Hi", startsWithBos: false });
    expect(prompt.spans).toEqual([
      { text: "<s>", special: false },
      { text: "Hi", special: true },
    ]);
  });
});

describe("generation prompt and response prefix", () => {
  test("the prefix is what the template adds, with the response prefix", () => {
    const options = { variables: { enable_thinking: true }, responsePrefix: "Well, " };
    const prompt = template(chatml).render({ messages: hello, options, now });
    expect(prompt.generationPrefix).toBe("<|im_start|>assistant\n<think>\nWell, ");
    expect(prompt.text.endsWith(`Hi<|im_end|>\n${prompt.generationPrefix}`)).toBe(true);
  });

  test("without generation prompt nothing is added, and a response prefix is ignored with a warning", () => {
    const options = { addGenerationPrompt: false, responsePrefix: "Well, " };
    const prompt = template(chatml).render({ messages: hello, options, now });
    expect(prompt.text).toBe("<|im_start|>user\nHi<|im_end|>\n");
    expect(prompt.generationPrefix).toBe("");
    expect(prompt.warnings).toEqual([expect.stringContaining("response_prefix")]);
  });

  test("an EOS that begins like the generation prompt is distinguished from it", () => {
    const source =
      "{{ messages[0].content }}{% if add_generation_prompt %}<|assistant|>{% else %}{{ eos_token }}{% endif %}";
    const prompt = template(source, { eosToken: "<|eos|>" }).render({ messages: hello, options: {}, now });
    expect(prompt.generationPrefix).toBe("<|assistant|>");
  });

  test("each name of the thinking switch works for templates that read the other one", () => {
    const source = "{% if add_generation_prompt and thinking %}<think>{% endif %}";
    const options = { variables: { enable_thinking: true } };
    expect(render(source, hello, { options })).toBe("<think>");
    const off = "{% if enable_thinking is defined and not enable_thinking %}no thoughts{% endif %}";
    expect(render(off, hello, { options: { variables: { reasoning_effort: "none" } } })).toBe("no thoughts");
    expect(render(off, hello)).toBe("");
  });
});

describe("continuing the last message", () => {
  const options = { addGenerationPrompt: false, continueFinalMessage: true };
  const begun = (message: Partial<Extract<Message, { role: "assistant" }>>): Message[] => [
    ...hello,
    { role: "assistant", content: null, ...message },
  ];

  test("the prompt ends with its text, white space that the template trims included", () => {
    const prompt = template(chatml).render({ messages: begun({ content: " Once upon a " }), options, now });
    expect(prompt.text).toBe("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nOnce upon a ");
    expect(prompt.generationPrefix).toBe("<|im_start|>assistant\nOnce upon a ");
  });

  test("reasoning without content is open", () => {
    const { text } = template(chatml).render({
      messages: begun({ content: [{ type: "reasoning", text: "Let me" }] }),
      options,
      now,
    });
    expect(text.endsWith("<|im_start|>assistant\n<think>\nLet me")).toBe(true);
  });

  test("reasoning with content, even an empty one, is closed", () => {
    const { text } = template(chatml).render({
      messages: begun({
        content: [
          { type: "reasoning", text: "Done." },
          { type: "text", text: "" },
        ],
      }),
      options,
      now,
    });
    expect(text.endsWith("<think>\nDone.\n</think>\n")).toBe(true);
  });

  test("reasoning that the template omits is written in the template's own tags", () => {
    const source =
      "{% for m in messages %}[{{ m.role }}]{{ m.content.split('</think>')[-1] }}{% endfor %}{% if add_generation_prompt %}[assistant]<think>{% endif %}";
    expect(
      render(
        source,
        begun({
          content: [
            { type: "reasoning", text: "Hm" },
            { type: "text", text: "So" },
          ],
        }),
        { options },
      ),
    ).toBe("[user]Hi[assistant]<think>Hm</think>So");
    expect(render(source, begun({ content: [{ type: "reasoning", text: "Hm" }] }), { options })).toBe(
      "[user]Hi[assistant]<think>Hm",
    );
  });

  test("a template without reasoning drops it with a warning, or rejects a message that has nothing else", () => {
    const source = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    const prompt = template(source).render({
      messages: begun({
        content: [
          { type: "reasoning", text: "Hm" },
          { type: "text", text: "So" },
        ],
      }),
      options,
      now,
    });
    expect(prompt.text).toBe("[user]Hi[assistant]So");
    expect(prompt.warnings).toHaveLength(1);
    expect(
      failure(() => render(source, begun({ content: [{ type: "reasoning", text: "Hm" }] }), { options })),
    ).toMatchObject({
      status: 400,
      param: "messages[1].content",
    });
  });

  test.each([
    [{ continueFinalMessage: true }, "continue_final_message"],
    [{ ...options, responsePrefix: "x" }, "response_prefix"],
    [options, "messages[0].role"],
  ])("%j is refused", (refused, param) => {
    expect(failure(() => render(chatml, hello, { options: refused }))).toMatchObject({ status: 400, param });
  });
});

describe("failures are 400 with the template's own message", () => {
  test("raise_exception", () => {
    const got = failure(() => render("{{ raise_exception('roles must alternate') }}", hello));
    expect(got).toEqual({ status: 400, message: "roles must alternate", param: "messages" });
  });

  test.each(["{{ 1 + none }}", "{% if %}", "{{ messages[0].content.nothing() }}", "{% for %}"])("%s", (source) => {
    expect(failure(() => render(source, hello))).toMatchObject({ status: 400, param: "messages" });
  });

  test("nesting beyond the stack", () => {
    let parameters: { readonly [key: string]: unknown } = { type: "object" };
    for (let depth = 0; depth < 100_000; depth++) parameters = { properties: parameters };
    expect(failure(() => render(chatml, hello, { tools: [{ name: "f", parameters }] })).status).toBe(400);
  });
});

describe("messages", () => {
  test("null members are not there, parts are joined", () => {
    const source = "{% for m in messages %}{{ m.keys() | list }}{{ m.content }};{% endfor %}";
    const messages: Message[] = [
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
    ];
    expect(render(source, messages)).toBe("['role', 'content']a\nb;['role', 'content']No.;");
  });

  test("an image is rejected with its path", () => {
    const messages: Message[] = [{ role: "user", content: [{ type: "image", url: "data:," }] }];
    expect(failure(() => render(chatml, messages))).toMatchObject({
      status: 400,
      param: "messages[0].content[0].type",
    });
  });

  test("a template without system role gets the system prompt in the first user message", () => {
    const source =
      "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    const messages: Message[] = [{ role: "system", content: "S" }, { role: "developer", content: "D" }, ...hello];
    expect(render(source, messages)).toBe("[user]S\n\nD\n\nHi");
  });

  test("a template that accepts one system message gets one", () => {
    const source =
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('only first') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    const messages: Message[] = [{ role: "system", content: "S" }, { role: "developer", content: "D" }, ...hello];
    expect(render(source, messages)).toBe("[system]S\n\nD[user]Hi");
  });

  // Claude Code always sends one; a 400 at it, or its silent loss, made every such model useless to it.
  test.each([
    ["refuses", "{% if m.role == 'system' and not loop.first %}{{ raise_exception('only first') }}{% endif %}"],
    ["drops", "{% if m.role == 'system' and not loop.first %}{% continue %}{% endif %}"],
  ])("a template that %s later system messages gets their words with those before them", (_, guard) => {
    const source = `{% for m in messages %}${guard}[{{ m.role }}]{{ m.content }}{% endfor %}`;
    const said = (...roles: ("system" | "user" | "assistant")[]) =>
      render(
        source,
        roles.map((role, at): Message => ({ role, content: `${role[0]}${at}` })),
      );
    expect(said("system", "user", "system")).toBe("[system]s0[user]u1\n\ns2");
    expect(said("user", "system", "system", "user", "assistant")).toBe("[user]u0\n\ns1\n\ns2[user]u3[assistant]a4");
    expect(said("user", "assistant", "system", "system", "user")).toBe("[user]u0[assistant]a1[user]s2\n\ns3\n\nu4");
    const free = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    expect(render(free, [...hello, { role: "system", content: "S" }])).toBe("[user]Hi[system]S");
  });

  test("developer messages become system messages for a template without that role", () => {
    const messages: Message[] = [{ role: "developer", content: "D" }, ...hello];
    const source = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    expect(render(source, messages)).toBe("[system]D[user]Hi");
    expect(render(`${source}{{ '' if messages[0].role == 'developer' }}`, messages)).toBe("[developer]D[user]Hi");
  });

  test("a template that requires parts gets parts", () => {
    const source = "{% for m in messages %}{% for p in m.content %}({{ p.text }}){% endfor %}{% endfor %}";
    expect(render(source, hello)).toBe("(Hi)");
  });

  // Transformers and vLLM give such a template the list; newlines that it does not write are not what the model was trained with.
  test("a template that reads lists of texts gets them in the roles in which it does", () => {
    const source = `{% for m in messages %}[{{ m.role }}]{% if m.content is string or m.role == 'system' %}{{ m.content }}{% else %}{%
      for p in m.content %}({{ p.text | trim }}){% endfor %}{% endif %}{% endfor %}`;
    const content = ["a ", "b"].map((text) => ({ type: "text" as const, text }));
    const messages: Message[] = [
      { role: "system", content },
      { role: "user", content },
    ];
    expect(render(source, messages)).toBe("[system]a \nb[user](a)(b)");
  });

  test("texts of a list that form a special token together are text", () => {
    const source = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}";
    const content = ["<|im_", "end|>"].map((text) => ({ type: "text" as const, text }));
    const { spans } = template(source).render({ messages: [{ role: "user", content }], options: {}, now });
    expect(spans.map(({ text, special }) => [text, special])).toEqual([
      ["<|im_", false],
      ["end|>", true],
    ]);
  });
});

describe("calls", () => {
  // A session with gpt-oss ended with a 400 when the model had said something before a call: its template rejects both.
  test("a template that rejects reasoning next to text gets the text after the reasoning", () => {
    const source = `{% for m in messages %}{% if m.tool_calls and m.thinking and m.content %}{{ raise_exception('not both') }}{% endif %}{{
      m.thinking }}|{{ m.content }}{% for c in m.tool_calls %}|{{ c.function.arguments | tojson }}{% endfor %};{% endfor %}`;
    const call = { type: "tool-call" as const, id: "c", name: "f", arguments: "{}" };
    const said = { type: "text" as const, text: "I look." };
    const thought = { type: "reasoning" as const, text: "Look?" };
    const messages: Message[] = [...hello, { role: "assistant", content: [thought, said, call] }];
    expect(render(source, messages)).toBe("|Hi;Look?\n\nI look.||{};");
  });

  const called = (args: string, id = "call_0123456789"): Message[] => [
    ...hello,
    { role: "assistant", content: [{ type: "tool-call", id, name: "f", arguments: args }] },
    { role: "tool", content: "3", toolCallId: id },
  ];
  const printed =
    "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% if m.role == 'tool' %} {{ m.name }} {{ m.tool_call_id }} {{ m.content }}{% endif %}{% endfor %}";

  test("arguments are an object, numbers as they were written, and the result knows its call's name", () => {
    expect(render(printed, called('{"b": 1.0, "a": [12345678901234567890, 1e2]}'))).toBe(
      '{"b": 1.0, "a": [12345678901234567890, 100.0]} f call_0123456789 3',
    );
  });

  test("a template that adds arguments to text gets them as they were written", () => {
    const source = "{% for c in messages[1].tool_calls %}{{ 'args: ' + c.function.arguments }}{% endfor %}";
    expect(template(source).capabilities.arguments).toBe("string");
    expect(render(source, called('{"b":1.0}'))).toBe('args: {"b":1.0}');
  });

  test("arguments that are not JSON stay text, with a warning", () => {
    const prompt = template(printed).render({ messages: called('{"b": '), options: {}, now });
    expect(prompt.text).toBe('"{\\"b\\": " f call_0123456789 3');
    expect(prompt.warnings).toHaveLength(1);
  });

  test("ids become what Mistral's templates take, the same for call and result", () => {
    const source =
      "{% for m in messages %}{% for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception('length 9') }}{% endif %}{{ c.id }}{{ c.function.arguments | tojson }}{% endfor %}{% if m.tool_call_id %}={{ m.tool_call_id }}{{ m.content }}{% endif %}{% endfor %}";
    expect(render(source, called("{}"))).toBe("123456789{}=1234567893");
  });

  test("a result without a call is rejected with OpenAI's message", () => {
    const messages: Message[] = [...hello, { role: "tool", content: "3", toolCallId: "x" }];
    expect(failure(() => render(chatml, messages))).toEqual({
      status: 400,
      message:
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
      param: "messages.[1].role",
    });
  });

  test("a result with an unknown id answers the next call, with a warning", () => {
    const messages = called("{}").map((message) =>
      message.role === "tool" ? { ...message, toolCallId: "other" } : message,
    );
    const prompt = template(printed).render({ messages, options: {}, now });
    expect(prompt.text).toBe("{} f call_0123456789 3");
    expect(prompt.warnings).toHaveLength(1);
  });

  test("a template without calls gets them as text with special tokens", () => {
    const source = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    const writeCall = (): string => "<|im_start|>f(1)";
    const prompt = template(source).render({ messages: called('{"x":1}'), options: {}, now, writeCall });
    expect(prompt.text).toBe("[user]Hi[assistant]<|im_start|>f(1)[tool]3");
    expect(prompt.spans).toHaveLength(1);
    expect(render(source, called('{"x":1}'))).toContain('{"name": "f", "arguments": {"x": 1}}');
    expect(render(source, called('{"x":'))).toContain('{"name": "f", "arguments": "{\\"x\\":"}');
  });
});

describe("tools", () => {
  const source = "{% if tools %}{{ tools | tojson }}{% endif %}";

  test("are in OpenAI's shape", () => {
    expect(render(source, hello, { tools: [tool] })).toBe(
      '[{"type": "function", "function": {"name": "f", "description": "F.", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}]',
    );
  });

  test("stay out with tool_choice none", () => {
    expect(render(source, hello, { tools: [tool], toolChoice: { type: "none" } })).toBe("");
  });

  test("the instruction for a template without tools is added to the system message, or is one", () => {
    const tools = { tools: [tool], toolInstruction: "You have f." };
    const plain = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    expect(render(plain, hello, tools)).toBe("[system]You have f.[user]Hi");
    expect(render(plain, [{ role: "system", content: "S" }, ...hello], tools)).toBe("[system]S\n\nYou have f.[user]Hi");
    expect(render(plain, hello, { ...tools, toolChoice: { type: "none" } })).toBe("[user]Hi");
  });

  test("a template that fails without descriptions gets empty ones", () => {
    const strict =
      "{% for t in tools %}{{ t.function.name + ': ' + t.function.description }}{% for n, p in t.function.parameters.properties.items() %}{{ n + p.description }}{% endfor %}{% endfor %}";
    expect(
      render(strict, hello, { tools: [{ name: "g", parameters: { type: "object", properties: { y: {} } } }] }),
    ).toBe("g: y");
  });
});

test("the given date has every name that templates read", () => {
  expect(render("{{ strftime_now('%d.%m.%Y') }} {{ date_string }} {{ datetime }}", hello)).toBe(
    "06.05.2024 06 May 2024 May 06 2024 00:00:00",
  );
});

test("a custom tool and its earlier calls are rendered as a function with one string", () => {
  const custom: Tool = { name: "run", description: "Runs it.", kind: "custom" };
  const grammar = { syntax: "regex", definition: "[a-z]+" } as const;
  const shown = template("{{ tools | tojson }}").render({
    messages: [{ role: "user", content: "Hi" }],
    tools: [custom, { ...custom, name: "word", inputGrammar: grammar }],
    options: {},
    now,
  });
  const parameters = (input: object): object => ({
    type: "object",
    properties: { input: { type: "string", ...input } },
    required: ["input"],
    additionalProperties: false,
  });
  expect(JSON.parse(shown.text)).toEqual([
    { type: "function", function: { name: "run", description: "Runs it.", parameters: parameters({}) } },
    {
      type: "function",
      function: { name: "word", description: "Runs it.", parameters: parameters({ pattern: "^(?:[a-z]+)$" }) },
    },
  ]);
  const call = { id: "call_0", name: "run", arguments: 'print("hi")', kind: "custom" as const };
  const history = template(
    "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}",
  ).render({
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "tool-call", ...call }] },
      { role: "tool", content: "ok", toolCallId: "call_0" },
    ],
    options: {},
    now,
  });
  expect(history.text).toContain('{"input": "print(\\"hi\\")"}');
  expect(history.warnings).toEqual([]);
});

test("documents and variables are rendered, and cannot become special tokens", () => {
  const prompt = template("{{ documents[0].text }}{{ extra }}").render({
    messages: hello,
    options: { documents: [{ text: "a<|im_end|>" }], variables: { extra: "<|im_start|>b" } },
    now,
  });
  expect(prompt.spans).toEqual([
    { text: "a", special: true },
    { text: "<|im_end|><|im_start|>", special: false },
    { text: "b", special: true },
  ]);
});

test("documents for a template that renders none are ignored with a warning", () => {
  const asked = { messages: hello, options: { documents: [{ text: "a" }] }, now };
  const { text, warnings } = template("{{ messages[0].content }}").render(asked);
  expect(text).toBe("Hi");
  expect(warnings).toEqual(["documents were ignored: the chat template does not use any."]);
});

// The local engine rejected documents with text.
test("a document is rendered in its place: its name, then its text", () => {
  const content = [
    { type: "file", name: "Note", text: "Ada is 36." },
    { type: "file", text: "Bo is 7." },
    { type: "text", text: "How old is Ada?" },
  ] as const;
  expect(render("{{ messages[0].content }}", [{ role: "user", content }])).toBe(
    "Note\n\nAda is 36.\nBo is 7.\nHow old is Ada?",
  );
});

// Once only the effort "none" was read; low, medium and high had no effect on templates that have a switch but no efforts.
test.each([
  [{}, undefined],
  [{ reasoning_effort: "none" }, false],
  [{ reasoning_effort: "minimal" }, undefined],
  [{ reasoning_effort: "low" }, true],
  [{ reasoning_effort: "high" }, true],
  [{ reasoning_effort: "high", enable_thinking: false }, false],
  [{ reasoning_effort: "none", thinking: true }, true],
  [{ enable_thinking: "yes" }, undefined],
])("requestedThinking(%j)", (variables, expected) => {
  expect(requestedThinking(variables)).toBe(expected);
});
