interface AdaptationText {
  /** What was changed, as a sentence for the log and Inspect. */
  readonly sentence: string;
  /** What the server does not accept: completes "The upstream does not accept …" in the refusals of a source with `strict`. */
  readonly refused: string;
  /** The model reads or may do something else than the client sent. Logged. */
  readonly changesMeaning?: true;
  /** A part of the request is not sent. The header of warnings says which. */
  readonly omits?: true;
}

/**
 * Every adaptation of a request, by its name. The name is its id in logs, metrics and Inspect, and its switch in the configuration's
 * `adapt`.
 */
const adaptations = {
  "max-tokens": {
    sentence: "The request's limit on the answer's length was higher than the server takes, and was lowered.",
    refused: "a limit of this size on the answer's length",
  },
  "instruction-role": {
    sentence: "An instruction was sent with the role that the server accepts.",
    refused: "this role for instructions",
  },
  "system-joined": {
    sentence: "A system message was joined with the one at the beginning.",
    refused: "more than one system message",
  },
  "system-as-user": {
    sentence: "A later system message was sent as a marked text of the user's.",
    refused: "a system message after the beginning of the conversation",
    changesMeaning: true,
  },
  "custom-tool": {
    sentence: "A custom tool, or an earlier call of one, was sent as a function.",
    refused: "custom tools",
  },
  "allowed-tools": {
    sentence: "A choice among some tools was sent as those tools alone.",
    refused: "`allowed_tools` as a choice of tools",
  },
  "tool-image": {
    sentence: "An image or file in the result of a tool was moved into the next message of the user.",
    refused: "images in the results of tools",
  },
  "reasoning-effort": {
    sentence: "The amount of reasoning was left out, as the server may refuse it.",
    refused: "an amount of reasoning",
    omits: true,
  },
  "reasoning-history": {
    sentence: "Reasoning of an earlier turn was left out, as the server refuses it.",
    refused: "the reasoning of earlier turns",
    omits: true,
  },
  "reasoning-demand": {
    sentence: "Empty reasoning was added to an earlier message, as the server demands some.",
    refused: "earlier messages without reasoning",
  },
  "state-restored": {
    sentence: "What the server demands back of an earlier turn was added: the client has not returned it.",
    refused: "earlier turns without what it has given with them",
  },
  "state-left-out": {
    sentence: "What another server or model has given with an earlier turn was left out: this one would refuse it.",
    refused: "what another server or model has given with an earlier turn",
  },
  "state-member": {
    sentence: "A member with the state of an earlier turn was left out, as the server does not take it.",
    refused: "this member with the state of an earlier turn",
    omits: true,
  },
  "state-stand-in": {
    sentence: "A documented value stands in for the state of an earlier call, which is missing or another model's.",
    refused: "earlier calls without the state that it gave with them",
  },
  "thinking-mode": {
    sentence:
      "Thinking was written in a form that the model and the running turn take: one version of Claude takes no budget, another only a budget, and a turn without a thinking block at its beginning none.",
    refused: "this form of thinking, or `thinking: enabled` for a turn that does not begin with a thinking block",
  },
  "orphan-reasoning": {
    sentence: "Reasoning without the message or call that followed it was left out.",
    refused: "reasoning without the item that followed it",
  },
  "item-id": {
    sentence:
      "The id of an earlier message or call was left out: the server would demand the reasoning that it has stored with it.",
    refused: "the ids of earlier messages and calls",
  },
  "encrypted-reasoning": {
    sentence: "Encrypted reasoning was not requested, as the model has none.",
    refused: "a request for encrypted reasoning",
    omits: true,
  },
  "text-content": {
    sentence: "The texts of a message were sent as one string, without the further members of their parts.",
    refused: "texts as a list of parts",
    omits: true,
  },
  "tool-name": {
    sentence: "The name of a tool was sent shortened; calls come back with the original.",
    refused: "names of tools that are not 1 to 64 letters, digits, `_` and `-`",
  },
  "short-call-id": {
    sentence: "The id of a call was replaced by one of nine letters or digits.",
    refused: "ids of calls that are not nine letters or digits",
  },
  "answer-after-tool": {
    sentence: "A short answer was put between the result of a tool and the user's message.",
    refused: "a user's message directly after the result of a tool",
    changesMeaning: true,
  },
  "simple-schema": {
    sentence:
      "A JSON Schema was sent without what the server cannot compile; answers are checked against the original.",
    refused: "all keywords of this JSON Schema",
  },
  "file-text": {
    sentence: "A file was sent as its text.",
    refused: "files",
    changesMeaning: true,
  },
  "image-data": {
    sentence: "An image was downloaded, converted or made smaller, so that the server takes it.",
    refused: "images of this type, of this size, or by URL",
  },
  "one-choice": {
    sentence: "A request for several choices was sent as several requests.",
    refused: "`n` greater than 1",
  },
  "repeated-role": {
    sentence: "Consecutive messages of one role were joined.",
    refused: "consecutive messages of one role",
  },
  "reasoning-member": {
    sentence: "Reasoning of an earlier turn was sent under the name that the server expects.",
    refused: "reasoning under this name",
  },
  "image-left-out": {
    sentence: "An image was replaced by a text that says so, as the model accepts none.",
    refused: "images",
    changesMeaning: true,
    omits: true,
  },
  logprobs: {
    sentence: "A request for log probabilities was refused, as the server has none.",
    refused: "`logprobs`",
  },
  "tools-left-out": {
    sentence: "The tools were left out, as the model does not call tools.",
    refused: "tools",
    changesMeaning: true,
    omits: true,
  },
  "tool-choice": {
    sentence: "The choice of a tool was sent in a form that the server accepts.",
    refused: "this `tool_choice`",
    changesMeaning: true,
  },
  "parallel-calls": {
    sentence: "`parallel_tool_calls` was left out, as the server refuses it.",
    refused: "`parallel_tool_calls`",
    omits: true,
  },
  "output-format": {
    sentence:
      "`response_format` was replaced by one that the server accepts, and the schema put into the instructions.",
    refused: "this type of `response_format`",
    changesMeaning: true,
  },
  "strict-schema": {
    sentence: "`strict` was left out of the schema of a tool or of the answer.",
    refused: "`strict` in schemas",
  },
  "max-tokens-member": {
    sentence: "The limit on the answer's length was sent under the name that the server accepts.",
    refused: "this member for the limit on the answer's length",
  },
  "stream-options": {
    sentence: "`stream_options` was left out, as the server refuses it.",
    refused: "`stream_options`",
  },
  "refused-member": {
    sentence: "A member that the server refuses was left out.",
    refused: "this member",
    changesMeaning: true,
    omits: true,
  },
  "renamed-member": {
    sentence: "A member was sent under the server's name for it.",
    refused: "this member under OpenAI's name",
  },
  "tool-schema-types": {
    sentence: "A part of a tool's schema that the server cannot read was left out.",
    refused: "this part of a tool's schema",
  },
  "earlier-arguments": {
    sentence: "The arguments of an earlier call, which are not a JSON object, were put into one.",
    refused: "arguments of calls that are not a JSON object",
    changesMeaning: true,
  },
  "foreign-member": {
    sentence: "A member of the request that only the client's API has was left out.",
    refused: "members of another API",
    omits: true,
  },
} as const satisfies Readonly<Record<string, AdaptationText>>;

export type AdaptationName = keyof typeof adaptations;

/** The names of all adaptations, in the order of reports. */
export const adaptationNames = Object.keys(adaptations) as AdaptationName[];

/** The texts of an adaptation. */
export function textOfAdaptation(name: AdaptationName): AdaptationText {
  return adaptations[name];
}
