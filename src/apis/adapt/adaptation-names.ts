interface AdaptationText {
  /** What was changed, as a sentence for the log and Inspect. */
  readonly sentence: string;
  /** What the server does not accept: completes "The upstream does not accept …" in the refusals of a source with `strict`. */
  readonly refused: string;
  /** The model reads or may do something else than the client sent. Logged. */
  readonly changesMeaning?: true;
}

/** Every adaptation of a request, by its name. The name is its id in logs, metrics and Inspect, and its switch in the configuration's `adapt`. */
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
    sentence: "An image in the result of a tool was moved into the next message of the user.",
    refused: "images in the results of tools",
  },
  "reasoning-effort": {
    sentence: "The amount of reasoning was left out, as the server may refuse it.",
    refused: "an amount of reasoning",
  },
  "reasoning-history": {
    sentence: "Reasoning of an earlier turn was left out, as the server refuses it.",
    refused: "the reasoning of earlier turns",
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
  "foreign-member": {
    sentence: "A member of the request that only the client's API has was left out.",
    refused: "members of another API",
  },
} as const satisfies Readonly<Record<string, AdaptationText>>;

export type AdaptationName = keyof typeof adaptations;

/** The names of all adaptations, in the order of reports. */
export const adaptationNames = Object.keys(adaptations) as AdaptationName[];

/** The texts of an adaptation. */
export function textOfAdaptation(name: AdaptationName): AdaptationText {
  return adaptations[name];
}
