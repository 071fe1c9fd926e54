import { ask, clientApis } from "./client-apis.ts";
import type { Answer, ClientApi, Json } from "./client-apis.ts";
import type { Place, Result, Trial } from "./trial.ts";

const [chat] = clientApis as readonly [ClientApi, ...ClientApi[]];

const says = "Say good morning in one short sentence.";

function problemOf({ status, error, end }: Answer): string | undefined {
  if (status !== 200 || error !== undefined) return `${status} ${error}`;
  return end === undefined || end === "" ? "the answer has no end" : undefined;
}

const result = (problem: string | undefined, detail = ""): Result => ({
  ok: problem === undefined,
  detail: problem ?? detail,
});

/** One question over an API. */
function askOnce({ truewire, model }: Place, api: ClientApi, stream: boolean, more: Json = {}): Promise<Answer> {
  return ask(truewire, api, { model, history: [api.user(says)], maxTokens: 24, stream, more });
}

/** Begins a long streamed answer over chat. */
async function longAnswer(
  { truewire, model }: Place,
  signal?: AbortSignal,
): Promise<ReadableStreamDefaultReader<string>> {
  const messages = [chat.user("Count from one to a thousand.")];
  const response = await fetch(`${truewire}${chat.path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages, stream: true, max_tokens: 800 }),
    ...(signal && { signal }),
  });
  if (!response.body) throw new Error(`${response.status} without a body`);
  return response.body.pipeThrough(new TextDecoderStream()).getReader();
}

const answers: readonly Trial[] = clientApis.map((api) => ({
  name: `whole and streamed answers, ${api.id}`,
  async run(place) {
    // The same text both ways: the model's most probable one.
    const greedy = api.id === "ollama" ? { options: { temperature: 0, num_predict: 24 } } : { temperature: 0 };
    const whole = await askOnce(place, api, false, greedy);
    const streamed = await askOnce(place, api, true, greedy);
    const problem = problemOf(whole) ?? problemOf(streamed);
    if (problem !== undefined) return result(problem);
    if (whole.text + whole.reasoning === "") return result("the answer is empty");
    // A server that computes in several threads or batches may choose another token: that is said, and no failure.
    const isSame = whole.text === streamed.text && whole.reasoning === streamed.reasoning;
    return result(undefined, isSame ? "" : "the two texts differ");
  },
}));

const schema: Trial = {
  name: "an answer by a JSON schema",
  async run(place) {
    const object = {
      type: "object",
      properties: { city: { type: "string", enum: ["Oslo", "Lima"] }, days: { type: "integer", enum: [1, 2, 3] } },
      required: ["city", "days"],
      additionalProperties: false,
    };
    const answer = await askOnce(place, chat, true, {
      max_tokens: 60,
      response_format: { type: "json_schema", json_schema: { name: "trip", strict: true, schema: object } },
    });
    const problem = problemOf(answer);
    if (problem !== undefined) return result(problem);
    try {
      const value = JSON.parse(answer.text) as Json;
      const fits = object.properties.city.enum.includes(String(value["city"])) && Number.isInteger(value["days"]);
      return result(fits ? undefined : `the JSON does not fit: ${answer.text.slice(0, 120)}`);
    } catch {
      return result(`not JSON: ${answer.text.slice(0, 120)}`);
    }
  },
};

const logprobs: Trial = {
  name: "logprobs",
  async run({ truewire, model }) {
    const body = { model, messages: [chat.user(says)], max_tokens: 40, logprobs: true, top_logprobs: 2 };
    const response = await fetch(`${truewire}${chat.path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as {
      readonly choices?: readonly { readonly logprobs?: { readonly content?: readonly Json[] } | null }[];
      readonly error?: { readonly message: string };
    };
    if (answer.error) return { ok: undefined, detail: answer.error.message.slice(0, 160) };
    const content = answer.choices?.[0]?.logprobs?.content;
    if (!content) return { ok: undefined, detail: "the server sends none" };
    const isRight = content.every((entry) => typeof entry["token"] === "string" && Number(entry["logprob"]) <= 0);
    return result(isRight && content.length > 0 ? undefined : `wrong: ${JSON.stringify(content).slice(0, 160)}`);
  },
};

const severalChoices: Trial = {
  name: "two choices (n)",
  async run({ truewire, model }) {
    const response = await fetch(`${truewire}${chat.path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [chat.user(says)], max_tokens: 8, n: 2 }),
    });
    const answer = (await response.json()) as { choices?: unknown[]; error?: { message: string } };
    const count = answer.choices?.length ?? 0;
    return result(count === 2 ? undefined : (answer.error?.message ?? `${count} choices`));
  },
};

const image: Trial = {
  name: "an image, for a model without sight",
  async run(place) {
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const content = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
    ];
    const { truewire, model } = place;
    const answer = await ask(truewire, chat, {
      model,
      history: [{ role: "user", content }],
      maxTokens: 8,
      stream: false,
    });
    // Served without the image, or refused as a mistake of the request.
    const isRefused = answer.status >= 400 && answer.status < 500;
    return result(
      answer.status === 200 || isRefused ? undefined : `${answer.status} ${answer.error}`,
      isRefused ? `refused: ${answer.error?.slice(0, 120)}` : "served",
    );
  },
};

const overflow: Trial = {
  name: "a prompt that does not fit",
  async run(place) {
    const { truewire, model, started } = place;
    // A word is at least a token.
    const content = "hello world ".repeat(started.contextSize);
    const response = await fetch(`${truewire}${chat.path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [chat.user(content)], max_tokens: 8 }),
    });
    const answer = (await response.json()) as { error?: { code?: string; message: string } };
    const isRight = response.status === 400 && answer.error?.code === "context_length_exceeded";
    const said = `${response.status} ${answer.error ? `${answer.error.code}: ${answer.error.message}` : "an answer"}`;
    return result(isRight ? undefined : said.slice(0, 300));
  },
};

const cancel: Trial = {
  name: "a client that leaves",
  async run(place) {
    const controller = new AbortController();
    const reader = await longAnswer(place, controller.signal);
    await reader.read();
    controller.abort();
    await reader.cancel().catch(() => undefined);
    // The server has one answer at a time, or several: the next one comes either way.
    return result(problemOf(await askOnce(place, chat, true)));
  },
};

const restart: Trial = {
  name: "the server is killed in mid-stream, and comes back",
  async run(place) {
    const reader = await longAnswer(place);
    let text = (await reader.read()).value ?? "";
    await place.started.stop("SIGKILL");
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
    await place.restart();
    const isToldAsError = text.includes('"error"');
    const isWhole = /"finish_reason":"(stop|length)"/.test(text);
    const after = problemOf(await askOnce(place, chat, true));
    if (after !== undefined) return result(`after the restart: ${after}`);
    return result(
      isToldAsError || isWhole ? undefined : "the cut stream ends without an error",
      isWhole ? "the answer was whole before the server died" : "",
    );
  },
};

/** What a server does for the clients of each API, with Truewire in front of it. `restart` is last: what was cached is gone after it. */
export const featureTrials: readonly Trial[] = [...answers, schema, logprobs, severalChoices, image, overflow, cancel];

export const restartTrial: Trial = restart;
