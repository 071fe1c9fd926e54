import type { Json, PromptBlock } from "./anthropic-cache.ts";

/*
 * What Anthropic's Messages API refuses about turns, calls, thinking and marks of the prompt cache, in its words. Sources:
 * https://platform.claude.com/docs/en/build-with-claude/extended-thinking ("Toggling thinking modes in conversations": the whole turn, tool
 * use loops included, begins with a thinking block if thinking is enabled, and has none if it is disabled), adaptive-thinking, prompt-caching
 * ("Edge cases"); the issues anomalyco/opencode#3077, tailcallhq/forgecode#1853 and #2107, anthropics/claude-code#20717,
 * strands-agents/sdk-python#1856, envoyproxy/ai-gateway#1712 for the words.
 */

export interface RuleOptions {
  /** Whether a value was given by this account for this text; `type`: of the block. */
  isValid(type: "thinking" | "redacted_thinking", block: Json): boolean;
  /** Members of the request that the platform refuses: `cache_control`, on Amazon Bedrock and Vertex AI. */
  readonly refusedMembers: readonly string[];
}

interface Message {
  readonly role: string;
  readonly path: string;
  readonly content: readonly Json[];
}

/** Returns the words of the refusal of a request, `undefined` if it is right. */
export function refusalOf(body: Json, options: RuleOptions): string | undefined {
  for (const name of Object.keys(body)) {
    if (!members.has(name) || options.refusedMembers.includes(name)) return `${name}: Extra inputs are not permitted`;
  }
  if (typeof body["max_tokens"] !== "number") return "max_tokens: Field required";
  if (!Array.isArray(body["messages"]) || body["messages"].length === 0)
    return "messages: at least one message is required";
  const messages = messagesOf(body);
  return (
    contentRefusal(messages, options) ??
    pairingRefusal(messages) ??
    thinkingRefusal(body, messages) ??
    markRefusal(body)
  );
}

/** Source: https://platform.claude.com/docs/en/api/messages/create. */
const members = new Set([
  "model",
  "messages",
  "max_tokens",
  "system",
  "stream",
  "temperature",
  "top_p",
  "top_k",
  "stop_sequences",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "metadata",
  "service_tier",
  "cache_control",
  "context_management",
  "container",
  "inference_geo",
]);

function messagesOf(body: Json): Message[] {
  return (body["messages"] as Json[]).map(({ role, content }, at) => ({
    role: String(role),
    path: `messages.${at}`,
    content: blocksOf(content),
  }));
}

function blocksOf(content: unknown): Json[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? (content as Json[]) : [];
}

function isThinking({ type }: Json): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

function contentRefusal(messages: readonly Message[], { isValid }: RuleOptions): string | undefined {
  for (const { role, path, content } of messages) {
    const isLast = path === messages.at(-1)?.path;
    if (content.length === 0 && !(role === "assistant" && isLast))
      return `${path}: all messages must have non-empty content except for the optional final assistant message`;
    for (const [at, block] of content.entries()) {
      const place = `${path}.content.${at}`;
      if (block["type"] === "text" && block["text"] === "") return "messages: text content blocks must be non-empty";
      if (role !== "assistant" && (isThinking(block) || block["type"] === "tool_use"))
        return `${path}: \`${String(block["type"])}\` blocks can only be in \`assistant\` messages`;
      if (role !== "user" && block["type"] === "tool_result")
        return `${path}: \`tool_result\` blocks can only be in \`user\` messages`;
      if (block["type"] === "thinking") {
        if (typeof block["signature"] !== "string") return `${place}.thinking.signature: Field required`;
        if (!isValid("thinking", block)) return `${place}: Invalid \`signature\` in \`thinking\` block`;
      }
      if (block["type"] === "redacted_thinking" && !isValid("redacted_thinking", block))
        return `${place}: Invalid \`data\` in \`redacted_thinking\` block`;
      if (isThinking(block) && "cache_control" in block)
        return `${place}.${String(block["type"])}.cache_control: Extra inputs are not permitted`;
    }
    const last = content.at(-1);
    if (role === "assistant" && last && isThinking(last))
      return `${path}: The final block in an assistant message cannot be \`${String(last["type"])}\`.`;
  }
  return undefined;
}

function pairingRefusal(messages: readonly Message[]): string | undefined {
  const all = new Set<unknown>();
  let open: unknown[] = [];
  for (const [at, { role, path, content }] of messages.entries()) {
    if (role === "system") continue;
    const leading = content.findIndex(({ type }) => type !== "tool_result");
    const leadingBlocks = content.slice(0, leading === -1 ? undefined : leading);
    const results = new Set(leadingBlocks.map((block) => block["tool_use_id"]));
    const missing = open.filter((id) => !results.has(id));
    if (missing.length > 0)
      return `messages.${at - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
    const unexpected = content.find((block) => block["type"] === "tool_result" && !open.includes(block["tool_use_id"]));
    if (unexpected)
      return `${path}.content.${content.indexOf(unexpected)}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(unexpected["tool_use_id"])}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    open = [];
    for (const [index, block] of content.entries()) {
      if (block["type"] !== "tool_use") continue;
      const { id } = block;
      if (typeof id !== "string" || !/^[a-zA-Z0-9_-]+$/.test(id))
        return `${path}.content.${index}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
      if (all.has(id)) return "messages: `tool_use` ids must be unique";
      all.add(id);
      open.push(id);
    }
  }
  if (open.length === 0) return undefined;
  return `messages.${messages.length - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

/**
 * Models since Claude 4.6 decide themselves whether they think; since 4.7 they have no budget; since 5 they think in a request without
 * `thinking`; those before 3.7 never think.
 */
function versionOf(model: unknown): number {
  const [, major = "0", minor = "0"] = /-(\d)(?:[-.](\d))?(?!\d)/.exec(String(model)) ?? [];
  return Number(major) * 10 + Number(minor);
}

/**
 * The values of `output_config.effort`. Sources: https://platform.claude.com/docs/en/build-with-claude/effort; anthropics/claude-code#30010 and
 * #30760 (Haiku 4.5, Sonnet 4.5).
 */
function effortsOf(model: string, version: number): string[] {
  if (version > 46) return ["low", "medium", "high", "xhigh", "max"];
  if (version === 46) return ["low", "medium", "high", "max"];
  return version === 45 && model.includes("opus") ? ["low", "medium", "high"] : [];
}

function thinkingRefusal(body: Json, messages: readonly Message[]): string | undefined {
  const thinking = (body["thinking"] ?? {}) as Json;
  const version = versionOf(body["model"]);
  const { type = version >= 50 ? "adaptive" : "disabled" } = thinking;
  const effort = (body["output_config"] as Json | undefined)?.["effort"];
  const efforts = effortsOf(String(body["model"]), version);
  if (effort !== undefined && efforts.length === 0) return "This model does not support the effort parameter.";
  if (effort !== undefined && !efforts.includes(String(effort)))
    return `output_config.effort: Input should be ${efforts.map((one) => `'${one}'`).join(", ")}`;
  if (type === "disabled" && thinking["type"] === type && /fable|mythos/.test(String(body["model"])))
    return '"thinking.type.disabled" is not supported for this model.';
  if (type === "enabled" && version < 37) return "thinking: This model does not support thinking.";
  if (type === "adaptive" && version < 46)
    return "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'";
  if (type === "enabled" && version > 46)
    return '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
  const isOn = type !== "disabled";
  const { temperature, top_k: topK, tool_choice: choice } = body;
  const sampling = ["temperature", "top_p", "top_k"].find((name) => body[name] !== undefined);
  if (version > 46 && sampling !== undefined) return `\`${sampling}\` is deprecated for this model.`;
  if (isOn && temperature !== undefined && temperature !== 1)
    return "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.";
  if (isOn && topK !== undefined) return "`top_k` must be unset when thinking is enabled or in adaptive mode.";
  if (type === "enabled") {
    const budget = Number(thinking["budget_tokens"]);
    if (!(budget >= 1024)) return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024";
    if (budget >= Number(body["max_tokens"])) return "`max_tokens` must be greater than `thinking.budget_tokens`.";
    if (["any", "tool"].includes(String((choice as Json | undefined)?.["type"])))
      return "Thinking may not be enabled when tool_choice forces tool use.";
  }
  const edits = ((body["context_management"] as Json | undefined)?.["edits"] ?? []) as Json[];
  if (!isOn && edits.some((edit) => edit["type"] === "clear_thinking_20251015"))
    return "context_management.edits.0: `clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive";
  const turn = runningTurn(messages);
  const [first] = turn;
  if (type === "enabled" && first) {
    const [block] = first.content;
    if (block && !isThinking(block))
      return `${first.path}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(block["type"])}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`;
  }
  for (const { path, content } of turn) {
    const at = content.findIndex(isThinking);
    const found = content[at];
    if (!found) continue;
    const name = String(found["type"]);
    if (!isOn)
      return `${path}.content.${at}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`${name}\`. To use thinking blocks, enable \`thinking\` in your request.`;
    if (type === "enabled" && at > 0)
      return `${path}.content.0: If an assistant message contains any thinking blocks, the first block must be \`thinking\` or \`redacted_thinking\`. Found \`${String(content[0]?.["type"])}\`.`;
  }
  return undefined;
}

/** The assistant's messages of the tool loop that a request continues; none if its last message is not the result of a call. */
function runningTurn(messages: readonly Message[]): Message[] {
  const spoken = messages.filter(({ role }) => role !== "system");
  const turn: Message[] = [];
  const isResult = ({ role, content }: Message) =>
    role === "user" && content.some(({ type }) => type === "tool_result");
  for (const message of spoken.toReversed()) {
    if (message.role === "assistant") {
      if (turn.length === 0 && spoken.at(-1) === message) return [];
      turn.unshift(message);
    } else if (!isResult(message)) break;
  }
  return turn;
}

/** Returns the blocks of a prompt in the order in which they are cached, with the mark of the whole request on the last that takes one. */
export function promptBlocks(body: Json): PromptBlock[] {
  const markOf = ({ cache_control: mark }: Json) =>
    typeof mark === "object" && mark !== null ? { ttl: String((mark as Json)["ttl"] ?? "5m") } : undefined;
  const tools = ((body["tools"] ?? []) as Json[]).map((block, at): PromptBlock => ({
    path: `tools.${at}`,
    block,
    mark: markOf(block),
    section: "tools",
  }));
  const system = blocksOf(body["system"]).map((block, at): PromptBlock => ({
    path: `system.${at}`,
    block,
    mark: markOf(block),
    section: "system",
  }));
  const messages = messagesOf(body).flatMap(({ role, path, content }) =>
    content.map((block, at): PromptBlock => {
      const inner = block["type"] === "tool_result" ? blocksOf(block["content"]).findLast(markOf) : undefined;
      const mark = markOf(block) ?? (inner && markOf(inner));
      return { path: `${path}.content.${at}`, block, mark, section: "messages", role };
    }),
  );
  const blocks = [...tools, ...system, ...messages];
  const whole = markOf(body);
  const last = blocks.findLastIndex(({ block }) => !isThinking(block));
  const target = blocks[last];
  if (whole && target && !target.mark) blocks[last] = { ...target, mark: whole };
  return blocks;
}

function markRefusal(body: Json): string | undefined {
  const { cache_control: whole, ...rest } = body;
  const explicit = promptBlocks(rest).filter(({ mark }) => mark);
  const last = promptBlocks(rest).findLast(({ block }) => !isThinking(block));
  const total = explicit.length + (whole === undefined || last?.mark ? 0 : 1);
  if (total > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${total}.`;
  const marked = promptBlocks(body).filter(({ mark }) => mark);
  if (whole !== undefined && last?.mark && last.mark.ttl !== ((whole as Json)["ttl"] ?? "5m"))
    return `${last.path}.cache_control.ttl: the last block has another ttl than the request's cache_control`;
  for (const [at, { path, mark, section }] of marked.entries()) {
    if (mark?.ttl !== "5m" && mark?.ttl !== "1h")
      return `${path}.cache_control.ephemeral.ttl: Input should be '5m' or '1h'`;
    const shorter = marked.slice(0, at).some((before) => before.mark?.ttl === "5m");
    if (mark.ttl === "1h" && shorter)
      return `${path}.${section === "messages" ? "text." : ""}cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`;
  }
  return undefined;
}
