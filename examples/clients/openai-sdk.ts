// The official SDK's streaming loop. BASE_URL and MODEL say where.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.BASE_URL ?? "http://127.0.0.1:8080/v1",
  apiKey: process.env.OPENAI_API_KEY ?? "none",
});
const stream = await client.chat.completions.create({
  model: process.env.MODEL ?? "demo",
  messages: [{ role: "user", content: process.argv[2] ?? "Hello!" }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
process.stdout.write("\n");
