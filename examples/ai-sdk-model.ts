// Any model of the Vercel AI SDK as an OpenAI API; forty provider packages work like this one.
//   MODEL_URL=http://127.0.0.1:8080/v1 MODEL=demo truewire serve ./examples/ai-sdk-model.ts --port 8081
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const provider = createOpenAICompatible({
  name: "upstream",
  baseURL: process.env.MODEL_URL ?? "http://127.0.0.1:8080/v1",
  includeUsage: true,
});

export default provider(process.env.MODEL ?? "demo");
