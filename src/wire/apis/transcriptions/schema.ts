import * as z from "zod";
import { anyObject, decimalShape, expecting, strings } from "../request/shapes.ts";

/*
 * The objects of `POST /v1/audio/transcriptions` and `/v1/audio/translations`. Source: OpenAI's OpenAPI document, `CreateTranscriptionRequest`
 * and the schemas that it names. The keys of a shape are in the order of the wire; `.meta({ note })` of a request's member is its row in
 * docs/parameters.md.
 */

const count = z.int().min(0);

/** A file of a form, as the server reads it: its name, and its bytes in base64. */
export const formFile = z.object({ name: z.string(), data: z.string() }, expecting("a file"));

const formats = z.enum(["json", "text", "srt", "verbose_json", "vtt", "diarized_json"]);

const common = {
  file: formFile.meta({ note: "A WAV, MP3 or FLAC file." }),
  model: z.string(),
  prompt: z.string().optional().meta({ note: "Follows the instruction to the model." }),
  response_format: formats.optional().meta({ note: "`json` or `text`; others need timestamps, and get a 400." }),
  temperature: decimalShape(0, 1).optional().meta({ note: "Default 0." }),
};

export const translationRequest = z.object(common);

export const transcriptionRequest = z.object({
  ...common,
  language: z.string().optional().meta({ note: "A part of the instruction to the model." }),
  languages: strings(64, 1).optional().meta({ note: "As `language`, if it may be one of several." }),
  keywords: strings(1024).optional().meta({ note: "Words that may occur, a part of the instruction to the model." }),
  include: z.array(z.enum(["logprobs"])).optional(),
  stream: z.boolean().optional(),
  chunking_strategy: z
    .union([z.enum(["auto"]), anyObject()], expecting("one of 'auto' or an object"))
    .optional()
    .meta({ note: "Ignored: the model gets the whole recording." }),
  timestamp_granularities: z
    .array(z.enum(["word", "segment"]))
    .optional()
    .meta({ note: "Refused: there are no timestamps." }),
  known_speaker_names: strings(4).optional().meta({ note: "Refused: speakers are not distinguished." }),
  known_speaker_references: strings(4).optional().meta({ note: "Refused: speakers are not distinguished." }),
});

const logprobs = z.array(
  z.object({ token: z.string(), logprob: z.number().meta({ float: true }), bytes: z.array(z.int()).optional() }),
);

const usage = z.object({
  type: z.literal("tokens"),
  input_tokens: count,
  input_token_details: z.object({ text_tokens: count.optional(), audio_tokens: count.optional() }).optional(),
  output_tokens: count,
  total_tokens: count,
});

/** A usage that the source has not counted is absent. */
export const transcription = z.object({
  text: z.string(),
  logprobs: logprobs.optional(),
  usage: usage.optional(),
});

export const translation = z.object({ text: z.string() });

export const transcriptionEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("transcript.text.delta"), delta: z.string(), logprobs: logprobs.optional() }),
  z.object({
    type: z.literal("transcript.text.done"),
    text: z.string(),
    logprobs: logprobs.optional(),
    usage: usage.optional(),
  }),
]);
