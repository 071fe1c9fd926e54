import type { GeneratedChoice, Generation } from "../../core/accumulate.ts";
import type { ModelInfo } from "../../core/engine.ts";
import type { GenerationEvent, TextDeltaEvent, TokenLogprob, Usage } from "../../core/events.ts";
import { FailureError, invalidRequest } from "../../core/failure.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { openaiErrorFormat } from "../api-error-format.ts";
import { inWireOrder } from "../members.ts";
import type { Port, ReadRequest, StreamWriter } from "../port.ts";
import { unbufferedStream } from "../profile.ts";
import { checkedMembers } from "../request/parameter.ts";
import { objectBody, requiredModel, unknownParameter, unsupportedParameter } from "../request/refusals.ts";
import { doneText, errorEnd, keepAliveText } from "../sse-text.ts";
import { transcription, transcriptionEvent, transcriptionRequest, translation, translationRequest } from "./schema.ts";

/*
 * Transcriptions of a model with conversations that takes audio, as llama.cpp's server makes them (tools/server/server-chat.cpp,
 * `convert_transcriptions_to_chatcmpl`): the model gets an instruction and the recording as a user's message.
 */

/** llama.cpp's instruction (common/chat.cpp, `common_chat_get_asr_prompt`). */
const transcribe = "Transcribe audio to text";
const translate = "Translate audio to English text";

/** `POST /v1/audio/transcriptions`. */
export const transcriptionsPort: Port = {
  name: "transcriptions",
  path: "/audio/transcriptions",
  errorFormat: openaiErrorFormat,
  operation: "transcription",
  bodyType: "form",
  *readRequest(body, requestId, options) {
    const { read, others } = checkedMembers(transcriptionRequest, formMembers(body));
    yield;
    for (const name of ["timestamp_granularities", "known_speaker_names", "known_speaker_references"] as const)
      if (read[name] !== undefined) throw unsupportedParameter(name);
    const { language, languages = language === undefined ? [] : [language], keywords = [], include = [] } = read;
    const lines = [
      languages.length > 0 ? `${transcribe} (language: ${languages.join(", ")})` : transcribe,
      ...(keywords.length > 0 ? [`Keywords: ${keywords.join(", ")}`] : []),
    ];
    const includeLogprobs = include.length > 0;
    return {
      ...audioRequest(requestId, lines, read, includeLogprobs),
      warnings: [
        ...warningsOf(others, options.profile?.judgesAsVendor === true),
        ...(read.chunking_strategy === undefined ? [] : ["chunking_strategy: ignored"]),
      ],
      streamWriter: () => new TranscriptionWriter(includeLogprobs),
      ...answerIn(read, ({ text, textLogprobs }, counted) =>
        inWireOrder(transcription, {
          text: text ?? "",
          ...(includeLogprobs && textLogprobs && { logprobs: logprobsOf(textLogprobs) }),
          ...(counted && { usage: usageOf(counted) }),
        }),
      ),
    };
  },
  checkModel: checkAudio,
  streamHeaders: () => unbufferedStream,
};

/** `POST /v1/audio/translations`: the text in English. It is never streamed. */
export const translationsPort: Port = {
  name: "translations",
  path: "/audio/translations",
  errorFormat: openaiErrorFormat,
  operation: "translation",
  bodyType: "form",
  *readRequest(body, requestId, options) {
    const { read, others } = checkedMembers(translationRequest, formMembers(body));
    yield;
    return {
      ...audioRequest(requestId, [translate], read, false),
      warnings: warningsOf(others, options.profile?.judgesAsVendor === true),
      streamWriter: () => new TranscriptionWriter(false),
      ...answerIn(read, ({ text }) => inWireOrder(translation, { text: text ?? "" })),
    };
  },
  checkModel: checkAudio,
  streamHeaders: () => unbufferedStream,
};

/** Returns the members of a form, whose values are texts, in the types that the schemas have. Throws `FailureError`. */
function formMembers(body: unknown): Readonly<Record<string, unknown>> {
  const members = { ...objectBody(body) };
  requiredModel(members["model"]);
  const { temperature, stream } = members;
  if (typeof temperature === "string" && /^-?\d+(?:\.\d+)?$/.test(temperature))
    members["temperature"] = Number(temperature);
  if (stream === "true" || stream === "false") members["stream"] = stream === "true";
  // The SDKs send an object as several members: `chunking_strategy[type]`.
  for (const name of Object.keys(members)) {
    if (!name.startsWith("chunking_strategy[")) continue;
    members["chunking_strategy"] = {};
    delete members[name];
  }
  return members;
}

function warningsOf(others: Readonly<Record<string, unknown>>, judgesAsVendor: boolean): string[] {
  const [first] = Object.keys(others);
  if (first !== undefined && judgesAsVendor) throw unknownParameter(first);
  return Object.keys(others)
    .slice(0, 16)
    .map((name) => `${name}: unknown, ignored`);
}

interface ReadAudio {
  readonly file: { readonly data: string };
  readonly model: string;
  readonly prompt?: string | undefined;
  readonly response_format?: string | undefined;
  readonly temperature?: number | undefined;
  readonly stream?: boolean | undefined;
}

/** The request to the model: the lines of the instruction with the client's prompt, and the recording. Throws `FailureError`. */
function audioRequest(
  id: string,
  instruction: readonly string[],
  { file, model, prompt, response_format: format = "json", temperature = 0, stream = false }: ReadAudio,
  includeLogprobs: boolean,
): Pick<ReadRequest, "request"> {
  // OpenAI's message for its models that have no timestamps either (issues of vercel/ai and openai-dotnet in 2025).
  if (format !== "json" && format !== "text")
    throw invalidRequest(
      `response_format '${format}' is not compatible with model '${model}'. Use 'json' or 'text' instead.`,
      "response_format",
      "unsupported_value",
    );
  const text = [...instruction, ...(prompt === undefined || prompt === "" ? [] : [prompt])].join("\n");
  const audio = { type: "audio", data: file.data, format: formatOf(file.data), path: "file" } as const;
  return {
    request: {
      id,
      model,
      prompt: { kind: "chat", messages: [{ role: "user", content: [{ type: "text", text }, audio] }], template: {} },
      sampling: { temperature },
      limits: {},
      ...(includeLogprobs && { logprobs: { top: 0 } }),
      wantsUsage: true,
      stream,
      extra: {},
    },
  };
}

/** The beginnings of files that local models read (mtmd-helper.cpp, `is_audio_file`). OpenAI's chat completions take the first two. */
const beginnings = { wav: /^RIFF[^]{4}WAVE/, mp3: /^(?:ID3|\xff[\xe0-\xff])/, flac: /^fLaC/ } as const;

/** Returns the format of a recording. Throws `FailureError` in OpenAI's words. */
function formatOf(base64: string): string {
  const start = /^[A-Za-z0-9+/]{16}/.test(base64) ? atob(base64.slice(0, 16)) : "";
  const [format] = Object.entries(beginnings).find(([, beginning]) => beginning.test(start)) ?? [];
  if (format !== undefined) return format;
  const names = Object.keys(beginnings).map((name) => `'${name}'`);
  throw invalidRequest(`Invalid file format. Supported formats: [${names.join(", ")}]`, "file");
}

/** Throws `FailureError` 404 for a model that takes no audio. */
function checkAudio({ model }: GenerationRequest, { takesAudio }: ModelInfo, others: () => readonly ModelInfo[]): void {
  if (takesAudio !== false) return;
  const taking = others().flatMap((info) => (info.takesAudio === true ? [`'${info.id}'`] : []));
  const hint =
    taking.length > 0
      ? `Models that do: ${taking.join(", ")}.`
      : "A local model does if its projector encodes audio (--mmproj FILE, or mmproj in the configuration).";
  const message = `The model '${model}' takes no audio. ${hint}`;
  throw new FailureError({ kind: "not-found", message, status: 404, param: "model", code: null });
}

/** The writer of a whole answer: JSON, or the text alone. */
function answerIn(
  { response_format: format }: Pick<ReadAudio, "response_format">,
  members: (choice: Pick<GeneratedChoice, "text" | "textLogprobs">, usage: Usage | undefined) => unknown,
): Pick<ReadRequest, "writeResponse" | "contentType"> {
  const choiceOf = ({ choices: [choice] }: Generation): Pick<GeneratedChoice, "text" | "textLogprobs"> =>
    choice ?? { text: null, textLogprobs: null };
  if (format === "text")
    return {
      contentType: "text/plain; charset=utf-8",
      writeResponse: (generation) => `${choiceOf(generation).text ?? ""}\n`,
    };
  return { writeResponse: (generation) => JSON.stringify(members(choiceOf(generation), generation.usage)) };
}

function usageOf({ promptTokens, completionTokens, totalTokens, promptDetails }: Usage): object {
  const audio = promptDetails?.["audio_tokens"];
  return {
    type: "tokens",
    input_tokens: promptTokens,
    ...(audio !== undefined && {
      input_token_details: { text_tokens: promptTokens - audio, audio_tokens: audio },
    }),
    output_tokens: completionTokens,
    total_tokens: totalTokens ?? promptTokens + completionTokens,
  };
}

/** JSON has no infinity: impossible tokens get OpenAI's -9999, as in chat completions. */
function logprobsOf(tokens: readonly TokenLogprob[]): object[] {
  return tokens.map(({ token, logprob, bytes }) => ({
    token,
    logprob: Math.max(logprob ?? 0, -9999),
    ...(bytes && { bytes: [...bytes] }),
  }));
}

/** Writes the events of a streamed transcription. */
class TranscriptionWriter implements StreamWriter {
  readonly #includeLogprobs: boolean;
  #text = "";
  readonly #logprobs: TokenLogprob[] = [];
  /** The tokens of an incomplete character, which belong to the next delta. */
  #held: TokenLogprob[] = [];
  #usage: Usage | undefined;

  constructor(includeLogprobs: boolean) {
    this.#includeLogprobs = includeLogprobs;
  }

  write(events: readonly GenerationEvent[]): string {
    return events.map((event) => this.#written(event)).join("");
  }

  open(): string {
    return "";
  }

  keepAlive(): string {
    return keepAliveText;
  }

  #written(event: GenerationEvent): string {
    switch (event.type) {
      case "text-delta":
        return this.#delta(event);
      case "usage":
        this.#usage = event.usage;
        return "";
      case "end":
        if (event.end.kind === "client-gone") return "";
        return event.end.kind === "done" ? this.#done() + doneText : errorEnd(event.end.failure);
      default:
        return "";
    }
  }

  #delta({ text, logprobs = [] }: TextDeltaEvent): string {
    if (this.#includeLogprobs) for (const token of logprobs) this.#held.push(token);
    if (text === "") return "";
    this.#text += text;
    const tokens = this.#held;
    this.#held = [];
    for (const token of tokens) this.#logprobs.push(token);
    const shown = this.#includeLogprobs ? { logprobs: logprobsOf(tokens) } : {};
    return frame({ type: "transcript.text.delta", delta: text, ...shown });
  }

  #done(): string {
    const tokens = [...this.#logprobs, ...this.#held];
    return frame({
      type: "transcript.text.done",
      text: this.#text,
      ...(this.#includeLogprobs && { logprobs: logprobsOf(tokens) }),
      ...(this.#usage && { usage: usageOf(this.#usage) }),
    });
  }
}

function frame(event: object): string {
  return `data: ${JSON.stringify(inWireOrder(transcriptionEvent, event))}\n\n`;
}
