import type { GenerationRequest } from "../../core/request.ts";
import type { RequestBody, ServerProfile } from "../adapt/server-profile.ts";
import type { SourcePort } from "../source-port.ts";
import { EventStreamDecoder, eventStreamType } from "./event-stream.ts";
import { messagesSource } from "./send.ts";

/*
 * The Messages API at Amazon Bedrock and at Google's Vertex AI: the model is in the path, and a version in place of a header. Sources:
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html,
 * https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude.
 */

const { tokenCount: _, ...withoutCount } = messagesSource;

/** Amazon's own keys are Bearer tokens; a credential signs requests in place of a key. */
const bearer = (key: string | undefined): Readonly<Record<string, string>> =>
  key === undefined ? {} : { authorization: `Bearer ${key}` };

/** `InvokeModel` and `InvokeModelWithResponseStream`, whose streams are AWS's event streams. */
export const bedrockSource: SourcePort = {
  ...withoutCount,
  path: (model, stream) => `/model/${encodeURIComponent(model)}/${stream ? "invoke-with-response-stream" : "invoke"}`,
  headers: bearer,
  streams: { contentType: eventStreamType, decoder: () => new EventStreamDecoder() },
  writeRequest(request, profile, note) {
    const { model: __, stream: ___, ...body } = messagesSource.writeRequest(request, profile, note);
    const betas = request.passthrough?.headers?.["anthropic-beta"]?.split(",").map((beta) => beta.trim());
    return { anthropic_version: "bedrock-2023-05-31", ...(betas && { anthropic_beta: betas }), ...body };
  },
};

/** `rawPredict` and `streamRawPredict`. */
export const vertexSource: SourcePort = {
  ...messagesSource,
  // Versions of models follow an `@`.
  path: (model, stream) =>
    `/models/${encodeURIComponent(model).replaceAll("%40", "@")}:${stream ? "streamRawPredict" : "rawPredict"}`,
  headers: bearer,
  writeRequest(request, profile, note) {
    const { model: __, ...body } = messagesSource.writeRequest(request, profile, note);
    return { anthropic_version: vertexVersion, ...body };
  },
  ...(messagesSource.tokenCount && {
    tokenCount: {
      ...messagesSource.tokenCount,
      path: "/models/count-tokens:rawPredict",
      writeRequest: (request: GenerationRequest, profile: ServerProfile): RequestBody => ({
        anthropic_version: vertexVersion,
        ...messagesSource.tokenCount?.writeRequest(request, profile),
      }),
    },
  }),
};

const vertexVersion = "vertex-2023-10-16";

/** A request in the form of a platform's clients, as its path says it: `path` is that of the Messages API. */
export interface PlatformPath {
  readonly path: string;
  readonly members?: { readonly model: string; readonly stream?: true };
  /** The stream is an AWS event stream. */
  readonly isEventStream?: boolean;
}

/**
 * The paths of Bedrock's and Vertex AI's clients, such as Claude Code with CLAUDE_CODE_USE_BEDROCK or CLAUDE_CODE_USE_VERTEX. The model stays
 * encoded. undefined: another path.
 */
export function platformPath(path: string): PlatformPath | undefined {
  if (path.startsWith("/model/")) {
    const [, model = "", streams] = /^\/model\/([^/]+)\/invoke(-with-response-stream)?$/.exec(path) ?? [];
    if (model === "") return undefined;
    return streams
      ? { path: "/messages", members: { model, stream: true }, isEventStream: true }
      : { path: "/messages", members: { model } };
  }
  const at = path.indexOf("/publishers/anthropic/models/");
  if (at < 0 || !/^(?:\/v1)?\/projects\/[^/]+\/locations\/[^/]+$/.test(path.slice(0, at))) return undefined;
  const [, model = "", method] = /^([^/:]+):(rawPredict|streamRawPredict)$/.exec(path.slice(at + 29)) ?? [];
  // The request names its model itself.
  if (model === "count-tokens") return { path: "/messages/count_tokens" };
  if (model === "") return undefined;
  return { path: "/messages", members: { model, ...(method === "streamRawPredict" && { stream: true }) } };
}

/** Separates what the platforms have in the body of a request and the Messages API in headers. */
export function withoutPlatform(request: Readonly<Record<string, unknown>>): {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
} {
  const { anthropic_version: __, anthropic_beta: betas, ...body } = request;
  const named = Array.isArray(betas) ? betas.filter((beta) => typeof beta === "string").join(",") : "";
  return { body, headers: { "anthropic-version": "2023-06-01", ...(named !== "" && { "anthropic-beta": named }) } };
}
