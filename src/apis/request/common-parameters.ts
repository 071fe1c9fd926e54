import { checkTotalLength } from "./text-limits.ts";
import { z } from "zod";
import { missingModel } from "../failures.ts";
import type { RequestDraft } from "./draft.ts";
import { readLogitBias } from "./logit-bias.ts";
import { accepted, honoured } from "./parameter.ts";
import type { Parameter } from "./parameter.ts";
import { arrayTooLong, emptyArray } from "./refusals.ts";
import { decimal, expecting, integer, stringOrStrings, wideInteger } from "./shapes.ts";

/** OpenAI's parameters that both endpoints have. */
export const commonParameters: readonly Parameter[] = [
  honoured("model", { shape: z.string(), required: true }, (value, draft) => {
    if (value === "") throw missingModel();
    draft.model = value;
  }),
  honoured("stream", { shape: z.boolean() }, (value, draft) => {
    draft.stream = value;
  }),
  honoured(
    "stream_options",
    {
      note: "`include_usage`, `include_obfuscation`, and vLLM's `continuous_usage_stats`, which with `include_usage` gives every chunk the usage so far. Only allowed with `stream: true`.",
      shape: z.object(
        {
          include_usage: z.boolean().nullish(),
          include_obfuscation: z.boolean().nullish(),
          continuous_usage_stats: z.boolean().nullish(),
        },
        expecting("an object"),
      ),
    },
    (value, draft) => {
      draft.streamOptions = value;
    },
  ),
  honoured("n", { note: "1 to 128.", shape: integer(1, 128) }, (value, draft) => {
    draft.n = value;
  }),
  honoured(
    "stop",
    {
      note: "A string or a list. OpenAI takes up to 4 strings; profile `lean` takes 1,000. In total they may have 65,536 characters. Empty strings are ignored.",
      shape: stringOrStrings(1000),
    },
    readStop,
  ),
  honoured("temperature", { note: "0 to 2.", shape: decimal(0, 2) }, (value, { sampling }) => {
    sampling.temperature = value;
  }),
  honoured("top_p", { note: "0 to 1.", shape: decimal(0, 1) }, (value, { sampling }) => {
    sampling.topP = value;
  }),
  honoured("frequency_penalty", { note: "-2 to 2.", shape: decimal(-2, 2) }, (value, { sampling }) => {
    sampling.frequencyPenalty = value;
  }),
  honoured("presence_penalty", { note: "-2 to 2.", shape: decimal(-2, 2) }, (value, { sampling }) => {
    sampling.presencePenalty = value;
  }),
  honoured(
    "logit_bias",
    {
      note: 'Token ids of the model that answers (`/tokenize` tells them), -100 to 100; fractions are allowed. Profile `lean` also takes texts, whose tokens get the bias each, and llama.cpp\'s list: `[[15043, 1.5], [" Hello", -1], [42, false]]`, where `false` bans.',
      shape: z.unknown(),
    },
    readLogitBias,
  ),
  honoured(
    "seed",
    {
      note: "The same request gives the same answer on the same build of a local model, running alone.",
      shape: wideInteger(),
    },
    (value, { sampling }) => {
      sampling.seed = value;
    },
  ),
  accepted("user", { note: "No effect: answers do not depend on the user.", shape: z.string() }),
];

function readStop(value: string | string[], draft: RequestDraft): void {
  if (draft.profile.judgesAsVendor && Array.isArray(value)) {
    if (value.length === 0) throw emptyArray("stop");
    if (value.length > 4) throw arrayTooLong("stop", 4, value.length);
  }
  const strings = (Array.isArray(value) ? value : [value]).filter((text) => text !== "");
  checkTotalLength("stop", strings);
  if (strings.length > 0) draft.limits.stop = strings;
}
