import type { ModelInfo } from "../../core/engine.ts";

/**
 * The entry of a model in the list that Codex reads (`GET /models?client_version=…`): `models`, next to OpenAI's `data`. Codex drops the
 * whole list if an entry lacks one of the members up to `truncation_policy`, or has an unknown `shell_type`. Other members have defaults
 * that fit OpenAI's models by name. Source: Codex CLI 0.169.0 and its requests.
 */
interface CodexModel {
  readonly slug: string;
  readonly display_name: string;
  readonly visibility: "list";
  readonly supported_in_api: true;
  /** The order in its menu, the lowest first. */
  readonly priority: number;
  readonly base_instructions: string;
  readonly shell_type: "unified_exec";
  readonly experimental_supported_tools: readonly string[];
  readonly support_verbosity: boolean;
  readonly supported_reasoning_levels: readonly { readonly effort: string; readonly description: string }[];
  /** How the output of tools is cut. */
  readonly truncation_policy: { readonly mode: "tokens"; readonly limit: number };
  /** Codex compacts its history before the context is full. */
  readonly context_window?: number;
  readonly input_modalities: readonly ("text" | "image")[];
  readonly apply_patch_tool_type: "freeform";
  readonly supports_search_tool: boolean;
  readonly supports_parallel_tool_calls: boolean;
  readonly supports_reasoning_summaries: boolean;
  readonly supports_reasoning_summary_parameter: boolean;
  readonly default_reasoning_summary: "auto";
}

/** Returns the models that Codex can use, which are those with conversations. */
export function codexCatalog(models: readonly ModelInfo[]): readonly CodexModel[] {
  return models.filter(({ endpoints }) => endpoints.includes("chat")).map(codexModel);
}

function codexModel({ id, contextLength, takesImages }: ModelInfo, index: number): CodexModel {
  return {
    slug: id,
    display_name: id,
    visibility: "list",
    supported_in_api: true,
    priority: index + 1,
    base_instructions: "You are a coding agent. You work in the user's folder with the tools that you have.",
    shell_type: "unified_exec",
    experimental_supported_tools: [],
    support_verbosity: false,
    supported_reasoning_levels: [],
    truncation_policy: { mode: "tokens", limit: 10_000 },
    ...(contextLength !== undefined && { context_window: contextLength }),
    input_modalities: takesImages === false ? ["text"] : ["text", "image"],
    apply_patch_tool_type: "freeform",
    supports_search_tool: false,
    supports_parallel_tool_calls: true,
    supports_reasoning_summaries: true,
    supports_reasoning_summary_parameter: true,
    default_reasoning_summary: "auto",
  };
}
