import { afterEach, expect, test } from "vitest";
import { startOpenAi, type OpenAiDouble, type OpenAiDoubleOptions, type OpenAiTurn } from "./openai.ts";

interface Item {
  readonly id: string;
  readonly type: string;
  readonly call_id?: string;
  readonly encrypted_content?: string;
}
interface Answer {
  readonly id: string;
  readonly output: readonly Item[];
  readonly error?: { readonly message: string };
}

const doubles: OpenAiDouble[] = [];
afterEach(async () => {
  await Promise.all(doubles.splice(0).map((double) => double.close()));
});

const opened = async (more: Partial<OpenAiDoubleOptions> = {}): Promise<OpenAiDouble> => {
  const turn = ({ input }: { readonly input: readonly object[] }): OpenAiTurn =>
    input.length < 3
      ? {
          reasoning: "I ask twice.",
          calls: [
            { name: "f", arguments: "{}" },
            { name: "f", arguments: '{"x":1}' },
          ],
        }
      : { reasoning: "I know.", text: "Two." };
  const double = await startOpenAi({ turn, ...more });
  doubles.push(double);
  return double;
};
const ask = async ({ url }: OpenAiDouble, body: object, key = "k"): Promise<Answer> => {
  const response = await fetch(`${url}/responses`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "gpt-5", ...body }),
  });
  return (await response.json()) as Answer;
};
const user = { role: "user", content: "How many?" };
const encrypted = { store: false, include: ["reasoning.encrypted_content"] };
const results = (output: readonly Item[]): object[] =>
  output.flatMap(({ type, call_id }) =>
    type === "function_call" ? [{ type: "function_call_output", call_id, output: "1" }] : [],
  );

test("a conversation that returns every item goes on, stored and not", async () => {
  const double = await opened();
  for (const options of [{}, encrypted]) {
    const first = await ask(double, { ...options, input: [user] });
    expect(first.output.map(({ type }) => type)).toEqual(["reasoning", "function_call", "function_call"]);
    const second = await ask(double, { ...options, input: [user, ...first.output, ...results(first.output)] });
    expect(
      second.output?.map(({ type }) => type),
      second.error?.message,
    ).toEqual(["reasoning", "message"]);
  }
  const first = await ask(double, { input: [user] });
  const second = await ask(double, { previous_response_id: first.id, input: results(first.output) });
  expect(second.output?.at(-1)?.type, second.error?.message).toBe("message");
  expect(double.refusals).toEqual([]);
});

test("what a session gets wrong is refused in OpenAI's words", async () => {
  const double = await opened({ organizations: { k: "org-1", other: "org-2" }, plainModels: ["gpt-4.1"] });
  const { output } = await ask(double, { ...encrypted, input: [user] });
  const kept = await ask(double, { input: [user] });
  const [reasoning, one, two] = output;
  const [keptReasoning, keptCall] = kept.output;
  if (!reasoning || !one || !two || !keptReasoning || !keptCall) throw new Error("The double did not call twice.");
  const answers = results(output);
  const content = reasoning.encrypted_content ?? "";
  const changed = {
    ...reasoning,
    encrypted_content: content.slice(0, -4) + (content.endsWith("AAAA") ? "BBBB" : "AAAA"),
  };
  const cases: readonly (readonly [body: object, words: RegExp, key?: string])[] = [
    [{ input: [user, changed, one, two, ...answers] }, /for item rs_.* could not be verified\. Reason: .*decrypted/],
    [{ input: [user, ...output, ...answers] }, /organization_id did not match the target organization/, "other"],
    [
      { input: [user, { ...reasoning, encrypted_content: undefined }, one, two, ...answers] },
      /^Item with id 'rs_.*not found/,
    ],
    [{ input: [user, reasoning] }, /without its required following item/],
    [{ input: [user, reasoning, user] }, /without its required following item/],
    [{ input: [user, reasoning, two, one, ...answers] }, /without its required following item/],
    [
      { input: [user, keptCall, ...results([keptCall])] },
      /'function_call' was provided without its required 'reasoning' item: 'rs_/,
    ],
    [{ input: [user, { type: "item_reference", id: "rs_0" }] }, /^Item with id 'rs_0' not found/],
    [{ input: [user, one, two, answers[0]] }, /^No tool output found for function call call_/],
    [{ input: [user, answers[0]] }, /^No tool call found for function call output with call_id call_/],
    [
      { input: [user, { ...one, encrypted_content: "x" }, answers[0]] },
      /^Unknown parameter: 'input\[1\]\.encrypted_content'/,
    ],
    [{ input: [user, { ...one, id: "call_0" }, answers[0]] }, /Expected an ID that begins with 'fc'/],
    [{ input: "x", previous_response_id: "resp_0" }, /^Previous response with id 'resp_0' not found/],
    [{ input: "x", model: "gpt-4.1", ...encrypted }, /^Encrypted content is not supported with this model/],
  ];
  for (const [body, words, key] of cases) expect((await ask(double, body, key)).error?.message).toMatch(words);
  expect(double.refusals).toHaveLength(cases.length);
});

test("a stream has the items of the whole response", async () => {
  const double = await opened();
  const response = await fetch(`${double.url}/responses`, {
    method: "POST",
    headers: { authorization: "Bearer k" },
    body: JSON.stringify({ model: "gpt-5", stream: true, ...encrypted, reasoning: { summary: "auto" }, input: [user] }),
  });
  const events = (await response.text())
    .split("\n\n")
    .filter((event) => event !== "")
    .map(
      (event) =>
        JSON.parse(event.slice(event.indexOf("data: ") + 6)) as { type: string; item?: Item; response?: Answer },
    );
  const done = events.flatMap(({ type, item }) => (type === "response.output_item.done" && item ? [item.id] : []));
  expect(done).toEqual(events.at(-1)?.response?.output.map(({ id }) => id));
  expect(events.at(-1)?.response?.output[0]?.encrypted_content).toMatch(/^g[A-Za-z0-9_-]+$/);
});
