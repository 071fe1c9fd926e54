import type { RealClient } from "./client.ts";
import { goClient, javaClient, nodeClient, pythonClient, rustClient } from "./client.ts";

const sdks = {
  environment: "sdks",
  isQuick: true,
} as const;
const openai = "openai==3.57.0";
const anthropic = "anthropic==2.14.0";
const ollama = "ollama==0.6.3";

const langchain = {
  file: "langchain_langgraph.py",
  environment: "langchain",
  packages: [
    "langchain==1.5.2",
    "langgraph==1.2.24",
    "langchain-openai==1.7.4",
    "langchain-anthropic==1.7.10",
    "langchain-ollama==1.1.0",
  ],
} as const;
const pydanticAi = {
  file: "pydantic_ai_client.py",
  environment: "pydantic-ai",
  packages: ["pydantic-ai-slim[openai,anthropic]==2.68.0"],
} as const;
const litellm = {
  file: "litellm_client.py",
  environment: "litellm",
  packages: ["litellm==1.110.2", "tenacity==9.2.1"],
} as const;
/** It needs Node 22.13. Its own name of an address is chat; the others are AI SDK's providers. */
const mastra = {
  file: "mastra.mjs",
  environment: "mastra",
  hasSessions: true,
  packages: [
    "@mastra/core@1.71.0",
    "@mastra/memory@1.31.0",
    "@ai-sdk/openai@4.0.118",
    "@ai-sdk/anthropic@4.0.105",
    "zod@4.6.7",
    "node@24.21.0",
  ],
} as const;
const openaiGo = "github.com/openai/openai-go/v3";
const anthropicGo = "github.com/anthropics/anthropic-sdk-go/v2";

/** All clients that are met here. */
export const realClients: readonly RealClient[] = [
  pythonClient({
    ...sdks,
    id: "openai-python-chat",
    name: "OpenAI Python, Chat Completions",
    api: "chat",
    file: "openai_chat.py",
    packages: [openai, anthropic, ollama],
  }),
  pythonClient({
    ...sdks,
    id: "openai-python-responses",
    name: "OpenAI Python, Responses",
    api: "responses",
    file: "openai_responses.py",
    packages: [openai, anthropic, ollama],
  }),
  pythonClient({
    ...sdks,
    id: "anthropic-python",
    name: "Anthropic Python",
    api: "messages",
    file: "anthropic_messages.py",
    packages: [anthropic, openai, ollama],
  }),
  pythonClient({
    ...sdks,
    id: "ollama-python",
    name: "Ollama Python",
    api: "ollama",
    file: "ollama_client.py",
    packages: [ollama, openai, anthropic],
  }),
  pythonClient({
    id: "google-genai-python",
    name: "Google GenAI Python",
    api: "gemini",
    file: "google_genai_client.py",
    environment: "google-genai",
    packages: ["google-genai==3.6.1"],
    isQuick: true,
  }),
  goClient(
    { id: "openai-go-chat", name: "OpenAI Go, Chat Completions", api: "chat", isQuick: true },
    { program: "openai-chat", module: openaiGo },
  ),
  goClient(
    { id: "openai-go-responses", name: "OpenAI Go, Responses", api: "responses" },
    { program: "openai-responses", module: openaiGo },
  ),
  goClient(
    { id: "anthropic-go", name: "Anthropic Go", api: "messages" },
    { program: "anthropic-messages", module: anthropicGo },
  ),
  goClient(
    { id: "ollama-go", name: "Ollama Go", api: "ollama" },
    { program: "ollama-api", module: "github.com/ollama/ollama" },
  ),
  javaClient(
    { id: "openai-java-chat", name: "OpenAI Java, Chat Completions", api: "chat" },
    { main: "OpenAiChat", artifact: "openai-java" },
  ),
  javaClient(
    { id: "openai-java-responses", name: "OpenAI Java, Responses", api: "responses" },
    { main: "OpenAiResponses", artifact: "openai-java" },
  ),
  javaClient(
    { id: "anthropic-java", name: "Anthropic Java", api: "messages" },
    { main: "AnthropicMessages", artifact: "anthropic-java" },
  ),
  rustClient(
    { id: "async-openai-chat", name: "async-openai, Chat Completions", api: "chat" },
    { program: "openai-chat", crate: "async-openai" },
  ),
  rustClient(
    { id: "async-openai-responses", name: "async-openai, Responses", api: "responses" },
    { program: "openai-responses", crate: "async-openai" },
  ),
  pythonClient({
    id: "openai-agents-python",
    name: "OpenAI Agents SDK, Python",
    api: "responses",
    file: "openai_agents_client.py",
    environment: "openai-agents",
    packages: ["openai-agents==0.24.0"],
  }),
  pythonClient({
    ...langchain,
    id: "langchain-openai",
    name: "LangChain and LangGraph, OpenAI",
    api: "chat",
    args: ["openai"],
  }),
  pythonClient({
    ...langchain,
    id: "langchain-anthropic",
    name: "LangChain and LangGraph, Anthropic",
    api: "messages",
    args: ["anthropic"],
  }),
  pythonClient({
    ...langchain,
    id: "langchain-ollama",
    name: "LangChain and LangGraph, Ollama",
    api: "ollama",
    args: ["ollama"],
  }),
  pythonClient({ ...pydanticAi, id: "pydantic-ai-chat", name: "Pydantic AI, Chat Completions", api: "chat" }),
  pythonClient({
    ...pydanticAi,
    id: "pydantic-ai-responses",
    name: "Pydantic AI, Responses",
    api: "responses",
    args: ["responses"],
  }),
  pythonClient({
    ...pydanticAi,
    id: "pydantic-ai-anthropic",
    name: "Pydantic AI, Anthropic",
    api: "messages",
    args: ["anthropic"],
  }),
  pythonClient({
    id: "instructor",
    name: "instructor",
    api: "chat",
    file: "instructor_client.py",
    environment: "instructor",
    packages: ["instructor==1.17.0"],
  }),
  pythonClient({
    id: "llama-index",
    name: "LlamaIndex",
    api: "chat",
    file: "llama_index_client.py",
    environment: "llama-index",
    packages: ["llama-index-core==0.14.25", "llama-index-llms-openai-like==0.8.1"],
  }),
  pythonClient({
    id: "smolagents",
    name: "smolagents",
    api: "chat",
    file: "smolagents_client.py",
    environment: "smolagents",
    packages: ["smolagents[openai]==1.26.0"],
  }),
  pythonClient({
    id: "crewai",
    name: "CrewAI",
    api: "chat",
    file: "crewai_client.py",
    environment: "crewai",
    packages: ["crewai==1.15.30"],
  }),
  pythonClient({
    id: "autogen",
    name: "AutoGen",
    api: "chat",
    file: "autogen_client.py",
    environment: "autogen",
    packages: ["autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"],
  }),
  pythonClient({
    id: "dspy",
    name: "DSPy",
    api: "chat",
    file: "dspy_client.py",
    environment: "dspy",
    packages: ["dspy==3.4.1", "litellm==1.110.2"],
  }),
  pythonClient({
    id: "haystack",
    name: "Haystack",
    api: "chat",
    file: "haystack_client.py",
    environment: "haystack",
    packages: ["haystack-ai==3.4.1"],
  }),
  pythonClient({ ...litellm, id: "litellm-openai", name: "LiteLLM, OpenAI", api: "chat", args: ["openai"] }),
  pythonClient({
    ...litellm,
    id: "litellm-anthropic",
    name: "LiteLLM, Anthropic",
    api: "messages",
    args: ["anthropic"],
  }),
  pythonClient({ ...litellm, id: "litellm-ollama", name: "LiteLLM, Ollama", api: "ollama", args: ["ollama_chat"] }),
  nodeClient({ ...mastra, id: "mastra-chat", name: "Mastra, Chat Completions", api: "chat", args: ["chat"] }),
  nodeClient({ ...mastra, id: "mastra-responses", name: "Mastra, Responses", api: "responses", args: ["responses"] }),
  nodeClient({ ...mastra, id: "mastra-messages", name: "Mastra, Messages", api: "messages", args: ["messages"] }),
];
