import colors from "picocolors";
import type { TruewireConfig } from "../config/config.ts";
import type { ModelInfo } from "../core/engine.ts";
import type { TruewireServer } from "../app/create-server.ts";

/** The most names that are printed; an upstream may have hundreds. */
const maxNames = 8;

/** Prints the address of the API, the served models and a curl line to try. */
export function printReady(server: TruewireServer, config: TruewireConfig, demo: boolean): void {
  const models = server.models();
  const [first] = models;
  const names = models.slice(0, maxNames).map(({ id }) => id);
  if (models.length > maxNames) names.push(`and ${models.length - maxNames} more`);
  // The key itself is not printed: what is printed may be kept.
  const { apiKey = [], keys = [], keysFile } = config;
  const withKey = apiKey.length > 0 || keys.length > 0 || keysFile !== undefined;
  const key = withKey ? ' -H "Authorization: Bearer $OPENAI_API_KEY"' : "";
  const lines = [
    ...(demo ? ["No model was named, so this serves the bundled demo model, a small one for trying things out."] : []),
    `${colors.bold(`${server.url}/v1`)} serves the OpenAI API. ${first ? `${models.length === 1 ? "Model" : "Models"}: ${names.join(", ")}` : "No upstream answers yet; their models are taken in when they do."}`,
  ];
  if (first) {
    const [path, body] = exampleOf(first);
    lines.push(
      withKey ? "Try it, with your key in OPENAI_API_KEY:" : "Try it:",
      `  curl -N ${server.url}/v1/${path}${key} -H "Content-Type: application/json" -d ${shellQuoted(JSON.stringify(body))}`,
    );
  }
  console.log(lines.join("\n"));
}

/** A request that the model answers: its path, and its body. */
function exampleOf({ id: model, endpoints }: ModelInfo): readonly [path: string, body: object] {
  if (endpoints.includes("chat"))
    return ["chat/completions", { model, stream: true, messages: [{ role: "user", content: "Hello!" }] }];
  if (endpoints.includes("completions")) return ["completions", { model, stream: true, prompt: "Hello" }];
  if (endpoints.includes("embeddings")) return ["embeddings", { model, input: "Hello" }];
  return ["rerank", { model, query: "What is it?", documents: ["A cat.", "A stone."] }];
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
