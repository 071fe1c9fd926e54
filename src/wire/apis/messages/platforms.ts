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
