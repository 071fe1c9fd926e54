// One model in front of two: short questions go to a small model, long ones and those with tools to a large one.
//   SMALL_URL=http://127.0.0.1:11434/v1 SMALL_MODEL=… LARGE_URL=… LARGE_MODEL=… truewire serve ./examples/router.ts
import OpenAI from "openai";
import { defineProgram, type ProgramItem } from "truewire";

const target = (name: "SMALL" | "LARGE") => ({
  client: new OpenAI({ baseURL: process.env[`${name}_URL`], apiKey: process.env[`${name}_KEY`] ?? "none" }),
  model: process.env[`${name}_MODEL`] ?? "default",
});
const small = target("SMALL");
const large = target("LARGE");

export default defineProgram(async function* ({ messages, tools, options, signal }): AsyncGenerator<ProgramItem> {
  const size = JSON.stringify(messages).length;
  const { client, model } = tools === undefined && size < 500 ? small : large;
  // The program's messages, tools and options are OpenAI's own, so they go on as they came.
  const body = {
    ...options,
    model,
    messages,
    ...(tools && { tools }),
    stream: true,
    stream_options: { include_usage: true },
  };
  const stream = await client.chat.completions.create(body as unknown as OpenAI.ChatCompletionCreateParamsStreaming, {
    signal,
  });
  for await (const { choices, usage } of stream) {
    const delta = choices[0]?.delta;
    if (delta?.content) yield delta.content;
    for (const call of delta?.tool_calls ?? []) {
      if (call.function?.name)
        yield { type: "tool-call-start", name: call.function.name, ...(call.id && { id: call.id }) };
      if (call.function?.arguments) yield { type: "tool-call-delta", arguments: call.function.arguments };
    }
    if (usage)
      yield { type: "usage", usage: { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens } };
  }
});
