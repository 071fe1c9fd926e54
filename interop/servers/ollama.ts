import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { llamaSource } from "../models.ts";
import { command, inPlace, startServer } from "../place.ts";
import type { RealServer, StartedServer } from "./server.ts";

const version = "v0.17.4";
const binary = inPlace("ollama", "bin", "ollama");
const contextSize = 2048;
const model = "demo";

/** The chat template of the demo model in Ollama's language, from which Ollama takes what the model can do: tools and thinking. */
const template = `{{- if or .System .Tools (and .IsThinkSet .Think) }}<|im_start|>system
{{ if .System }}{{ .System }}
{{ end }}{{ if and .IsThinkSet .Think }}Think first.
{{ end }}{{ if .Tools }}<tools>
{{ range .Tools }}{{ with .Function }}{{ $comma := "" -}}
{"type": "function", "function": {"name": {{ json .Name }}, "description": {{ json .Description }}, "parameters": {"type": "object", "properties": {
{{- range $name, $property := .Parameters.Properties }}{{ $comma }}"{{ $name }}": {"type": "{{ $property.Type }}"}{{ $comma = ", " }}{{ end }}}, "required": {{ json .Parameters.Required }}}}}
{{ end }}{{ end }}</tools>
{{ end }}<|im_end|>
{{ end }}
{{- range $i, $_ := .Messages }}
{{- if eq .Role "user" }}<|im_start|>user
{{ .Content }}<|im_end|>
{{ else if eq .Role "tool" }}<|im_start|>user
<tool_response>
{{ .Content }}
</tool_response><|im_end|>
{{ else if eq .Role "assistant" }}<|im_start|>assistant
{{ if .Thinking }}<think>
{{ .Thinking }}
</think>

{{ end }}{{ .Content }}
{{- if .ToolCalls }}{{ range .ToolCalls }}<tool_call>
{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}
</tool_call>{{ end }}{{ end }}<|im_end|>
{{ end }}
{{- end }}<|im_start|>assistant
`;

/**
 * Ollama with the demo model: it is compiled by `go install`, where its own build has a step of CMake before. What that step lacks are the
 * instructions of the processor, which the compiler is told of here, and headers of llama.cpp, which node-llama-cpp has.
 */
export const ollama: RealServer = {
  id: "ollama",
  name: "Ollama",
  from: "go github.com/ollama/ollama",
  demandsNoCalls: true,
  apis: ["chat", "responses", "messages", "ollama"],
  version: () => (existsSync(binary) ? version.slice(1) : undefined),
  async install() {
    const source = await llamaSource();
    // The package has no sources for AMX, which ggml calls where the processor has it.
    const optimized = "-O3 -march=native -mno-amx-int8";
    await command("go", ["install", `github.com/ollama/ollama@${version}`], {
      env: {
        GOPATH: inPlace("go"),
        GOBIN: resolve(binary, ".."),
        GOFLAGS: "-modcacherw -buildvcs=false",
        CGO_CPPFLAGS: `-I${source}/vendor`,
        CGO_CFLAGS: optimized,
        CGO_CXXFLAGS: optimized,
      },
    });
  },
  start: (port) =>
    startOllama(port, {
      file: resolve("models/demo/demo.gguf"),
      model,
      contextSize,
      more: `TEMPLATE """${template}"""`,
    }),
};

interface OllamaModel {
  readonly file: string;
  readonly model: string;
  readonly contextSize: number;
  /** Requests at a time; default: 1. */
  readonly slots?: number;
  /** Default: 1. */
  readonly threads?: number;
  /** Further lines of the Modelfile; without a template, Ollama chooses the one of its own that is like the file's. */
  readonly more?: string;
}

/** Starts Ollama with the model of a file. */
export async function startOllama(
  port: number,
  { file, model, contextSize, slots = 1, threads = 1, more = "" }: OllamaModel,
): Promise<StartedServer & { readonly pid: number }> {
  const home = inPlace("ollama", "home");
  mkdirSync(home, { recursive: true });
  const env = {
    HOME: home,
    OLLAMA_HOST: `127.0.0.1:${port}`,
    OLLAMA_CONTEXT_LENGTH: String(contextSize),
    OLLAMA_NUM_PARALLEL: String(slots),
  };
  const url = `http://127.0.0.1:${port}`;
  const running = await startServer(binary, ["serve"], { env, ready: `${url}/api/version`, log: "ollama.log" });
  const modelfile = inPlace("ollama", "Modelfile");
  writeFileSync(modelfile, `FROM ${file}\n${more}\nPARAMETER num_thread ${threads}\n`);
  await command(binary, ["create", model, "-f", modelfile], { env });
  return { url, model: `${model}:latest`, contextSize, ...running };
}
