import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { pythonPackages } from "../place.ts";
import { modules, oneLoop, runPytest } from "./pytest.ts";
import { sourceOf } from "./suite.ts";
import type { Suite } from "./suite.ts";

export const ogxSource = sourceOf("ogx-ai/ogx", "5a9cb55d8a8b898feb1627e80f7f1e39707d3888", "2026-04-30");
/** The environment of the server OGX; it needs Python 3.12. */
export const ogxPackages = pythonPackages("ogx", "python3.12");

const files = [
  "inference/test_openai_completion.py",
  "inference/test_openai_embeddings.py",
  "inference/test_openai_vision_inference.py",
  "inference/test_tools_with_schemas.py",
  "messages/test_messages.py",
  "conversations/test_openai_conversations.py",
  "agents/test_openai_responses.py",
  "responses/test_basic_responses.py",
  "responses/test_openai_responses.py",
  "responses/test_responses_errors.py",
  "responses/test_structured_output.py",
  "responses/test_reasoning.py",
  "responses/test_compact_responses.py",
  "responses/test_conversation_responses.py",
  "responses/test_langchain_responses.py",
  "responses/test_langgraph_responses.py",
];

/** OGX' (formerly Llama Stack) integration tests of its APIs of OpenAI and Anthropic. */
export const ogxSuite: Suite = {
  id: "ogx-tests",
  name: "OGX' integration tests",
  from: "github ogx-ai/ogx",
  leftOut:
    "hosted tools (`file_search`, MCP, web search), guardrails, files and vector stores; its own client in place of the one of OpenAI",
  reasons: [
    [
      "test_inference_store",
      "suite",
      "OGX keeps each answer of Chat Completions and lists it with input_messages, which OpenAI's API has not",
    ],
    ["non_streaming_with_file", "model", "it reads no PDF"],
    ["multi_turn_image", "model", "it does not know where llamas live"],
    ["logprobs_streaming[inference", "suite", "reads choices of the stream in place of those of a chunk"],
    ["messages_response_headers", "suite", "OGX returns the header anthropic-version; Anthropic does not"],
    ["conversation_item_delete", "suite", "wants the item's id; OpenAI returns the conversation"],
    [
      "below_minimum",
      "suite",
      "fewer than 16 tokens are refused in the profile exact, as at OpenAI; in lean, they are taken",
    ],
    ["streaming_failed_error_code", "suite", "OGX fails with truncation: auto; OpenAI does not"],
    ["truncation_auto_error", "suite", "OGX fails with truncation: auto; OpenAI does not"],
    ["invalid_base64_image_failure", "model", "it looks at no picture, so a broken one is no error"],
    ["background_and_stream", "suite", "OGX refuses background with stream; OpenAI does not"],
    ["[priority]", "suite", "OpenAI names this tier fast for models after GPT-5.6"],
    ["incomplete_details_length", "suite", "wants the reason length; OpenAI's is max_output_tokens"],
    ["invalid_model_raises", "suite", "wants 404; OpenAI's Responses answer 400 to an unknown model"],
    ["invalid_previous_response_id", "suite", "wants 404; OpenAI answers 400"],
    ["raises_not_found_error", "suite", "wants OGX' words"],
    ["invalid_conversation_id_format", "suite", "wants OGX' words"],
    [
      "test_compact_",
      "suite",
      "OGX stores a compaction like a response and hides it in the list of items; OpenAI does neither",
    ],
    ["_streaming", "suite", "wants response_id in each event, which OpenAI's events have not"],
    ["usage", "suite", "wants response_id in each event, which OpenAI's events have not"],
    ["previous_response", "suite", "wants response_id in each event, which OpenAI's events have not"],
  ],
  version: () => (ogxPackages.version("langgraph") === undefined ? undefined : ogxSource.version()),
  async install() {
    await ogxSource.install();
    await ogxPackages.install(
      "ogx[client]==1.5.0",
      "openai",
      "langchain-openai==1.7.4",
      "langgraph==1.2.24",
      "pytest",
      "pytest-asyncio",
    );
    const tests = join(ogxSource.folder, "tests/integration");
    copyFileSync(join(modules, "ogx/conftest.py"), join(tests, "conftest.py"));
    copyFileSync(join(modules, "ogx/common.py"), join(tests, "fixtures/common.py"));
  },
  run: ({ url, capable, embeddings }) =>
    runPytest({
      python: ogxPackages.program("python"),
      cwd: ogxSource.folder,
      path: [join(modules, "ogx"), ogxSource.folder],
      args: [
        ...files.map((file) => join("tests/integration", file)),
        "-k",
        "not (web_search or file_search or mcp or guardrail or connector or max_iterations)",
        ...oneLoop,
      ],
      env: { TRUEWIRE_URL: url, TRUEWIRE_MODEL: capable, TRUEWIRE_EMBEDDINGS: embeddings ?? "" },
    }),
};
