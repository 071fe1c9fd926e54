// A tool-calling loop in the server: the client asks one question and reads one answer; the tools run here. What is done on the
// way is shown as reasoning.
//   MODEL_URL=http://127.0.0.1:8080/v1 MODEL=demo truewire serve ./examples/agent.ts --port 8081
import OpenAI from "openai";
import { defineProgram } from "truewire";

const client = new OpenAI({
  baseURL: process.env.MODEL_URL ?? "http://127.0.0.1:8080/v1",
  apiKey: process.env.MODEL_KEY ?? "none",
});
const model = process.env.MODEL ?? "demo";
const maxRounds = 8;

const tools: Record<string, { description: string; parameters: object; run(args: Record<string, unknown>): unknown }> =
  {
    add: {
      description: "Add two numbers",
      parameters: {
        type: "object",
        properties: { a: { type: "number" }, b: { type: "number" } },
        required: ["a", "b"],
      },
      run: ({ a, b }) => Number(a) + Number(b),
    },
    get_weather: {
      description: "The weather in a city",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      run: ({ city }) => ({ city, temperature: 21, unit: "celsius", sky: "clear" }),
    },
  };

const declared = Object.entries(tools).map(([name, { description, parameters }]) => ({
  type: "function" as const,
  function: { name, description, parameters: parameters as Record<string, unknown> },
}));

export default defineProgram(async function* ({ messages, signal }) {
  const history = [...messages] as unknown as OpenAI.ChatCompletionMessageParam[];
  for (let turn = 0; turn < maxRounds; turn++) {
    const stream = client.chat.completions.stream({ model, messages: history, tools: declared }, { signal });
    for await (const chunk of stream) {
      const text = chunk.choices[0]?.delta.content;
      if (text) yield text;
    }
    const message = (await stream.finalChatCompletion()).choices[0]?.message;
    if (!message?.tool_calls?.length) return;
    history.push(message);
    for (const call of message.tool_calls) {
      if (call.type !== "function") continue;
      const result = run(call.function.name, call.function.arguments);
      yield { type: "reasoning", text: `${call.function.name}(${call.function.arguments}) = ${result}\n` };
      history.push({ role: "tool", tool_call_id: call.id, content: result });
    }
  }
  yield `I stopped after ${maxRounds} rounds of tool calls.`;
});

/** The model gets a tool's failure as its result and may try again; it does not end the answer. */
function run(name: string, args: string): string {
  try {
    const tool = tools[name];
    return tool ? JSON.stringify(tool.run(JSON.parse(args) as Record<string, unknown>)) : `There is no tool ${name}.`;
  } catch (error) {
    return `Failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}
