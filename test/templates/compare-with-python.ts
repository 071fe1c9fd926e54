import { readChatRequest } from "../../src/wire/apis/chat/request.ts";
import { ChatTemplate } from "../../src/text/templates/chat-template.ts";
import { parseExactJson } from "../../src/text/templates/exact-json.ts";
import { PythonTemplate, strftime } from "../../src/text/templates/jinja/python-template.ts";
import { guardedTokens, UserText } from "../../src/text/templates/user-text.ts";
import { askJinja } from "./ask-jinja.ts";
import { jobJson } from "./generated-conversations.ts";
import type { TemplateVariables } from "./generated-conversations.ts";

/** The time in `jinja-oracle.py`. */
const now = new Date(2024, 1, 3, 4, 5, 6);
const specialTokens = { bos_token: "<s>", eos_token: "</s>" };

export interface Difference {
  /** The variables, as JSON. */
  readonly job: string;
  readonly ours: string;
  readonly theirs: string;
}

/**
 * Renders each conversation with the interpreter of templates and with Python's, from the same variables. Where Python fails and ours does
 * not, that is leniency on purpose (a member of something undefined, items of a text). Returns the differences of each template.
 */
export function languageDifferences(
  sources: readonly string[],
  conversations: readonly TemplateVariables[],
  python?: string,
): Difference[][] {
  const jobs = conversations.flatMap(({ messages, ...more }) =>
    (["object", "string"] as const).map((args) => {
      const shape = { args, silence: "", reasoning: "reasoning_content" };
      return jobJson({ ...specialTokens, ...more, messages: shaped(messages, shape) });
    }),
  );
  const theirs = askJinja(
    sources.map((source) => ({ source, jobs })),
    python,
  );
  return sources.map((source, at) => {
    const template = new PythonTemplate(source);
    return jobs.flatMap((job, index): Difference[] => {
      const { text } = theirs[at]?.[index] ?? {};
      if (text === undefined) return [];
      const variables = { tools: null, documents: null, ...(parseExactJson(job) as Record<string, unknown>) };
      const ours = attempt(() => template.render(variables, now, new UserText(guardedTokens([], [], []), "", [])));
      return ours === text ? [] : [{ job, ours, theirs: text }];
    });
  });
}

/** The shapes of calls and reasoning that templates read: users of Transformers write the one that their template reads. */
const shapes = (["object", "string"] as const).flatMap((args) =>
  ["", null, undefined].flatMap((silence) =>
    ["reasoning_content", "reasoning", "thinking", "thought", "part"].map((reasoning) => ({
      args,
      silence,
      reasoning,
    })),
  ),
);

interface Shape {
  readonly args: "object" | "string";
  /** The content of a message that has calls and no text. */
  readonly silence: string | null | undefined;
  /** The member of reasoning; "part": a part of the content. */
  readonly reasoning: string;
  /** The roles whose lists of texts stay lists; those of others become lines. */
  readonly listRoles?: readonly string[];
}

interface Part {
  readonly text: string;
}

/** Returns the messages in a shape. */
function shaped(messages: TemplateVariables["messages"], { args, silence, reasoning, listRoles }: Shape): unknown[] {
  return messages.map(({ reasoning_content: thought, tool_calls: toolCalls, content: said, ...message }) => {
    const calls = toolCalls as readonly { readonly function: { readonly arguments: unknown } }[] | undefined;
    const joins = listRoles !== undefined && !listRoles.includes(String(message["role"]));
    const joined = joins && Array.isArray(said) ? (said as Part[]).map(({ text }) => text).join("\n") : said;
    const content = joined === "" && calls ? silence : joined;
    const isPart = thought !== undefined && reasoning === "part";
    const spoken = typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : content;
    return {
      ...message,
      content: isPart
        ? [{ type: "thinking", thinking: thought }, ...(Array.isArray(spoken) ? (spoken as Part[]) : [])]
        : content,
      ...(thought !== undefined && !isPart && { [reasoning]: thought }),
      ...(calls && {
        tool_calls: calls.map((call) => {
          const { arguments: value } = call.function;
          return { ...call, function: { ...call.function, arguments: args === "object" ? value : jobJson(value) } };
        }),
      }),
    };
  });
}

/**
 * Renders each conversation as a request of Chat Completions, and by Transformers with the same messages, in each of the shapes in which
 * templates read them. Returns the conversations whose prompt is none of those, for each template.
 *
 * Left out is what no shape brings to the template: calls of models that know none, which Truewire writes itself, and text next to reasoning
 * in a message with calls, where the template rejects both.
 */
export function promptDifferences(
  sources: readonly string[],
  conversations: readonly TemplateVariables[],
  python?: string,
): Difference[][] {
  const { bos_token: bosToken, eos_token: eosToken } = specialTokens;
  // What Truewire adds to the variables, as llama.cpp's server does.
  const added = { date_string: strftime(now, "%d %b %Y"), datetime: strftime(now, "%b %d %Y %H:%M:%S") };
  const templates = sources.map((source) => new ChatTemplate({ source, bosToken, eosToken, specialTokens: [] }));
  const asked = templates.map(({ capabilities: { listRoles } }) =>
    conversations.map(({ messages, ...more }) => {
      const { enable_thinking: thinking } = more;
      const known = { ...specialTokens, ...added, ...more, ...(thinking !== undefined && { thinking }) };
      return [
        ...new Set(shapes.map((shape) => jobJson({ ...known, messages: shaped(messages, { ...shape, listRoles }) }))),
      ];
    }),
  );
  const theirs = askJinja(
    sources.map((source, at) => ({ source, jobs: asked[at]?.flat() ?? [] })),
    python,
  );
  return templates.map((template, at) => {
    const { toolCalls, rejectsReasoningWithText } = template.capabilities;
    let next = 0;
    return conversations.flatMap((variables, index): Difference[] => {
      const first = next;
      next += asked[at]?.[index]?.length ?? 0;
      const results = theirs[at]?.slice(first, next) ?? [];
      const texts = results.flatMap(({ text }) => (text === undefined ? [] : [withoutBos(text, bosToken)]));
      const { messages } = variables;
      const hasCalls = messages.some(({ role }) => role === "tool");
      const hasBoth = messages.some(
        ({ tool_calls: calls, ...one }) => calls && one["content"] !== "" && one["reasoning_content"],
      );
      if (texts.length === 0 || (hasCalls && !toolCalls) || (hasBoth && rejectsReasoningWithText)) return [];
      const ours = attempt(() => requested(template, variables));
      return texts.includes(ours) ? [] : [{ job: jobJson(variables), ours, theirs: texts[0] ?? "" }];
    });
  });
}

/** A BOS at the start is not part of the text: the tokenizer adds it. */
function withoutBos(text: string, bos: string): string {
  return text.startsWith(bos) ? withoutBos(text.slice(bos.length), bos) : text;
}

function requested(template: ChatTemplate, variables: TemplateVariables): string {
  const { messages, tools, add_generation_prompt, ...kwargs } = variables;
  const body = {
    model: "m",
    messages: shaped(messages, { args: "string", silence: "", reasoning: "reasoning_content" }),
    ...(tools && { tools }),
    add_generation_prompt,
    chat_template_kwargs: kwargs,
  };
  const { request } = readChatRequest(JSON.parse(jobJson(body)) as object, "req_1");
  if (request.prompt.kind !== "chat") throw new Error("not a chat");
  const { messages: read, template: options } = request.prompt;
  return template.render({ messages: read, ...(request.tools && { tools: request.tools }), options, now }).text;
}

function attempt(run: () => string): string {
  try {
    return run();
  } catch (error) {
    return `failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}
