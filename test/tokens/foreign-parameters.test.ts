import { afterAll, beforeAll, expect, test } from "vitest";
import { serveFixture, type FixtureServer } from "../support/fixture-server.ts";

// What users of other servers send and look for: it was ignored without a word, or refused though it does no harm.

let server: FixtureServer;
beforeAll(async () => {
  server = await serveFixture();
});
afterAll(() => server.close());

interface Answer {
  readonly status: number;
  readonly warning: string | null;
  readonly text: string | undefined;
  readonly error: { readonly param: string | null } | undefined;
}

async function ask(more: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const messages = [{ role: "user", content: "#plain" }];
  const response = await fetch(`${server.baseURL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "programmed", temperature: 0, messages, ...more }),
  });
  const body = (await response.json()) as {
    readonly choices?: readonly { readonly message: { readonly content: string } }[];
    readonly error?: { readonly param: string | null };
  };
  return {
    status: response.status,
    warning: response.headers.get("x-truewire-warning"),
    text: body.choices?.[0]?.message.content,
    error: body.error,
  };
}

test.each([
  ["regex", "[xy]{3}", /^[xy]{3}$/],
  ["ebnf", 'root ::= "maybe " [0-9]', /^maybe \d$/],
])("SGLang's %s holds the answer", async (name, value, expected) => {
  expect(await ask({ [name]: value })).toMatchObject({ status: 200, text: expect.stringMatching(expected) as string });
});

test("an ebnf that is no grammar is refused by its name", async () => {
  expect(await ask({ ebnf: "root = nothing" })).toMatchObject({ status: 400, error: { param: "ebnf" } });
});

test("logit_bias takes texts, as an object and as llama.cpp's list", async () => {
  expect((await ask({ max_tokens: 3 })).text).toBe("The quick brown");
  for (const bias of [{ zq: 100 }, [["zq", 100]]])
    expect((await ask({ max_tokens: 6, logit_bias: bias })).text).toMatch(/^[zq]{6}$/);
});

test("n_predict bounds the answer", async () => {
  expect((await ask({ n_predict: 3 })).text).toBe("The quick brown");
});

test.each([{ tool_choice: "none" }, { tool_choice: "auto" }])(
  "%j without tools is accepted with a warning",
  async (more) => {
    const { status, warning } = await ask(more);
    expect(status).toBe(200);
    expect(warning).toContain("tool_choice");
    const exact = await ask(more, { "x-truewire-wire": "exact" });
    expect(exact).toMatchObject({ status: 400, error: { param: "tool_choice" } });
  },
);

test("/v1/models tells the length of the context, but not in the vendor's form", async () => {
  const listed = async (headers: Readonly<Record<string, string>>): Promise<object | undefined> => {
    const response = await fetch(`${server.baseURL}/models`, { headers });
    return ((await response.json()) as { readonly data: readonly object[] }).data[0];
  };
  expect(await listed({})).toMatchObject({ id: "programmed", max_model_len: 4096, context_length: 4096 });
  const exact = await listed({ "x-truewire-wire": "exact" });
  expect(Object.keys(exact ?? {})).toEqual(["id", "object", "created", "owned_by"]);
});
