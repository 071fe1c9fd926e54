// The Vercel AI SDK's streaming loop. BASE_URL and MODEL say where.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const provider = createOpenAICompatible({
  name: "truewire",
  baseURL: process.env.BASE_URL ?? "http://127.0.0.1:8080/v1",
});
const { textStream } = streamText({
  model: provider(process.env.MODEL ?? "demo"),
  prompt: process.argv[2] ?? "Hello!",
});
for await (const text of textStream) process.stdout.write(text);
process.stdout.write("\n");
