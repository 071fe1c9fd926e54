import colors from "picocolors";
import type { TruewireConfig } from "../config/config.ts";
import type { TruewireServer } from "../create-server.ts";

/** Says on stdout where the API is, what it serves, and a command line that works. */
export async function printReady(server: TruewireServer, config: TruewireConfig, demo: boolean): Promise<void> {
  const models = server.models();
  const [first] = models;
  const key =
    config.apiKey !== undefined && config.apiKey.length > 0 ? ` -H "Authorization: Bearer $TRUEWIRE_API_KEY"` : "";
  const lines = [
    ...(demo
      ? ["Nothing was named to serve, so this is the bundled demo model: small, and for trying things out."]
      : []),
    `${colors.bold(`${server.url}/v1`)} speaks OpenAI's API. ${models.length === 1 ? "Model" : "Models"}: ${models.map(({ id }) => id).join(", ")}`,
  ];
  if (first) {
    const chats = first.endpoints.includes("chat");
    const body = chats
      ? { model: first.id, stream: true, messages: [{ role: "user", content: "Hello!" }] }
      : { model: first.id, stream: true, prompt: "Hello" };
    lines.push(
      "Try it:",
      `  curl -N ${server.url}/v1/${chats ? "chat/completions" : "completions"}${key} -H "Content-Type: application/json" -d ${shellQuoted(JSON.stringify(body))}`,
    );
  }
  console.log(lines.join("\n"));
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
