import fc from "fast-check";

/** The variables of one rendering, in the shape that `apply_chat_template` of Transformers passes to a template. */
export interface TemplateVariables {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly tools?: readonly unknown[];
  readonly documents?: readonly unknown[];
  readonly add_generation_prompt: boolean;
  readonly [more: string]: unknown;
}

/** A number whose JSON text JavaScript would write differently: it stands in a text, and `jobJson` writes it as a number. */
const exactNumber = fc
  .constantFrom("1.0", "-0.0", "1e3", "2.50", "12345678901234567890", "1e-7")
  .map((text) => `@${text}@`);

/** The JSON of variables, with the numbers of `exactNumber`. */
export function jobJson(variables: unknown): string {
  return JSON.stringify(variables).replaceAll(/"@(-?[\d.e+-]+)@"/g, "$1");
}

// Twenty scripts; white space that Python strips and JavaScript does not, and the other way round; what HTML, JSON and Jinja treat specially.
const phrase = fc.constantFrom(
  ..."Hi|Wie heißt du?|Ça va, l’été ?|¿Qué tal?|İstanbul'da ıslak|Ahoj, světe|Γειά σου Κόσμε|Привет, мир|Բարեւ|გამარჯობა|שלום עולם|مرحبا بالعالم|नमस्ते दुनिया|নমস্কার|வணக்கம்|สวัสดีชาวโลก|မင်္ဂလာပါ|សួស្តី|ሰላም|你好，世界|こんにちは世界|안녕하세요".split(
    "|",
  ),
  "👩‍👩‍👧 👍🏽 e\u0301",
  "𝕏 \u{20000}",
  "<b>bold</b> & \"double\" 'single' `back`",
  "C:\\new\\table \\u00e9",
  "{{ x }} {% if y %} {# z #}",
  '{"city": "Paris"}',
  "one\ntwo\n\nthree",
  "one\r\ntwo\rthree",
  "\ttab\u0007bell",
  "50% of %s and {0}",
);
const space = fc.constantFrom(
  "",
  "",
  "",
  " ",
  "\n",
  "\n\n",
  "  \t",
  "\u00a0",
  "\u2028",
  "\u3000",
  "\ufeff",
  "\u0085",
  "\u001c",
);
const markup = fc.constantFrom(
  "</think>",
  "<think>",
  "<tool_call>",
  "<|im_end|>",
  "[INST]",
  "</s>",
  "<|channel|>final",
);
const text = fc
  .tuple(
    space,
    fc.array(fc.oneof({ weight: 5, arbitrary: phrase }, { weight: 1, arbitrary: markup }), { maxLength: 3 }),
    space,
  )
  .map(([before, phrases, after]) => before + phrases.join(" ") + after);
const someText = text.filter((value) => value.trim() !== "");

const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    text,
    fc.constantFrom<unknown>(0, -1, 1.5, 1e21, 9007199254740991, true, false, null, "", [], {}),
    exactNumber,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "key with spaces", "ключ", "items", "name", 'quo"te'), tie("value"), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
  ),
}));
const name = fc.constantFrom("get_weather", "search", "mcp__files__read", "f");
const args = fc.dictionary(fc.constantFrom("city", "days", "options", "tags", "q", "body"), json, {
  maxKeys: 4,
  noNullPrototype: true,
});

const description = fc.option(phrase, { nil: undefined, freq: 4 });
const { schema } = fc.letrec<{ schema: Record<string, unknown> }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.record(
      { type: fc.constantFrom("string", "integer", "number", "boolean"), description },
      { requiredKeys: ["type"] },
    ),
    fc.record(
      { type: fc.constant("string"), enum: fc.constantFrom(["a", "b"], ["é", "日本"]), description, default: text },
      { requiredKeys: ["type", "enum"] },
    ),
    fc.record(
      {
        type: fc.constantFrom<unknown>(["string", "null"], "integer"),
        description,
        nullable: fc.boolean(),
        default: fc.constant(null),
      },
      { requiredKeys: ["type"] },
    ),
    fc.record(
      { type: fc.constant("array"), items: tie("schema"), description, minItems: fc.constant(1) },
      { requiredKeys: ["type", "items"] },
    ),
    fc.record(
      { anyOf: fc.tuple(tie("schema"), fc.constant({ type: "null" })), description, title: phrase },
      { requiredKeys: ["anyOf"] },
    ),
    fc.record(
      {
        type: fc.constant("object"),
        properties: fc.dictionary(fc.constantFrom("x", "y", "type", "properties"), tie("schema"), {
          maxKeys: 2,
          noNullPrototype: true,
        }),
        description,
        additionalProperties: fc.boolean(),
      },
      { requiredKeys: ["type", "properties"] },
    ),
  ) as fc.Arbitrary<Record<string, unknown>>,
}));
const parameters = fc.record(
  {
    type: fc.constant("object"),
    properties: fc.dictionary(fc.constantFrom("city", "days", "options", "tags", "items"), schema, {
      maxKeys: 4,
      noNullPrototype: true,
    }),
    required: fc.subarray(["city", "days"]),
    additionalProperties: fc.constant(false),
    $defs: fc.constant({ T: { type: "string" } }),
  },
  { requiredKeys: ["type", "properties"] },
);
const tool = fc.record({
  type: fc.constant("function"),
  function: fc.record(
    { name, description: phrase, parameters },
    { requiredKeys: ["name", "description", "parameters"] },
  ),
});

const image = { type: "image", image: "file:///cat.png" };
const content = (withImages: boolean): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 4, arbitrary: text as fc.Arbitrary<unknown> },
    {
      weight: 1,
      arbitrary: fc.array(
        fc.oneof(
          text.map((value): object => ({ type: "text", text: value })),
          ...(withImages ? [fc.constant<object>(image)] : []),
        ),
        { minLength: 1, maxLength: 3 },
      ),
    },
  );

type TemplateMessage = Record<string, unknown>;

/** A text, or sometimes a list with two. */
const said = (of: fc.Arbitrary<string>): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 6, arbitrary: of as fc.Arbitrary<unknown> },
    {
      weight: 1,
      arbitrary: fc
        .array(of, { minLength: 2, maxLength: 2 })
        .map((texts) => texts.map((value) => ({ type: "text", text: value }))),
    },
  );

/** One turn: the user's message, then rounds of calls with their results, then an answer, which may be missing in the last turn. */
function turnOf(withImages: boolean): fc.Arbitrary<TemplateMessage[]> {
  const round = fc.record({
    before: fc.option(said(someText), { freq: 2 }),
    reasoning: fc.option(someText),
    calls: fc.array(fc.record({ name, args }), { minLength: 1, maxLength: 2 }),
    results: fc.tuple(said(text), said(text)),
  });
  return fc
    .record({
      user: content(withImages),
      rounds: fc.oneof(fc.constant([]), fc.array(round, { maxLength: 2 })),
      answer: fc.option(fc.record({ content: said(someText), reasoning: fc.option(someText) }), { freq: 4 }),
      idStart: fc.nat({ max: 899 }),
    })
    .map(({ user, rounds, answer, idStart }) => {
      let id = idStart;
      const messages: TemplateMessage[] = [{ role: "user", content: user }];
      for (const { before, reasoning, calls, results } of rounds) {
        const made = calls.map((call) => ({ id: `call${String(100 + id++).padStart(5, "0")}`, ...call }));
        messages.push({
          role: "assistant",
          content: before ?? "",
          ...(reasoning !== null && { reasoning_content: reasoning }),
          tool_calls: made.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: call.args },
          })),
        });
        for (const [index, call] of made.entries())
          messages.push({ role: "tool", content: results[index], tool_call_id: call.id, name: call.name });
      }
      if (answer) {
        const { content: words, reasoning } = answer;
        messages.push({
          role: "assistant",
          content: words,
          ...(reasoning !== null && { reasoning_content: reasoning }),
        });
      }
      return messages;
    });
}

/** Every turn but the last has an answer, so that roles alternate. */
function closed(turns: TemplateMessage[][]): TemplateMessage[] {
  return turns.flatMap((turn, index) =>
    index < turns.length - 1 && turn.at(-1)?.["role"] !== "assistant"
      ? [...turn, { role: "assistant", content: "OK." }]
      : turn,
  );
}

/**
 * Generates conversations: one to three turns with texts in many scripts, tools, calls with all kinds of values, reasoning and, with
 * `images`, pictures. The same `seed` gives the same ones.
 */
export function generatedConversations(
  count: number,
  seed: number,
  { images }: { images: boolean },
): TemplateVariables[] {
  const conversation = fc
    .record({
      system: fc.option(fc.record({ role: fc.constant("system"), content: said(text) }), { freq: 2 }),
      turns: fc.array(turnOf(images), { minLength: 1, maxLength: 3 }),
      tools: fc.option(fc.uniqueArray(tool, { minLength: 1, maxLength: 3, selector: (one) => one.function.name })),
      add_generation_prompt: fc.boolean(),
      more: fc.constantFrom<object>({}, {}, { enable_thinking: true }, { enable_thinking: false }),
    })
    .map(({ system, turns, tools, add_generation_prompt, more }): TemplateVariables => {
      const messages = [...(system ? [system] : []), ...closed(turns)];
      return { messages, ...(tools && { tools }), add_generation_prompt, ...more };
    });
  return fc.sample(conversation, { numRuns: count, seed });
}
