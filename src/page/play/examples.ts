import type { PresetValues } from "./settings.ts";

/** A question to begin with, and the settings that it shows; the others have the values of a new page. */
export interface Example {
  readonly title: string;
  readonly question: string;
  readonly settings: Partial<PresetValues>;
}

const weather = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" }, city: { type: "string" } },
  required: ["name", "age", "city"],
  additionalProperties: false,
};

/** All of them are within what the bundled demo model can do. */
export const examples: readonly Example[] = [
  { title: "Just ask", question: "What is the capital of France?", settings: {} },
  {
    title: "Call a tool",
    question: "What is the weather in Lisbon?",
    settings: {
      tools: [
        {
          id: 1,
          name: "get_weather",
          description: "The weather in a city",
          parameters: JSON.stringify(weather, null, 2),
          canned: "",
        },
      ],
    },
  },
  {
    title: "Answer in JSON",
    question: "Maria is 34 years old and lives in Lisbon.",
    settings: { format: "schema", schema: JSON.stringify(person, null, 2) },
  },
  {
    title: "Think first",
    question: "What is 17 plus 25?",
    settings: { parameters: { chat_template_kwargs: '{"enable_thinking": true}' } },
  },
  {
    title: "Compare two answers",
    question: "Write a story about a fox.",
    settings: { choices: 2, parameters: { temperature: "1" } },
  },
  {
    title: "See the probability of each token",
    question: "Write a story about a fox.",
    settings: { alternatives: 4 },
  },
];
