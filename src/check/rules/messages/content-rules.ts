import { isOpen, membersOf, variantsOf } from "../../../apis/members.ts";
import { contentBlock } from "../../../apis/messages/schema.ts";
import { isObject } from "../../../core/json.ts";
import { callIn, specialTokenIn, thoughtIn } from "../markup.ts";
import { shown } from "../place.ts";
import { messageDemands } from "./message-demands.ts";
import type { Json } from "../view.ts";
import { callsIn, type MessageBlock, type MessageRule, type MessageView } from "./message-view.ts";

const lost = "text is lost or wrong";
const breaking = "tool calls break";
const shapes = "Anthropic's documentation: Messages; official SDKs: the types of 0.120.0";

const hasCalls = (view: MessageView) => callsIn(view).length > 0;
const isNamed = (value: unknown) => typeof value === "string" && value !== "";

/** The message and its blocks. Source: 316 recorded streams and 586 recorded bodies of 2024 to 2026; issues as named. */
export const contentRules: readonly MessageRule[] = [
  {
    id: "messages/message",
    severity: "error",
    concern: lost,
    says: 'A message has an id, type "message", role "assistant", its model, and content, an array of blocks with a type.',
    source: `${shapes}; recordings 902 of 902`,
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (schema)"],
    judges: "message",
    *judge({ message, at }) {
      const { id, type, role, model, content } = message;
      if (!isNamed(id)) yield at("id", `id ${shown(id)}`);
      if (type !== "message") yield at("type", `type ${shown(type)}`);
      if (role !== "assistant") yield at("role", `role ${shown(role)}`);
      if (!isNamed(model)) yield at("model", `model ${shown(model)}`);
      if (!Array.isArray(content)) yield at("content", `content is ${shown(content)}`);
      else if (!content.every((block) => isObject(block) && isNamed(block.type)))
        yield at("content", "a block without a type");
    },
  },
  {
    id: "messages/block-members",
    severity: "error",
    concern: lost,
    says: "A text block has its text, a thinking block its thinking and signature, a call its input, an object.",
    source: `${shapes}; recordings 812 of 812 blocks`,
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (schema)", "agents (there is no input)"],
    judges: "message",
    // What a stream's blocks begin with and get is judged there.
    shown: ({ isStream, blocks }) => !isStream && blocks.length > 0,
    *judge({ blocks }) {
      for (const { value, at } of blocks) {
        const name = wrongMember(value);
        if (name !== undefined) yield at(name, `${String(value.type)} with ${name} ${shown(value[name])}`);
      }
    },
  },
  {
    id: "messages/id-form",
    severity: "note",
    concern: "it differs from Anthropic",
    says: "The id of a message begins with msg_, that of a call with toolu_.",
    source: "recordings 902 of 902 messages, 245 of 245 calls",
    breaks: [],
    judges: "message",
    *judge(view) {
      const { id } = view.message;
      if (typeof id === "string" && !id.startsWith("msg_")) yield view.at("id", `id ${shown(id)}`);
      for (const { value, at } of callsIn(view))
        if (typeof value.id === "string" && !value.id.startsWith("toolu_")) yield at("id", `id ${shown(value.id)}`);
    },
  },
  {
    id: "messages/empty-text",
    severity: "warning",
    concern: breaking,
    says: "No text block beside a call is empty.",
    source: "recordings 221 of 221 messages with calls; LiteLLM #34692, claude-code #88536",
    breaks: ["Claude Code and agents that send it back (text content blocks must be non-empty)"],
    judges: "message",
    shown: hasCalls,
    *judge({ blocks }) {
      for (const { value, at } of blocks)
        if (value.type === "text" && value.text === "") yield at("text", "an empty text");
    },
  },
  {
    id: "messages/tool-id",
    severity: "error",
    concern: breaking,
    says: "Every call has an id of its own.",
    source: `${shapes} (results are matched by it)`,
    breaks: ["every agent (a result cannot be matched)"],
    judges: "message",
    shown: hasCalls,
    *judge(view) {
      const seen = new Set<unknown>();
      for (const { value, at } of callsIn(view)) {
        if (!isNamed(value.id)) yield at("id", `a call with id ${shown(value.id)}`);
        else if (seen.has(value.id)) yield at("id", `the id ${shown(value.id)} again`);
        seen.add(value.id);
      }
    },
  },
  {
    id: "messages/tool-id-letters",
    severity: "warning",
    concern: breaking,
    says: "The id of a call has letters, digits, _ and - only.",
    source: "recordings 245 of 245 calls; CLIProxyAPI #1875, ClawRouter #17 (Anthropic refuses others in a history)",
    breaks: ["agents that go on with another server (tool_use.id: String should match pattern)"],
    judges: "message",
    shown: hasCalls,
    *judge(view) {
      for (const { value, at } of callsIn(view))
        if (typeof value.id === "string" && /[^a-zA-Z0-9_-]/.test(value.id)) yield at("id", `id ${shown(value.id)}`);
    },
  },
  {
    id: "messages/tool-name",
    severity: "error",
    concern: breaking,
    says: "Every call has the name of its tool.",
    source: shapes,
    breaks: ["every agent (there is nothing to run)"],
    judges: "message",
    shown: hasCalls,
    *judge(view) {
      for (const { value, at } of callsIn(view))
        if (!isNamed(value.name)) yield at("name", `a call named ${shown(value.name)}`);
    },
  },
  {
    id: "messages/known-tool",
    severity: "error",
    concern: breaking,
    says: "Only tools that the request declared are called.",
    source: "Anthropic's documentation: Tool use; recordings 244 of 245 calls (a proxy had added the tool)",
    breaks: ["every agent (there is nothing to run)"],
    judges: "message",
    shown: (view) => hasCalls(view) && demands(view).tools !== undefined,
    *judge(view) {
      const { tools } = demands(view);
      for (const { value, at } of callsIn(view))
        if (isNamed(value.name) && tools?.has(value.name) === false) yield at("name", `a call of ${shown(value.name)}`);
    },
  },
  {
    id: "messages/thought-in-text",
    severity: "warning",
    concern: lost,
    says: "Text does not begin with reasoning in <think> or similar tags.",
    source: "Qwen2API #121, local-openai2anthropic #1; recordings 899 of 902 (Claude 3 wrote <thinking>)",
    breaks: ["clients that show the text", "structured output (the JSON begins with a thought)"],
    judges: "message",
    *judge({ blocks }) {
      for (const { at, found } of texts(blocks, thoughtIn)) yield at("text", `text that begins ${shown(found)}`);
    },
  },
  {
    id: "messages/call-in-text",
    severity: "warning",
    concern: breaking,
    says: "Text does not contain tool calls in the model's own markup.",
    source: "LM Studio #2115, oMLX #2565; recordings 902 of 902",
    breaks: ["every agent: it sees text and no call"],
    judges: "message",
    shown: (view) => view.exchange.request.body !== undefined && !demands(view).silent,
    *judge({ blocks, message }) {
      // A call that the limit cut before its name was complete can only be shown as the text that it is.
      if (message.stop_reason === "max_tokens") return;
      for (const { at, found } of texts(blocks, callIn)) yield at("text", `${found} in text`);
    },
  },
  {
    id: "messages/special-token",
    severity: "warning",
    concern: lost,
    says: "Text does not end with a special token of the model.",
    source: "vLLM #2538, mlx-examples #489; recordings 902 of 902",
    breaks: ["users see <|im_end|>"],
    judges: "message",
    *judge({ blocks }) {
      for (const { at, found } of texts(blocks, specialTokenIn)) yield at("text", `text that ends with ${found}`);
    },
  },
];

/** The first member of a block whose value is of another type than its schema says. A call's id and name have rules of their own. */
function wrongMember(block: Json): string | undefined {
  const schema = variantsOf(contentBlock).get(block.type);
  if (schema === undefined || isOpen(schema)) return undefined;
  const members = membersOf(schema).filter(
    ({ name, always, since }) => always && since === undefined && !ofCalls.has(name),
  );
  return members.find(({ name, schema }) => !schema.safeParse(block[name]).success)?.name;
}

const ofCalls: ReadonlySet<string> = new Set(["id", "name"]);

function demands({ exchange }: MessageView) {
  return messageDemands(exchange.request.body);
}

/** The text blocks in which `look` sees something. */
function texts(blocks: readonly MessageBlock[], look: (text: string) => string | undefined) {
  return blocks.flatMap(({ value, at }) => {
    const found = value.type === "text" && typeof value.text === "string" ? look(value.text) : undefined;
    return found === undefined ? [] : [{ at, found }];
  });
}
