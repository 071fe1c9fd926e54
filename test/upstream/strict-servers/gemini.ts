import type { Json, Refusal, StrictServer } from "./strict-server.ts";

/*
 * Sources: https://ai.google.dev/gemini-api/docs/openai (members); the form of errors, a list of one with a line for each member:
 * https://github.com/MinLL/SkyrimNet-GamePlugin/issues/77 and https://github.com/Alishahryar1/free-claude-code/issues/542.
 */

const members = new Set([
  "model",
  "messages",
  "temperature",
  "top_p",
  "max_tokens",
  "max_completion_tokens",
  "stream",
  "stream_options",
  "stop",
  "n",
  "response_format",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "reasoning_effort",
  "extra_body",
]);

/** Gemini's endpoint for OpenAI's clients. */
export const gemini: StrictServer = { name: "Gemini", owner: "google", refusal };

function refusal(body: Json): Refusal | undefined {
  const unknown = Object.keys(body).filter((name) => !members.has(name));
  if (unknown.length === 0) return undefined;
  const lines = unknown.map((name) => `Invalid JSON payload received. Unknown name "${name}": Cannot find field.`);
  const details = [
    {
      "@type": "type.googleapis.com/google.rpc.BadRequest",
      fieldViolations: lines.map((description) => ({ description })),
    },
  ];
  return {
    status: 400,
    body: [{ error: { code: 400, message: lines.join("\n"), status: "INVALID_ARGUMENT", details } }],
  };
}
