/** The features of a chat template and the message shapes that it accepts. They are found by rendering small conversations. */
export interface TemplateCapabilities {
  /** The prompt contains the tools. */
  readonly tools: boolean;
  /** The prompt contains the calls of earlier turns. */
  readonly toolCalls: boolean;
  /** The prompt contains messages with role `tool`. */
  readonly toolResults: boolean;
  /** Arguments of earlier calls: JSON text, or the object itself. */
  readonly arguments: "object" | "string";
  /** `nine`: ids of calls must be nine letters or digits (Mistral). */
  readonly callIds: "any" | "nine";
  /** The `content` of a message that has calls and no text. */
  readonly contentWithCalls: "absent" | "null" | "empty";
  /** What the template fails without: the description of a tool, or also those of its parameters. */
  readonly descriptions: "optional" | "of-tools" | "required";
  /** How many system messages it accepts at the start: any number, one, or none. */
  readonly systemRole: "any" | "first" | "none";
  /** System messages after the first other message are rendered, in order. */
  readonly laterSystems: boolean;
  readonly developerRole: boolean;
  /** "parts": content must be a list of parts. */
  readonly content: "text" | "parts";
  /** The roles of messages whose content may be a list of texts, which the template joins in its own way. */
  readonly listRoles: readonly string[];
  /** The member of an assistant message that contains reasoning; "part": a part of type `thinking`; null: the template ignores reasoning. */
  readonly reasoning: string | null;
  /** The text before and after reasoning; null if the template renders none. */
  readonly reasoningTags: { readonly open: string; readonly close: string } | null;
  /** The template rejects reasoning next to text in a message with calls (gpt-oss). */
  readonly rejectsReasoningWithText: boolean;
  /** The generation prompt with thinking on and off; the same if the template has no such switch. */
  readonly generationPrompt: { readonly thinking: string; readonly direct: string };
}

/** Renders template messages with additional variables. Throws the template's error. */
export type RenderProbe = (
  messages: readonly TemplateMessage[],
  variables?: Readonly<Record<string, unknown>>,
) => string;

/** Finds the capabilities of a template. `source` shows whether it supports the role `developer`. */
export function probeCapabilities(render: RenderProbe, source: string): TemplateCapabilities {
  const attempt = (
    messages: readonly TemplateMessage[],
    variables?: Readonly<Record<string, unknown>>,
  ): string | null => {
    try {
      return render(messages, variables);
    } catch {
      return null;
    }
  };
  const shows = (rendered: string | null, ...needles: string[]): boolean =>
    rendered !== null && needles.every((needle) => rendered.includes(needle));

  const content = !shows(attempt([user]), userNeedle) && shows(attempt([inParts(user)]), userNeedle) ? "parts" : "text";
  const shape = (messages: readonly TemplateMessage[]): readonly TemplateMessage[] =>
    content === "parts" ? messages.map(inParts) : messages;

  const oneSystem = shows(attempt(shape([system("SYSTEMNEEDLE"), user])), "SYSTEMNEEDLE", userNeedle);
  const twoSystems = shows(
    attempt(shape([system("SYSTEMNEEDLE"), system("SECONDNEEDLE"), user])),
    "SYSTEMNEEDLE",
    "SECONDNEEDLE",
    userNeedle,
  );

  const withLater = attempt(shape([system("SYSTEMNEEDLE"), user, system("LATERNEEDLE")])) ?? "";
  const places = ["SYSTEMNEEDLE", userNeedle, "LATERNEEDLE"].map((needle) => withLater.indexOf(needle));

  const toolsWith = (described: keyof typeof probedTools): boolean =>
    shows(attempt(shape([user]), { tools: [probedTools[described]] }), "needle_tool", "needle_parameter");
  const descriptions = (["optional", "of-tools", "required"] as const).find(toolsWith);

  const calls = probeCalls((messages) => attempt(shape(messages), { tools: [probedTools.required] }));
  const generationPrompt = (variables: Readonly<Record<string, boolean>>): string => {
    return renderGenerationPrompt((more) => attempt(shape([user]), { ...variables, ...more }) ?? "", "\uffff").added;
  };
  return {
    tools: descriptions !== undefined,
    ...calls,
    descriptions: descriptions ?? "optional",
    systemRole: twoSystems ? "any" : oneSystem ? "first" : "none",
    laterSystems: places.every((place, at) => place > (places[at - 1] ?? -1)),
    developerRole: /["']developer["']/.test(source),
    content,
    listRoles: ["system", "user", "assistant", "tool"].filter((role) => readsLists(attempt, role, calls)),
    ...probeReasoning((messages) => attempt(shape(messages), thinkingSwitch(true)), calls, source),
    generationPrompt: {
      thinking: generationPrompt(thinkingSwitch(true)),
      direct: generationPrompt(thinkingSwitch(false)),
    },
  };
}

/** The usual names of the switch. Each template reads one of them. */
function thinkingSwitch(on: boolean): Readonly<Record<string, boolean>> {
  return { enable_thinking: on, thinking: on };
}

type CallCapabilities = Pick<
  TemplateCapabilities,
  "toolCalls" | "toolResults" | "arguments" | "callIds" | "contentWithCalls"
>;

/** Renders one call with its result in each shape, the most common first, and returns the first one with the best score. */
function probeCalls(attempt: (messages: readonly TemplateMessage[]) => string | null): CallCapabilities {
  let best = 0;
  let found: CallCapabilities = {
    toolCalls: false,
    toolResults: false,
    arguments: "object",
    callIds: "any",
    contentWithCalls: "absent",
  };
  for (const shape of callShapes) {
    const rendered = attempt(probedCall(shape)) ?? "";
    const score = callScore(rendered);
    if (score <= best) continue;
    best = score;
    found = { ...shape, toolCalls: score > 1, toolResults: rendered.includes("RESULTNEEDLE") };
    if (best === bestScore) break;
  }
  return found;
}

type CallShape = Pick<TemplateCapabilities, "arguments" | "callIds" | "contentWithCalls">;

const callShapes: readonly CallShape[] = (["any", "nine"] as const).flatMap((callIds) =>
  (["object", "string"] as const).flatMap((args) =>
    (["absent", "null", "empty"] as const).map((contentWithCalls) => ({
      arguments: args,
      callIds,
      contentWithCalls,
    })),
  ),
);

function probedCall(shape: CallShape): TemplateMessage[] {
  const id = shape.callIds === "any" ? "call_abcdefghijklmnopqrstuvwx" : "abcdefghi";
  const call = { id, type: "function", function: { name: "needle_tool", arguments: probeArguments[shape.arguments] } };
  return [
    user,
    {
      role: "assistant",
      ...(shape.contentWithCalls === "null" && { content: null }),
      ...(shape.contentWithCalls === "empty" && { content: "" }),
      tool_calls: [call],
    },
    { role: "tool", content: "RESULTNEEDLE", tool_call_id: id, name: "needle_tool" },
  ];
}

const bestScore = 4;

/** 0: the prompt contains neither call nor result; 1: only the result; 4: the result, and the call as a model would write it. */
function callScore(rendered: string): number {
  const result = rendered.includes("RESULTNEEDLE") ? 1 : 0;
  if (!rendered.includes("needle_key") || !rendered.includes("needle_value")) return result;
  const mangled = rendered.includes("'needle_key'") || rendered.includes('\\"needle_key') || rendered.includes("None");
  return 2 + result + (mangled ? 0 : 1);
}

type Attempt = (messages: readonly TemplateMessage[]) => string | null;

function probeReasoning(
  attempt: Attempt,
  calls: CallCapabilities,
  source: string,
): Pick<TemplateCapabilities, "reasoning" | "reasoningTags" | "rejectsReasoningWithText"> {
  const answer = { role: "assistant", content: "ANSWERNEEDLE" };
  const call = {
    id: "abcdefghi",
    type: "function",
    function: { name: "needle_tool", arguments: probeArguments[calls.arguments] },
  };
  for (const name of ["reasoning_content", "reasoning", "thinking", "thought"]) {
    const reasoning = { [name]: "THOUGHTNEEDLE" };
    const calling = { ...answer, tool_calls: [call] };
    const rendered = attempt([user, { ...calling, ...reasoning }]);
    const { content: _, ...silent } = calling;
    const rejectsReasoningWithText =
      rendered === null && (attempt([user, { ...silent, ...reasoning }])?.includes("THOUGHTNEEDLE") ?? false);
    if (rejectsReasoningWithText || attempt([user, { ...answer, ...reasoning }])?.includes("THOUGHTNEEDLE")) {
      return { reasoning: name, reasoningTags: tagsIn(source), rejectsReasoningWithText };
    }
    // Some templates render reasoning only before a call.
    if (rendered?.includes("THOUGHTNEEDLE")) {
      const bare = [attempt([user, answer]) ?? "", attempt([user, calling]) ?? ""] as const;
      const reasoningTags = around(rendered, ...bare) ?? tagsIn(source);
      return { reasoning: name, reasoningTags, rejectsReasoningWithText };
    }
  }
  const parts = [
    { type: "thinking", thinking: "THOUGHTNEEDLE" },
    { type: "text", text: "ANSWERNEEDLE" },
  ];
  const rendered = attempt([user, { role: "assistant", content: parts }]) ?? "";
  const isPart = rendered.includes("THOUGHTNEEDLE") && !/["']type["']/.test(rendered);
  return { reasoning: isPart ? "part" : null, reasoningTags: tagsIn(source), rejectsReasoningWithText: false };
}

/**
 * Returns the text around the reasoning. `without` is the same turn without reasoning; `plain` is a turn with only an answer, which shows
 * where the turn's header ends.
 */
function around(rendered: string, plain: string, without: string): TemplateCapabilities["reasoningTags"] {
  const header = plain.slice(0, plain.indexOf("ANSWERNEEDLE"));
  const start = rendered.indexOf("THOUGHTNEEDLE");
  const rest = rendered.slice(start + "THOUGHTNEEDLE".length);
  const next = without.slice(header.length);
  if (!rendered.startsWith(header) || !without.startsWith(header) || !rest.endsWith(next)) return null;
  return { open: rendered.slice(header.length, start), close: rest.slice(0, rest.length - next.length) };
}

/** A pair of tags in the source with "think" in its name: `<think>`, `<seed:think>`, `[THINK]`. */
function tagsIn(source: string): TemplateCapabilities["reasoningTags"] {
  for (const [close, open, name, end] of source.matchAll(/([<[])\/([\w:]*think[\w:]*)([>\]])/gi)) {
    if (source.includes(`${open}${name}${end}`)) return { open: `${open}${name}${end}`, close };
  }
  return null;
}

const userNeedle = "USERNEEDLE";
const user: TemplateMessage = { role: "user", content: userNeedle };
const system = (content: string): TemplateMessage => ({ role: "system", content });
const probeArguments = { object: { needle_key: "needle_value" }, string: '{"needle_key": "needle_value"}' };

function inParts(message: TemplateMessage): TemplateMessage {
  const { content } = message;
  return typeof content === "string" ? { ...message, content: [{ type: "text", text: content }] } : message;
}

/** A tool without descriptions, with its own, and with all. */
const probedTools = {
  optional: tool({}, {}),
  "of-tools": tool(described(), {}),
  required: tool(described(), described()),
};

function described(): object {
  return { description: "What it is for." };
}

function tool(own: object, ofParameter: object): unknown {
  return {
    type: "function",
    function: {
      name: "needle_tool",
      ...own,
      parameters: {
        type: "object",
        properties: { needle_parameter: { type: "string", ...ofParameter } },
        required: ["needle_parameter"],
      },
    },
  };
}

/** Whether the template writes the texts of a list, and not the list as such. */
function readsLists(attempt: Attempt, role: string, calls: CallShape): boolean {
  const content = ["FIRSTNEEDLE", "SECONDNEEDLE"].map((text) => ({ type: "text", text }));
  const [asked = user, call = user, result = user] = probedCall(calls);
  const conversation =
    role === "tool"
      ? [asked, call, { ...result, content }]
      : [...(role === "assistant" ? [user] : []), { role, content }, ...(role === "user" ? [] : [user])];
  const rendered = attempt(conversation) ?? "";
  return content.every(({ text }) => rendered.includes(text)) && !/["']type["']: ?["']text["']/.test(rendered);
}

/** A message in the shape that chat templates read: OpenAI's, without null members. */
export interface TemplateMessage {
  readonly role: string;
  readonly [member: string]: unknown;
}

/** Returns `whole` without the prefix that it has in common with `open`. */
export function afterCommonPrefix(open: string, whole: string): string {
  let length = 0;
  while (length < open.length && open[length] === whole[length]) length++;
  return whole.slice(length);
}

/**
 * Renders a conversation with the generation prompt, and returns the text and the generation prompt (`added`). `place` is a character that
 * occurs nowhere else.
 *
 * Without a generation prompt, some templates end with the EOS token, which may begin with the same characters as the generation prompt.
 * To distinguish them, such a template is rendered again with `place` as EOS.
 */
export function renderGenerationPrompt(
  render: (variables: Readonly<Record<string, unknown>>) => string,
  place: string,
): { readonly text: string; readonly added: string } {
  const open = render({ add_generation_prompt: false });
  const text = render({ add_generation_prompt: true });
  if (text.startsWith(open)) return { text, added: text.slice(open.length) };
  const otherwise = render({ add_generation_prompt: false, eos_token: place });
  return { text, added: afterCommonPrefix(otherwise, render({ add_generation_prompt: true, eos_token: place })) };
}
