// LangChain.js's streaming loop. BASE_URL and MODEL say where.
import { ChatOpenAI } from "@langchain/openai";

const model = new ChatOpenAI({
  model: process.env.MODEL ?? "demo",
  apiKey: process.env.OPENAI_API_KEY ?? "none",
  configuration: { baseURL: process.env.BASE_URL ?? "http://127.0.0.1:8080/v1" },
});
for await (const chunk of await model.stream(process.argv[2] ?? "Hello!")) process.stdout.write(chunk.text);
process.stdout.write("\n");
