import { join } from "node:path";

/** A chat model as the server lists it for Codex (`GET /v1/models?client_version=…`). The other members are for Codex itself. */
export interface ChatModel {
  readonly slug: string;
  /** Tokens of prompt and answer together; absent if unknown. */
  readonly context_window?: number;
  readonly input_modalities: readonly string[];
}

/** The server and the model that an agent is set up for. */
export interface AgentTarget {
  /** The server's address, without `/v1`. */
  readonly url: string;
  /** The key that the agent sends. */
  readonly key: string;
  readonly model: ChatModel;
  /** All chat models of the server. */
  readonly models: readonly ChatModel[];
  /** A folder for the agent's configuration, which keeps its sessions. */
  readonly folder: string;
}

/** What an agent is started with. */
export interface AgentSetup {
  /** Environment variables; undefined: the variable is removed. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Files of the folder that are written at each start, by their name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Files of the folder that are written if they do not exist; afterwards they are the agent's. */
  readonly firstFiles?: Readonly<Record<string, string>>;
  /** Arguments in front of the user's. */
  readonly args?: readonly string[];
}

export interface Agent {
  readonly title: string;
  readonly command: string;
  /** The command that installs it. */
  readonly install: string;
  /** About how many tokens its instructions and tools take: no request fits into a smaller context. Absent if not measured. */
  readonly promptTokens?: number;
  /** The hosted tools that it declares. */
  readonly hostedTools?: readonly "web_search"[];
  readonly setup: (target: AgentTarget) => AgentSetup;
}

/** The smallest context, in tokens, with which all of these agents can work. */
export const comfortableContext = 32_768;

/**
 * The agents that `truewire launch` starts, by the name of the command line. Each gets a configuration of its own where it would otherwise
 * write into the user's. Sources: docs/clients of this repository, whose tests run Codex 0.169, Claude Code 2.1.330, opencode 1.18.33 and Gemini CLI 0.61;
 * opencode.ai/docs/config; Crush's README and `internal/config/load.go`; Qwen Code's documentation of settings; Continue's of `cn`.
 */
export const agents: Readonly<Record<string, Agent>> = {
  codex: {
    title: "Codex",
    command: "codex",
    install: "npm install --global @openai/codex",
    promptTokens: 5000,
    hostedTools: ["web_search"],
    setup: ({ url, key, model, models, folder }) => ({
      // Codex adds to config.toml which projects the user trusts; so the settings are arguments, and the file is Codex's own.
      args: Object.entries({
        model: model.slug,
        model_provider: "truewire",
        model_catalog_json: join(folder, "truewire-models.json"),
        "model_providers.truewire.name": "Truewire",
        "model_providers.truewire.base_url": `${url}/v1`,
        "model_providers.truewire.wire_api": "responses",
        "model_providers.truewire.env_key": "TRUEWIRE_CLIENT_KEY",
      }).flatMap(([name, value]) => ["-c", `${name}=${JSON.stringify(value)}`]),
      env: { CODEX_HOME: folder, TRUEWIRE_CLIENT_KEY: key },
      files: { "truewire-models.json": json({ models }) },
    }),
  },
  claude: {
    title: "Claude Code",
    command: "claude",
    install: "npm install --global @anthropic-ai/claude-code",
    promptTokens: 12_000,
    hostedTools: ["web_search"],
    // Of a model that it does not know, it assumes a context of a million tokens.
    setup: ({ url, key, model: { slug, context_window: context = comfortableContext }, folder }) => ({
      env: {
        ANTHROPIC_BASE_URL: url,
        // A key in ANTHROPIC_API_KEY has to be confirmed by the user.
        ANTHROPIC_AUTH_TOKEN: key,
        ANTHROPIC_API_KEY: undefined,
        ...Object.fromEntries(claudeModels.map((name) => [name, slug])),
        ...Object.fromEntries(otherClouds.map((name) => [`CLAUDE_CODE_USE_${name}`, undefined])),
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(context),
        CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(answerTokens(context)),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        CLAUDE_CONFIG_DIR: folder,
      },
      // Otherwise it begins with a theme and a login.
      firstFiles: { ".claude.json": json({ hasCompletedOnboarding: true }) },
    }),
  },
  opencode: {
    title: "opencode",
    command: "opencode",
    install: "npm install --global opencode-ai",
    promptTokens: 7500,
    setup: ({ url, key, model, models, folder }) => ({
      env: {
        // This wins over the user's and the project's configuration, which stay in force otherwise.
        OPENCODE_CONFIG_CONTENT: JSON.stringify({
          model: `truewire/${model.slug}`,
          small_model: `truewire/${model.slug}`,
          provider: {
            truewire: {
              npm: "@ai-sdk/openai-compatible",
              name: "Truewire",
              options: { baseURL: `${url}/v1`, apiKey: "{env:TRUEWIRE_CLIENT_KEY}" },
              // A variable can have 128 KiB on Linux; OpenRouter has hundreds of models.
              models: Object.fromEntries(
                [model, ...models.slice(0, 100)].map((each) => [each.slug, opencodeModel(each)]),
              ),
            },
          },
        }),
        OPENCODE_DB: join(folder, "opencode.db"),
        TRUEWIRE_CLIENT_KEY: key,
      },
    }),
  },
  crush: {
    title: "Crush",
    command: "crush",
    install: "npm install --global @charmland/crush",
    setup: ({ url, key, model, models, folder }) => ({
      env: {
        CRUSH_GLOBAL_CONFIG: folder,
        CRUSH_GLOBAL_DATA: join(folder, "data"),
        CRUSH_CACHE_DIR: join(folder, "cache"),
        CRUSH_DISABLE_PROVIDER_AUTO_UPDATE: "1",
        TRUEWIRE_CLIENT_KEY: key,
      },
      files: {
        "crush.json": json({
          providers: {
            truewire: {
              name: "Truewire",
              type: "openai-compat",
              base_url: `${url}/v1`,
              api_key: "$TRUEWIRE_CLIENT_KEY",
              models: models.map(({ slug, context_window: context = comfortableContext, input_modalities: takes }) => ({
                id: slug,
                name: slug,
                context_window: context,
                default_max_tokens: answerTokens(context),
                supports_attachments: takes.includes("image"),
              })),
            },
          },
          models: {
            large: { provider: "truewire", model: model.slug },
            small: { provider: "truewire", model: model.slug },
          },
        }),
      },
    }),
  },
  qwen: {
    title: "Qwen Code",
    command: "qwen",
    install: "npm install --global @qwen-code/qwen-code",
    promptTokens: 16_000,
    setup: ({ url, key, model, folder }) => ({
      args: ["--auth-type", "openai", "--model", model.slug],
      env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key, OPENAI_MODEL: model.slug, QWEN_HOME: folder },
    }),
  },
  gemini: {
    title: "Gemini CLI",
    command: "gemini",
    install: "npm install --global @google/gemini-cli",
    promptTokens: 12_000,
    setup: ({ url, key, model, folder }) => ({
      args: ["--model", model.slug],
      env: {
        GOOGLE_GEMINI_BASE_URL: url,
        GEMINI_API_KEY: key,
        GEMINI_CLI_HOME: folder,
        // Each of these would choose another server.
        ...Object.fromEntries(otherGoogleServers.map((name) => [name, undefined])),
      },
      firstFiles: {
        ".gemini/settings.json": json({
          security: { auth: { selectedType: "gemini-api-key" } },
          general: { enableAutoUpdate: false },
          privacy: { usageStatisticsEnabled: false },
        }),
      },
    }),
  },
  continue: {
    title: "Continue",
    command: "cn",
    install: "npm install --global @continuedev/cli",
    promptTokens: 1300,
    setup: ({ url, key, model, folder }) => ({
      args: ["--config", join(folder, "truewire.yaml")],
      env: { CONTINUE_GLOBAL_DIR: folder },
      files: {
        // JSON is YAML.
        "truewire.yaml": json({
          name: "Truewire",
          version: "1.0.0",
          schema: "v1",
          models: [
            {
              name: model.slug,
              provider: "openai",
              model: model.slug,
              apiBase: `${url}/v1`,
              apiKey: key,
              roles: ["chat", "edit", "apply"],
              capabilities: ["tool_use", ...(model.input_modalities.includes("image") ? ["image_input"] : [])],
              ...(model.context_window !== undefined && {
                defaultCompletionOptions: {
                  contextLength: model.context_window,
                  maxTokens: answerTokens(model.context_window),
                },
              }),
            },
          ],
        }),
      },
    }),
  },
};

const otherGoogleServers = ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_API_KEY"];

/** The variables of Claude Code 2.1.330 that name a model. */
const claudeModels = [
  "ANTHROPIC_MODEL",
  "ANTHROPIC_DEFAULT_FABLE_MODEL",
  "ANTHROPIC_DEFAULT_OPUS_MODEL",
  "ANTHROPIC_DEFAULT_SONNET_MODEL",
  "ANTHROPIC_DEFAULT_HAIKU_MODEL",
  // The older name of the one before.
  "ANTHROPIC_SMALL_FAST_MODEL",
  "CLAUDE_CODE_SUBAGENT_MODEL",
];

/** Each of these would make Claude Code ignore `ANTHROPIC_BASE_URL`. */
const otherClouds = ["BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "ANTHROPIC_AWS", "ANTHROPIC_GOOGLE_CLOUD"];

/** How many tokens an agent may ask for in one answer: servers count them to the context. */
function answerTokens(context: number): number {
  return Math.min(32_000, Math.floor(context / 4));
}

function opencodeModel({ slug, context_window: context, input_modalities: input }: ChatModel): object {
  const modalities = { input, output: ["text"] };
  const limit = context !== undefined && { limit: { context, output: answerTokens(context) } };
  return { name: slug, attachment: input.includes("image"), modalities, ...limit };
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/**
 * Returns the model that an agent is started with: the one of this name, else the first with a comfortable or an unknown context, else the
 * one with the largest context. Throws if there is none.
 */
export function chooseModel(models: readonly ChatModel[], name?: string): ChatModel {
  if (name !== undefined) {
    const found = models.find(({ slug }) => slug === name);
    if (found !== undefined) return found;
    throw new Error(`The server has no chat model ${name}. It has ${listed(models.map(({ slug }) => slug))}.`);
  }
  const contextOf = ({ context_window: context = Infinity }: ChatModel): number => context;
  const [largest] = models.toSorted((one, other) => contextOf(other) - contextOf(one));
  if (largest === undefined) throw new Error("The server has no chat model.");
  return models.find((model) => contextOf(model) >= comfortableContext) ?? largest;
}

/** A problem of an agent with a model's context: a sentence, and whether no request can succeed. */
export interface ContextProblem {
  readonly message: string;
  readonly isFatal: boolean;
}

/** Returns undefined if the context is large enough. `cure`: what gives the agent a larger one. */
export function contextProblem(
  { title, promptTokens }: Agent,
  { slug, context_window: context }: ChatModel,
  cure: string,
): ContextProblem | undefined {
  if (context !== undefined && context >= comfortableContext) return undefined;
  const tokens = (count: number): string => count.toLocaleString("en");
  const prompt =
    promptTokens === undefined ? "" : `, of which its instructions and tools take about ${tokens(promptTokens)}`;
  const has =
    context === undefined
      ? `The server does not say how large the context of the model ${slug} is.`
      : `The model ${slug} has a context of ${tokens(context)} tokens.`;
  const message = `${has} ${title} needs ${tokens(comfortableContext)} tokens${prompt}: ${cure}, or choose another model with --model.`;
  return { message, isFatal: context !== undefined && promptTokens !== undefined && context <= promptTokens };
}

/** At most 8 names. */
function listed(names: readonly string[]): string {
  const shown = names.length > 8 ? [...names.slice(0, 8), `${names.length - 8} more`] : names;
  return shown.length === 0 ? "none" : shown.join(", ");
}
