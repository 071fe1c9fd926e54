import { listOf, refused } from "../test/doubles/chat-server.ts";
import type { ChatServer, Refusal } from "../test/doubles/chat-server.ts";
import { startAnthropic } from "../test/doubles/anthropic.ts";
import { litellm } from "../test/doubles/litellm.ts";
import { llamaServer } from "../test/doubles/llama-server.ts";
import { ollama } from "../test/doubles/ollama.ts";
import { startOllama } from "../test/doubles/ollama-api.ts";
import { vllm } from "../test/doubles/vllm.ts";
import { inputs } from "./inputs.ts";
import { ollamaInputs } from "./inputs-ollama.ts";
import { freePort } from "./place.ts";
import { startLitellm } from "./servers/litellm.ts";
import type { StartedServer } from "./servers/server.ts";
import type { Json } from "./trials/client-apis.ts";

/** vLLM's double with a model that does not see. */
const blindVllm: ChatServer = {
  ...vllm,
  refusal(body) {
    const parts = listOf(body["messages"]).flatMap(({ content }) => listOf(content));
    const hasImage = parts.some(({ type }) => type === "image_url");
    return vllm.refusal(body) ?? (hasImage ? refused(`${String(body["model"])} is not a multimodal model`) : undefined);
  },
};

/** The double of each real server. */
export const doubles: Readonly<Record<string, ChatServer>> = {
  "llama-server": llamaServer({ sees: false }),
  ollama: ollama({ reasons: true, takesLevels: false }),
  vllm: blindVllm,
  litellm: litellm({ thinks: false }),
};

/** Starts a server as its double is; undefined: as it starts otherwise. */
export const startLikeDouble: Readonly<Record<string, () => Promise<StartedServer>>> = {
  litellm: startLitellmWithClaude,
};

/** LiteLLM in front of the double of Anthropic. */
async function startLitellmWithClaude(): Promise<StartedServer> {
  const anthropic = await startAnthropic({ accounts: { none: "own" }, answer: () => ({ text: "Hello." }) });
  const port = await freePort();
  const base = anthropic.url.replace(/\/v1$/, "");
  const model = "claude-sonnet-4-5-20250929";
  const running = await startLitellm(port, { base, model, name: "m", vendor: "anthropic" });
  return {
    url: `http://127.0.0.1:${port}`,
    model: "m",
    contextSize: 200_000,
    async stop() {
      await running.stop();
      await anthropic.close();
    },
  };
}

interface Verdict {
  readonly status: number;
  /** Of an error; empty: the request was accepted. */
  readonly message: string;
}

/**
 * What the double answers as Ollama 0.33 does, by its source (api/types.go, llm/llama_server.go), and 0.17.4 otherwise: the level `max` of `think`,
 * levels for all models that think, formats that are no schema, and embeddings of models that are not made for them.
 */
const sinceOllama017: ReadonlySet<string> = new Set([
  "think: high",
  "think: unknown",
  "think: a number",
  "format: unknown",
  "format: a number",
  "format: a list",
  "a text",
  "two texts",
]);

/** Sends each input to Ollama's own API and to its double. Returns a line for each on which they differ. */
export async function ollamaDifferences({ url, model, contextSize }: StartedServer): Promise<string[]> {
  const capabilities = ["completion", "tools", "thinking"];
  const models = { [model]: { capabilities, contextLength: contextSize } };
  const double = await startOllama({ models, reply: () => "Hello.", defaultNumCtx: contextSize });
  const lines: string[] = [];
  try {
    for (const [path, bodies] of Object.entries(ollamaInputs))
      for (const [name, input] of Object.entries(bodies)) {
        if (sinceOllama017.has(name)) continue;
        const body = { model, ...input };
        const [real, ours] = [await askAt(url + path, body), await askAt(double.url + path, body)];
        if (real.status === ours.status && plain(real.message) === plain(ours.message)) continue;
        lines.push(`${path}, ${name}\n  real:   ${shown(real)}\n  double: ${shown(ours)}`);
      }
  } finally {
    await double.close();
  }
  return lines;
}

/** Sends each input to a real server and to the double of that id. Returns a line for each on which they differ. */
export async function differences(id: string, { url, model }: StartedServer): Promise<string[]> {
  const lines: string[] = [];
  const double = doubles[id];
  if (!double) throw new Error(`${id} has no double.`);
  for (const [name, input] of Object.entries(inputs)) {
    const body = { model, ...input };
    const real = await askAt(`${url}/v1/chat/completions`, body);
    const refusal = double.refusal(JSON.parse(JSON.stringify(body)) as Json);
    const ours = refusal ? verdictOf(refusal) : { status: 200, message: "" };
    if (real.status === ours.status && plain(real.message) === plain(ours.message)) continue;
    lines.push(`${name}\n  real:   ${shown(real)}\n  double: ${shown(ours)}`);
  }
  return lines;
}

async function askAt(url: string, body: Json): Promise<Verdict> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.ok && !text.includes('"error"')) return { status: 200, message: "" };
  return { status: response.status, message: messageOf(text) };
}

const verdictOf = ({ status, body }: Refusal): Verdict => ({ status, message: messageOf(JSON.stringify(body)) });

function messageOf(text: string): string {
  try {
    const { error, message, detail } = JSON.parse(text.replace(/^data: /, "")) as Record<string, unknown>;
    const said = typeof error === "object" && error !== null && "message" in error ? error.message : error;
    return String(said ?? message ?? JSON.stringify(detail) ?? text);
  } catch {
    return text;
  }
}

/** What a JSON library says after its first error, what the server quotes of the request, and numbers are not compared. */
function plain(message: string): string {
  const [, kind = "", place = "", words = ""] =
    /validation errors?:\s*\{'type': '(\w+)', 'loc': '([^']+)', 'msg': (.+?), 'input':/s.exec(message) ?? [];
  if (kind !== "") return [kind, place, words].join(" ");
  const [said = ""] = message.split(
    /:? \[json\.exception|: \{| \[type=|\nReceived Messages=| passed in \{|\nTraceback /,
  );
  return said
    .replaceAll(/req_\w+/g, "req")
    .replaceAll(/\d+/g, "0")
    .replaceAll(/\s+/g, " ")
    .trim();
}

const shown = ({ status, message }: Verdict): string =>
  status === 200 ? "accepted" : `${status} ${message.replaceAll(/\s+/g, " ").slice(0, 400)}`;
