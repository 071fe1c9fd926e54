import { join } from "node:path";
import { pythonPackages } from "../place.ts";
import { modules, oneLoop, runPytest } from "./pytest.ts";
import type { Suite } from "./suite.ts";

/** The environment of the clients of LangChain has the same packages. */
const packages = pythonPackages("client-langchain");

/** LangChain's standard tests of chat models and embeddings, for its classes of OpenAI (both APIs), Anthropic and Ollama. */
export const langchain: Suite = {
  id: "langchain",
  name: "LangChain's standard tests",
  from: "pip langchain-tests",
  reasons: [],
  version: () => packages.version("langchain-tests"),
  install: () =>
    packages.install(
      "langchain-tests==1.1.9",
      "langchain-openai==1.7.4",
      "langchain-anthropic==1.7.10",
      "langchain-ollama==1.1.0",
    ),
  run: ({ url, capable, embeddings }) =>
    runPytest({
      python: packages.program("python"),
      args: [join(modules, "langchain_suite.py"), ...oneLoop],
      env: { TRUEWIRE_URL: url, TRUEWIRE_MODEL: capable, TRUEWIRE_EMBEDDINGS: embeddings ?? "" },
    }),
};
