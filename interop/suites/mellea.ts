import { pythonPackages } from "../place.ts";
import { oneLoop, runPytest } from "./pytest.ts";
import { sourceOf } from "./suite.ts";
import type { Suite } from "./suite.ts";

const source = sourceOf("generative-computing/mellea", "55d008009921addf47f73a57915611c5561c3eec", "2026-08-20");
const packages = pythonPackages("mellea");

const files = [
  "backends/test_litellm_ollama.py",
  "backends/test_ollama.py",
  "backends/test_openai_ollama.py",
  "backends/test_tool_calls.py",
  "backends/test_vision_ollama.py",
  "backends/test_vision_openai.py",
  "core/test_astream_incremental.py",
  "core/test_component_typing.py",
  "core/test_computed_model_output_thunk.py",
  "core/test_model_output_thunk.py",
  "core/test_streaming_sync_functions.py",
  "stdlib/components/test_genstub.py",
  "stdlib/requirements/test_requirement.py",
  "stdlib/sampling/test_majority_voting.py",
  "stdlib/sampling/test_sampling_ctx.py",
  "stdlib/sampling/test_sofai_graph_coloring.py",
  "stdlib/sampling/test_sofai_sampling.py",
  "stdlib/sampling/test_think_budget_forcing.py",
  "stdlib/test_chat_view.py",
  "stdlib/test_functional.py",
  "stdlib/test_session.py",
];

/** What mellea's tests ask their servers for. */
export const melleaModels: readonly string[] = [
  "granite4.1:3b",
  "gpt-oss:20b",
  "granite*",
  "qwen*",
  "llama3*",
  "gemma*",
  "mistral*",
];

/** mellea's tests that talk to Ollama, by its own API, by the one of OpenAI and by LiteLLM. */
export const melleaSuite: Suite = {
  id: "mellea-tests",
  name: "mellea's tests of its backends",
  from: "github generative-computing/mellea",
  leftOut: "what needs PyTorch, a key or a GPU; tests of `m serve`, which run its own server without a connection",
  reasons: [
    [
      "test_litellm_ollama.py::test_async_parallel",
      "suite",
      "cannot read LiteLLM's chunk of usage, which has no choices",
    ],
    ["test_generate_from_raw", "suite", "wants a list of prompts to be refused, as by Ollama; OpenAI takes it"],
  ],
  version: () => (packages.version("pytest") === undefined ? undefined : source.version()),
  async install() {
    await source.install();
    await packages.install("mellea[server,litellm]==0.8.0", "pytest", "pytest-asyncio", "pytest-recording", "psutil");
  },
  run: ({ url }) =>
    runPytest({
      python: packages.program("python"),
      cwd: source.folder,
      path: [source.folder],
      args: [...files.map((file) => `test/${file}`), "-m", "ollama", "--skip-resource-checks", ...oneLoop],
      env: { OLLAMA_HOST: new URL(url).host, OTEL_SDK_DISABLED: "true", OPENAI_API_KEY: "none" },
    }),
};
