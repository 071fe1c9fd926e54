import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startTruewire } from "../../test/support/serve.ts";
import { freePort } from "../place.ts";
import { ogxPackages, ogxSource } from "./ogx.ts";
import { modules, oneLoop, runPytest } from "./pytest.ts";
import type { Suite, SuiteCase } from "./suite.ts";

const files = [
  "test_tool_responses.py",
  "test_file_search.py",
  "test_mcp_authentication.py",
  "test_basic_responses.py",
  "test_openai_responses.py",
];
/** In files that `ogx.ts` runs without these tests. */
const hosted = "tool_responses or test_file_search or mcp or web_search or file_search or max_iterations";

/** The port of the server that a test means by `connector_id`. */
const connectorPort = 5199;

/** OGX' integration tests of hosted tools, with the model and the searches of its recordings. */
export const ogxHostedSuite: Suite = {
  id: "ogx-hosted-tests",
  name: "OGX' tests of hosted tools",
  from: "github ogx-ai/ogx",
  leftOut:
    "guardrails; MCP by HTTP with SSE (the same servers by Streamable HTTP); OGX' vector stores (a search by words); OGX' names of events for hosted calls (OpenAI's)",
  reasons: [
    [
      "non_streaming_mcp_tool",
      "Truewire",
      "on purpose: an MCP server that refuses its list costs its own tools alone, and the item mcp_list_tools has the error; OpenAI refuses the request with 424, OGX with 401",
    ],
    [
      "mcp_tool_approval[openai_client-True",
      "suite",
      "wants the list of functions again in the next response; OpenAI lists them once",
    ],
    ["max_tool_calls_invalid", "suite", "wants pydantic's words"],
    ["error_when_header_provided", "suite", "OGX refuses a header Authorization of an MCP server; OpenAI takes it"],
    ["logprobs_with_web_search", "model", "the recorded model has no log probabilities"],
    ["max_iterations", "suite", "max_infer_iters and max_iterations_exceeded are OGX' own"],
  ],
  version: () => (ogxPackages.version("pypdf") === undefined ? undefined : ogxSource.version()),
  async install() {
    await ogxSource.install();
    await ogxPackages.install("ogx[client]==1.5.0", "openai", "langchain-openai==1.7.4", "langgraph==1.2.24", "pypdf");
    await ogxPackages.install("mcp", "uvicorn", "pytest", "pytest-asyncio");
  },
  async run() {
    const folder = mkdtempSync(join(tmpdir(), "truewire-ogx-"));
    const tests = join(ogxSource.folder, "tests/integration");
    const ports = await Promise.all(Array.from({ length: 24 }, () => freePort()));
    const mcp = Object.fromEntries(ports.map((port) => [`server${port}`, { url: `http://127.0.0.1:${port}/mcp` }]));
    const connector = { url: `http://127.0.0.1:${connectorPort}/mcp`, connector: "test-mcp-connector" };
    const config = {
      port: 0,
      logLevel: "error",
      hostedTools: {
        webSearch: resolve("interop/fixtures/recorded-search.ts"),
        mcp: { ...mcp, connector },
        programs: { file_search: resolve("interop/fixtures/stored-files.ts") },
      },
      models: [{ kind: "program", name: "recorded", program: resolve("interop/fixtures/recorded.ts") }],
    };
    writeFileSync(join(folder, "truewire.json"), JSON.stringify(config));
    const env = { RECORDINGS: join(tests, "responses/recordings"), STORES: folder };
    const truewire = await startTruewire(["--config", join(folder, "truewire.json")], { env });
    const common = join(tests, "fixtures/common.py");
    try {
      copyFileSync(join(modules, "ogx/conftest.py"), join(tests, "conftest.py"));
      copyFileSync(join(modules, "ogx/hosted_common.py"), common);
      const cases = await runPytest({
        python: ogxPackages.program("python"),
        cwd: ogxSource.folder,
        path: [join(modules, "ogx"), ogxSource.folder],
        args: [...files.map((file) => join("tests/integration/responses", file)), "-k", hosted, ...oneLoop],
        env: { ...env, TRUEWIRE_URL: truewire.url, TRUEWIRE_MODEL: "recorded", MCP_PORTS: JSON.stringify(ports) },
      });
      return cases.map((one): SuiteCase => ({ ...one, name: one.name.replace("tests/integration/responses/", "") }));
    } finally {
      copyFileSync(join(modules, "ogx/common.py"), common);
      await truewire.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
