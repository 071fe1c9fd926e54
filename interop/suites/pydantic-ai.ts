import { join } from "node:path";
import { serveConfig } from "../../test/sessions/sources.ts";
import { freePort, pythonPackages } from "../place.ts";
import { modules, runPytest } from "./pytest.ts";
import { sourceOf } from "./suite.ts";
import type { Suite } from "./suite.ts";

const source = sourceOf("pydantic/pydantic-ai", "4fda38988f2939fa6ea9cdefcf120693e10ef491", "2026-08-22");
const packages = pythonPackages("suite-pydantic-ai");

const files = [
  "test_openai",
  "test_openai_responses",
  "test_anthropic",
  "test_tool_choice_matrix",
  "test_stream_close",
];

/** What is tested is the source, with the packages that the released one needs. */
const folders = ["", "pydantic_ai_slim", "pydantic_graph", "pydantic_evals"];

/** Ends of paths, and the API behind them. */
const apis = { "/chat/completions": "chat", "/responses": "responses", "/messages": "messages" } as const;

/**
 * Pydantic AI's tests of its models of OpenAI and Anthropic. They compare everything that comes of recorded answers; here, the answers come
 * through Truewire from a server that gives what was recorded.
 */
export const pydanticAi: Suite = {
  id: "pydantic-ai-tests",
  name: "Pydantic AI's tests with recorded answers",
  from: "github pydantic/pydantic-ai",
  leftOut: "what asks other servers, or has no recorded answer",
  reasons: [
    [
      "o1_mini_system_role",
      "suite",
      "the model refuses the request; Truewire sends it again in another form, to which no answer is recorded",
    ],
    [
      "thinking_with_modified_history",
      "suite",
      "wants the refusal of changed reasoning; Truewire leaves the reasoning out and asks again",
    ],
    [
      "responses_verbosity",
      "suite",
      "its answer is written by hand, with a status that OpenAI does not have (complete)",
    ],
    [
      "openai_previous_response_id",
      "suite",
      "its answer is written by hand, with a status that OpenAI does not have (complete)",
    ],
    [
      "responses_model_retry",
      "suite",
      "the recorded answer counts 0 tokens for a prompt and two calls; Truewire estimates such counts, since clients compact by them",
    ],
    [
      "background_mode_streaming",
      "Truewire",
      "on purpose: it runs and keeps a response in the background itself, over any source, so the id is known before the source answers",
    ],
    ["thinking_part_stream", "Truewire", "on purpose: leaves out deltas without text"],
  ],
  version: () => (packages.version("pydantic-ai-slim") === undefined ? undefined : source.version()),
  async install() {
    await source.install();
    const tools = ["pytest", "pytest-mock", "pytest-recording", "pytest-pretty", "pytest-examples", "blockbuster"];
    const others = ["httpx2", "anyio", "asgi-lifespan", "devtools", "dirty-equals", "inline-snapshot", "brotli"];
    // The versions that its lock file has.
    const clients = ["openai==3.0.0", "anthropic==1.0.0"];
    const itself = "pydantic-ai-slim[openai,anthropic,google,mcp,logfire]==2.68.0";
    await packages.install(itself, ...tools, ...others);
    // The released one demands newer ones.
    await packages.install("--no-deps", ...clients);
  },
  async run() {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/v1`;
    const servers = await Promise.all(
      Object.values(apis).map((api) =>
        serveConfig({ models: [{ kind: "upstream", url, api, key: "none", retries: 0 }] }),
      ),
    );
    const urls = Object.fromEntries(Object.keys(apis).map((end, index) => [end, servers[index]?.url]));
    try {
      return await runPytest({
        python: packages.program("python"),
        cwd: source.folder,
        path: [join(modules, "pydantic"), ...folders.map((folder) => join(source.folder, folder))],
        args: [
          ...files.map((file) => `tests/models/${file}.py`),
          "-p",
          "through_truewire",
          "--disable-recording",
          "-p",
          "no:pretty",
        ],
        env: {
          TRUEWIRE_URLS: JSON.stringify(urls),
          TRUEWIRE_RECORDED_PORT: String(port),
          BLOCKBUSTER_ENABLED: "false",
        },
      });
    } finally {
      for (const server of servers) await server.stop();
    }
  },
};
