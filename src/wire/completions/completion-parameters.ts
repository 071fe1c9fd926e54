import { z } from "zod";
import { commonParameters } from "../request/common-parameters.ts";
import type { RequestDraft } from "../request/draft.ts";
import { extensionParameters } from "../request/extension-parameters.ts";
import { outputParameters } from "../request/output-parameters.ts";
import { honoured } from "../request/parameter.ts";
import type { Parameter } from "../request/parameter.ts";
import { refusedSamplers } from "../request/refused-parameters.ts";
import { numberAbove } from "../request/refusals.ts";
import { expecting, integer } from "../request/shapes.ts";

const completions = ["completions"] as const;

const tokens = z.array(integer(0)).min(1);
const promptShape: z.ZodType<string | string[] | number[] | number[][]> = z.union(
  [z.string(), z.array(z.string()).min(1), tokens, z.array(tokens).min(1)],
  expecting("one of a string, array of strings, array of integers, or array of integer arrays"),
);

/** Every parameter of `POST /v1/completions`. */
export const completionParameters: readonly Parameter[] = [
  honoured(
    "prompt",
    { endpoints: completions, note: "Text or token ids, one prompt or several.", shape: promptShape, required: true },
    (value, draft) => {
      draft.prompts = prompts(value);
    },
  ),
  ...commonParameters,
  honoured(
    "max_tokens",
    { endpoints: completions, note: "Default 16, as OpenAI's. 0 with `echo` scores the prompt.", shape: integer(0) },
    (value, draft) => {
      draft.maxTokens = value;
    },
  ),
  honoured(
    "logprobs",
    { endpoints: completions, note: "0 to 5; profile `lean` gives up to 20.", shape: integer(0) },
    readLogprobs,
  ),
  honoured("echo", { endpoints: completions, shape: z.boolean() }, (value, draft) => {
    draft.echo = value;
  }),
  honoured(
    "best_of",
    { endpoints: completions, note: "0 to 20, at least `n`. Not with streams.", shape: integer(0, 20) },
    (value, draft) => {
      draft.bestOf = value;
    },
  ),
  honoured(
    "suffix",
    { endpoints: completions, note: "For models that were trained to fill in.", shape: z.string() },
    (value, draft) => {
      draft.suffix = value;
    },
  ),
  ...outputParameters,
  ...extensionParameters.filter(({ endpoints }) => endpoints.includes("completions")),
  ...refusedSamplers,
];

function prompts(value: string | readonly string[] | readonly number[] | readonly number[][]): RequestDraft["prompts"] {
  if (typeof value === "string") return [value];
  return isTokens(value) ? [value] : value;
}

function isTokens(value: readonly string[] | readonly number[] | readonly number[][]): value is readonly number[] {
  return typeof value[0] === "number";
}

function readLogprobs(value: number, draft: RequestDraft): void {
  const maximum = draft.profile.name === "openai" ? 5 : 20;
  if (value > maximum) throw numberAbove("logprobs", "integer", maximum, value);
  draft.topLogprobs = value;
}
