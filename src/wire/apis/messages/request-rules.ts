import { type FailureError, invalidRequest } from "../../core/failure.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import { typeOfBase64 } from "../adapt/fit-media.ts";
import { imageDefect } from "../request/check-image.ts";
import { schemasIn } from "../request/check-schema.ts";
import type { VendorRule } from "../request/vendor-rules.ts";
import { claudeVersion } from "./claude-versions.ts";
import { refusal } from "./request-issue.ts";
import { beginOfTurn } from "./thinking-turn.ts";
import { isCustomTool } from "./request-schema.ts";
import type { ContentBlockParam, CustomTool, MessageRequest, ResultBlockParam } from "./request-schema.ts";
import { imageTooLarge, imageTypes, maxImageBytes, otherImageType } from "./schema.ts";

/** A request whose members are valid, each by itself. */
export interface MessagesSubject {
  readonly request: MessageRequest;
  /** The request as the client sent it, with the blocks that are not known here. */
  readonly sent: Pick<MessageRequest, "messages" | "system">;
  /** The vendor's model that the requested one represents. */
  readonly standsFor: string | undefined;
}

/** What Anthropic refuses across the members and messages of a request, in its order. */
export const messagesRules: readonly VendorRule<MessagesSubject>[] = [
  unsupportedByModel,
  blankText,
  unusableImage,
  wrongBlocks,
  wrongCacheMarks,
  budgetWithoutAnswer,
  samplingWhileThinking,
  forcedWhileThinking,
  clearsNoThinking,
  wrongTurnThinking,
  openStrictSchema,
  tooManyStrictTools,
  tooComplexSchemas,
  containerWithoutTool,
];

const docs = "Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking";

function sentence(message: string): FailureError {
  return invalidRequest(message);
}

type Blocks = readonly (ContentBlockParam | ResultBlockParam)[];

function blocksOf(content: MessageRequest["messages"][number]["content"]): readonly ContentBlockParam[] {
  return typeof content === "object" ? content : [];
}

/**
 * What the model of Anthropic does not take that the requested model represents. Sources: as `claudeVersion`; recordings of 2026-04-16 (effort),
 * 2026-07-13 and 2026-10-02 (prefill); answers of 2026-09-29 (`disabled`) and of 2026-08-20 (two ways of sampling) that clients quote;
 * github/app#2574 (`temperature`).
 */
function unsupportedByModel({ request, standsFor }: MessagesSubject): FailureError | undefined {
  const version = standsFor === undefined ? undefined : claudeVersion(standsFor);
  if (!version) return undefined;
  const { thinking, output_config: config, temperature, top_p: topP, top_k: topK, messages } = request;
  if (thinking && thinking.type !== "disabled" && version.thinking.length === 0)
    return refusal("thinking", "This model does not support thinking.");
  if (thinking && !version.thinking.some((type) => type === thinking.type) && version.thinking.length > 0)
    return sentence(unsupportedThinking(thinking.type, version.thinking));
  const { effort } = config ?? {};
  if (typeof effort === "string" && !version.efforts.includes(effort))
    return version.efforts.length === 0
      ? refusal("output_config.effort", "Extra inputs are not permitted")
      : sentence(
          `This model does not support effort level '${effort}'. Supported levels: ${version.efforts.toSorted().join(", ")}.`,
        );
  for (const [name, value] of Object.entries({ temperature, top_p: topP, top_k: topK }))
    if (value !== undefined && version.refusesSampling) return sentence(`\`${name}\` is deprecated for this model.`);
  if (version.samplesOneWay && temperature !== undefined && topP !== undefined)
    return sentence("`temperature` and `top_p` cannot both be specified for this model. Please use only one.");
  const last = messages.findLast(({ role }) => role !== "system");
  if (version.refusesPrefill && last?.role === "assistant" && blocksOf(last.content).at(-1)?.type !== "tool_use")
    return sentence(
      "This model does not support assistant message prefill. The conversation must end with a user message.",
    );
  return undefined;
}

function unsupportedThinking(type: string, supported: readonly string[]): string {
  if (type === "adaptive") return "adaptive thinking is not supported on this model";
  const lowest =
    type === "disabled" && supported.includes("between_tools")
      ? '"thinking.type.between_tools" for the lowest thinking setting, or '
      : "";
  return `"thinking.type.${type}" is not supported for this model. Use ${lowest}"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`;
}

/** Source: answers of 2025 and 2026 that clients quote. */
function* blankText({ sent: { system, messages } }: MessagesSubject): Steps<FailureError | undefined> {
  const pace = new StepCounter();
  const problem = (path: string, blocks: Blocks, inner: string): FailureError | undefined => {
    for (const [at, block] of blocks.entries()) {
      if (block.type !== "text" || block.text.trim() !== "") continue;
      if (block.text === "" && isObject(block.cache_control))
        return refusal(
          `${inner}${at}${path === "system" ? "" : ".text"}`,
          "cache_control cannot be set for empty text blocks",
        );
      return refusal(
        path,
        `text content blocks must ${block.text === "" ? "be non-empty" : "contain non-whitespace text"}`,
      );
    }
    return undefined;
  };
  const ofSystem = Array.isArray(system) ? problem("system", system, "system.") : blankString("system", system);
  if (ofSystem) return ofSystem;
  for (const [index, { role, content }] of messages.entries()) {
    if (pace.endsStep(1 + blocksOf(content).length)) yield;
    const found =
      typeof content === "string"
        ? role !== "system" && blankString("messages", content)
        : problem("messages", blocksOf(content), `messages.${index}.content.`);
    if (found) return found;
  }
  return undefined;
}

/** An empty text is no block. */
function blankString(path: string, text: unknown): FailureError | undefined {
  return typeof text === "string" && text !== "" && text.trim() === ""
    ? refusal(path, "text content blocks must contain non-whitespace text")
    : undefined;
}

/**
 * Images that are empty, not base64, too large, or of another type than they say or than Anthropic takes. Sources: `imageError`; the issues
 * anthropics/claude-code#12750 (empty), #8184 (another type than Anthropic takes) and #15746 (another than they say).
 */
function* unusableImage({ request: { messages } }: MessagesSubject): Steps<FailureError | undefined> {
  const pace = new StepCounter();
  for (const [index, { content }] of messages.entries()) {
    if (pace.endsStep(1 + blocksOf(content).length)) yield;
    const found = imageIn(blocksOf(content), `messages.${index}`);
    if (found) return found;
  }
  return undefined;
}

function imageIn(blocks: Blocks, path: string): FailureError | undefined {
  for (const [index, block] of blocks.entries()) {
    const here = `${path}.content.${index}`;
    const inner =
      block.type === "tool_result" && Array.isArray(block.content)
        ? imageIn(block.content, `${here}.tool_result`)
        : undefined;
    if (inner) return inner;
    if (block.type !== "image" || block.source.type !== "base64") continue;
    const at = `${here}.image.source.base64`;
    const { media_type: type, data } = block.source;
    if (!imageTypes.has(type)) return refusal(`${at}.media_type`, otherImageType);
    if (data.length > maxImageBytes) return refusal(at, imageTooLarge(data.length, maxImageBytes));
    const defect = imageDefect(data);
    if (defect === "empty") return refusal(at, "image cannot be empty");
    if (defect === "base64") return refusal(at, "invalid base64 data");
    if (defect === "unknown") return sentence("Could not process image");
    if (typeOfBase64(data) !== type)
      return refusal(`${at}.data`, `Image does not match the provided media type ${type}`);
  }
  return undefined;
}

interface CacheMark {
  readonly path: string;
  readonly ttl: unknown;
}

/** The marks of the prompt cache in the order in which Anthropic processes them. */
function* cacheMarks({
  tools = [],
  system,
  messages,
  cache_control: whole,
}: MessageRequest): Steps<readonly CacheMark[]> {
  const marks: CacheMark[] = [];
  const add = (value: unknown, path: string): void => {
    const mark = isObject(value) ? value["cache_control"] : undefined;
    if (isObject(mark)) marks.push({ path: `${path}.cache_control`, ttl: mark["ttl"] });
  };
  for (const [at, tool] of tools.entries()) add(tool, `tools.${at}`);
  if (typeof system === "object") for (const [at, block] of system.entries()) add(block, `system.${at}`);
  const pace = new StepCounter();
  for (const [index, { content }] of messages.entries()) {
    if (pace.endsStep(1 + blocksOf(content).length)) yield;
    for (const [at, block] of blocksOf(content).entries()) {
      const path = `messages.${index}.content.${at}`;
      if (block.type === "tool_result" && Array.isArray(block.content))
        for (const [inner, one] of block.content.entries()) add(one, `${path}.content.${inner}`);
      add(block, path);
    }
  }
  // The mark of the request is that of the last block, which may have the same of its own.
  const [index, content] = [messages.length - 1, blocksOf(messages.at(-1)?.content)];
  const path = `messages.${index}.content.${Math.max(0, content.length - 1)}`;
  const last = marks.find((mark) => mark.path === `${path}.cache_control`);
  if (isObject(whole) && !(last && last.ttl === whole["ttl"])) add({ cache_control: whole }, `${path}.text`);
  return marks;
}

const maxCacheMarks = 4;

/** Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching, "Cache limitations" and "Mixing different TTLs". */
function* wrongCacheMarks({ request }: MessagesSubject): Steps<FailureError | undefined> {
  const marks = yield* cacheMarks(request);
  if (marks.length > maxCacheMarks)
    return sentence(`A maximum of ${maxCacheMarks} blocks with cache_control may be provided. Found ${marks.length}.`);
  const short = marks.findIndex(({ ttl }) => ttl !== "1h");
  const late = short === -1 ? undefined : marks.slice(short).find(({ ttl }) => ttl === "1h");
  return (
    late &&
    refusal(
      `${late.path}.ttl`,
      "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
    )
  );
}

/**
 * Sources: https://platform.claude.com/docs/en/build-with-claude/extended-thinking; anomalyco/opencode#3077, tailcallhq/forgecode#1853 and #2107
 * for the words.
 */
function* wrongBlocks({ request: { messages } }: MessagesSubject): Steps<FailureError | undefined> {
  const ids = new Set<string>();
  const pace = new StepCounter();
  for (const [index, { role, content }] of messages.entries()) {
    const blocks = blocksOf(content);
    if (pace.endsStep(1 + blocks.length)) yield;
    for (const [at, block] of blocks.entries()) {
      const path = `messages.${index}.content.${at}.${block.type}`;
      if (block.type === "thinking" && typeof block.signature !== "string")
        return refusal(`${path}.signature`, "Field required");
      if (block.type !== "tool_use") continue;
      if (!/^[a-zA-Z0-9_-]+$/.test(block.id))
        return refusal(`${path}.id`, "String should match pattern '^[a-zA-Z0-9_-]+$'");
      if (ids.has(block.id)) return refusal("messages", "`tool_use` ids must be unique");
      ids.add(block.id);
    }
    const last = blocks.at(-1)?.type;
    if (role === "assistant" && (last === "thinking" || last === "redacted_thinking"))
      return refusal(`messages.${index}`, `The final block in an assistant message cannot be \`${last}\`.`);
  }
  return undefined;
}

/** Source: the errors that several proxies quote in 2026. */
function budgetWithoutAnswer({ request }: MessagesSubject): FailureError | undefined {
  const { thinking, max_tokens: maxTokens } = request;
  if (thinking?.type !== "enabled" || maxTokens === undefined || maxTokens > thinking.budget_tokens) return undefined;
  return sentence(
    `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. ${docs}#max-tokens-and-context-window-size`,
  );
}

/** Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Feature compatibility". */
function samplingWhileThinking({ request }: MessagesSubject): FailureError | undefined {
  const { thinking, temperature = 1, top_p: topP = 1, top_k: topK } = request;
  if (thinking?.type !== "enabled" && thinking?.type !== "adaptive") return undefined;
  const when = thinking.type === "adaptive" ? "thinking is enabled or in adaptive mode" : "thinking is enabled";
  const words =
    temperature !== 1
      ? "`temperature` may only be set to 1"
      : topP < 0.95
        ? "`top_p` must be greater than or equal to 0.95 or unset"
        : topK !== undefined
          ? "`top_k` must be unset"
          : undefined;
  return words === undefined
    ? undefined
    : sentence(`${words} when ${when}. ${docs}#important-considerations-when-using-extended-thinking`);
}

/** Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Extended thinking with tool use". */
function forcedWhileThinking({
  request: { thinking, tool_choice: choice },
}: MessagesSubject): FailureError | undefined {
  if (thinking?.type !== "enabled" || (choice?.type !== "any" && choice?.type !== "tool")) return undefined;
  return sentence("Thinking may not be enabled when tool_choice forces tool use.");
}

/** The mode of thinking; undefined: that of a model which is not known. */
function thinkingOf(thinking: MessageRequest["thinking"], standsFor: string | undefined): string | undefined {
  const version = claudeVersion(standsFor);
  return thinking?.type ?? (version && (version.thinksByDefault ? "adaptive" : "disabled"));
}

/**
 * With a budget, the assistant's running turn begins with its thinking: a prefill, or a loop of calls whose results follow, whose later steps
 * need none. Without thinking, the turn has none. Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Common
 * error scenarios" and "Toggling thinking modes in conversations".
 */
function wrongTurnThinking({ request: { thinking, messages }, standsFor }: MessagesSubject): FailureError | undefined {
  const spoken = messages.findLastIndex(({ role }) => role !== "system");
  const begin = messages[spoken]?.role === "assistant" ? spoken : beginOfTurn(messages);
  if (begin === undefined) return undefined;
  const thinks = thinkingOf(thinking, standsFor);
  for (const [at, { role, content }] of messages.entries()) {
    if (at < begin || role !== "assistant") continue;
    const types = typeof content === "string" ? ["text"] : blocksOf(content).map(({ type }) => type);
    const [first] = types;
    const isFirst = types.findIndex((type) => type === "thinking" || type === "redacted_thinking");
    if (thinks === "disabled" && isFirst >= 0)
      return refusal(
        `messages.${at}.content.${isFirst}`,
        `When thinking is disabled, an \`assistant\` message in the final position cannot contain \`${types[isFirst]}\`. To use thinking blocks, enable \`thinking\` in your request.`,
      );
    if (thinks !== "enabled" || first === undefined || isFirst === 0) continue;
    if (at === begin)
      return refusal(
        `messages.${at}.content.0.type`,
        `Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. ${docs}`,
      );
    if (isFirst > 0)
      return refusal(
        `messages.${at}.content.0`,
        `If an assistant message contains any thinking blocks, the first block must be \`thinking\` or \`redacted_thinking\`. Found \`${first}\`.`,
      );
  }
  return undefined;
}

/** Source: https://platform.claude.com/docs/en/build-with-claude/context-editing, "Thinking block clearing". */
function clearsNoThinking({ request, standsFor }: MessagesSubject): FailureError | undefined {
  const { thinking, context_management: management } = request;
  const at = management?.edits?.findIndex(({ type }) => type === "clear_thinking_20251015") ?? -1;
  if (thinkingOf(thinking, standsFor) !== "disabled" || at === -1) return undefined;
  return refusal(
    `context_management.edits.${at}`,
    "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive",
  );
}

/** The custom tools whose schemas bind. */
function strictTools({ tools = [] }: MessageRequest): readonly { readonly tool: CustomTool; readonly index: number }[] {
  return tools.flatMap((tool, index) => (isCustomTool(tool) && tool.strict === true ? [{ tool, index }] : []));
}

/** Sources: 0xPlaygrounds/rig, recorded on 2026-08-12 (a schema of `true`); as `messagesCheckOrder` (an open object). */
function openStrictSchema({ request }: MessagesSubject): FailureError | undefined {
  for (const { tool, index } of strictTools(request))
    for (const { type, properties, additionalProperties } of schemasIn(tool.input_schema)) {
      if (type !== "object") continue;
      const words =
        additionalProperties !== false
          ? "'additionalProperties' must be explicitly set to false"
          : isObject(properties) && Object.values(properties).some((schema) => typeof schema === "boolean")
            ? "property 'properties' is not supported"
            : undefined;
      if (words !== undefined) return refusal(`tools.${index}.custom`, `For 'object' type, ${words}`);
    }
  return undefined;
}

const [maxStrictTools, maxOptional, maxUnions] = [20, 24, 16];

/** Source: https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "Schema complexity limits". */
function tooManyStrictTools({ request }: MessagesSubject): FailureError | undefined {
  const { length } = strictTools(request);
  if (length <= maxStrictTools) return undefined;
  return sentence(
    `Too many strict tools (${length}). The maximum number of strict tools supported is ${maxStrictTools}. Try reducing the number of tools marked as strict.`,
  );
}

/** The limits hold for all strict tools and the format of the answer together. Source: as `tooManyStrictTools`; the words as of 2026-10-03. */
function tooComplexSchemas({ request }: MessagesSubject): FailureError | undefined {
  const { output_config: config, output_format: older } = request;
  const format = config?.format?.schema ?? older?.schema;
  let [optional, unions] = [0, 0];
  for (const root of [...strictTools(request).map(({ tool }) => tool.input_schema), ...(format ? [format] : [])])
    for (const schema of schemasIn(root)) {
      optional += optionalIn(schema);
      if (Array.isArray(schema["anyOf"]) || Array.isArray(schema["type"])) unions++;
    }
  if (optional > maxOptional)
    return sentence(
      `Schemas contains too many optional parameters (${optional}), which would make grammar compilation inefficient. Reduce the number of optional parameters in your tool schemas (limit: ${maxOptional}).`,
    );
  if (unions <= maxUnions) return undefined;
  return sentence(
    `Schemas contains too many parameters with union types (${unions} parameters with type arrays or anyOf). This causes exponential compilation cost. Reduce the number of nullable or union-typed parameters (limit: ${maxUnions} parameters with unions).`,
  );
}

function optionalIn({ properties, required }: JsonObject): number {
  const names = isObject(properties) ? Object.keys(properties) : [];
  return names.filter((name) => !Array.isArray(required) || !required.includes(name)).length;
}

/** Source: as `messagesCheckOrder`. */
function containerWithoutTool({ request: { container, tools = [] } }: MessagesSubject): FailureError | undefined {
  if (typeof container !== "string" || tools.some(({ type }) => type?.startsWith("code_execution"))) return undefined;
  const words = "Container identifier can only be provided when using the code execution tool";
  return refusal("container", words);
}
