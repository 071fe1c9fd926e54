import type * as z from "zod";
import type { EmbeddingAnswer, EmbeddingRequest, ModelInfo } from "../../core/engine.ts";
import { invalidRequest } from "../../core/failure.ts";
import { runSync } from "../../core/steps.ts";
import type { ModelListFormat } from "../api-error-format.ts";
import type { JsonValue } from "../json-text.ts";
import { inWireOrder } from "../members.ts";
import type { Profile } from "../profile.ts";
import { geminiForms } from "./form.ts";
import { readProtoJson } from "./proto-json.ts";
import { geminiBatchEmbedRequest, geminiEmbedRequest } from "./request-schema.ts";
import { geminiEmbedding, geminiEmbeddings, geminiModel, geminiModelList, geminiTokenCount } from "./schema.ts";

const maxPage = 1000;

/** Lists models as Google does: with `pageSize` in pages, otherwise all. */
export const geminiModels: ModelListFormat = {
  isRequested: (header, query) => header("x-goog-api-key") !== undefined || query?.("key") !== undefined,
  list(all, queries) {
    const [size] = queries?.("pageSize") ?? [];
    const [token = "0"] = queries?.("pageToken") ?? [];
    const from = /^\d{1,9}$/.test(token) ? Number(token) : 0;
    const length = size !== undefined && /^[1-9]\d{0,8}$/.test(size) ? Math.min(maxPage, Number(size)) : all.length;
    const next = from + length;
    return written(geminiModelList, {
      models: all.slice(from, next).map(modelObject),
      ...(next < all.length && { nextPageToken: String(next) }),
    });
  },
  one: (model) => written(geminiModel, modelObject(model)),
};

function modelObject(info: ModelInfo): z.input<typeof geminiModel> {
  const { id, contextLength, maxOutputTokens = contextLength, endpoints, reasons } = info;
  const chats = endpoints.includes("chat");
  return {
    name: `models/${id}`,
    version: "001",
    displayName: id,
    ...(contextLength !== undefined && { inputTokenLimit: contextLength }),
    ...(maxOutputTokens !== undefined && { outputTokenLimit: maxOutputTokens }),
    supportedGenerationMethods: [
      ...(chats ? ["generateContent", "countTokens"] : []),
      ...(endpoints.includes("embeddings") ? ["embedContent"] : []),
    ],
    ...(reasons !== undefined && { thinking: reasons }),
  };
}

export function writeTokenCount(tokens: number): string {
  return written(geminiTokenCount, {
    totalTokens: tokens,
    promptTokensDetails: [{ modality: "TEXT", tokenCount: tokens }],
  });
}

export interface ReadGeminiEmbed {
  readonly request: EmbeddingRequest;
  readonly isBatch: boolean;
}

/** Reads the body of `:embedContent`, and of `:batchEmbedContents`. Throws `FailureError` in Google's words. */
export function readGeminiEmbed(body: unknown, requestId: string, profile: Profile, isBatch: boolean): ReadGeminiEmbed {
  const judging = { profile, forwards: false, warnings: [] };
  const batch = isBatch ? runSync(readProtoJson(geminiBatchEmbedRequest, body, judging)) : undefined;
  const single = batch ? undefined : runSync(readProtoJson(geminiEmbedRequest, body, judging));
  const requests = batch ? (batch.requests ?? []) : [single ?? {}];
  if (requests.length === 0)
    throw invalidRequest("* BatchEmbedContentsRequest.requests: at least one request is required\n", "requests");
  const inputs = requests.map(({ content }, at) => {
    const place = batch ? `requests[${at}].content` : "content";
    if (!content) throw invalidRequest(`* EmbedContentRequest.${place}: content is not specified\n`, place);
    return (content.parts ?? [])
      .map(({ text }, index) => {
        if (typeof text === "string") return text;
        throw invalidRequest(`${place}.parts[${index}]: this server embeds texts only.`, `${place}.parts[${index}]`);
      })
      .join("\n");
  });
  const sizes = new Set(
    requests.map((one) => one.outputDimensionality ?? one.embedContentConfig?.outputDimensionality ?? 0),
  );
  const [dimensions = 0] = sizes;
  if (sizes.size > 1 || !Number.isInteger(dimensions) || dimensions < 0)
    throw invalidRequest(
      "outputDimensionality: this server takes one positive integer for all requests of a batch.",
      "outputDimensionality",
    );
  const model = ((batch ?? single)?.model ?? "").replace(/^models\//, "");
  return { request: { id: requestId, model, inputs, ...(dimensions > 0 && { dimensions }), extra: {} }, isBatch };
}

export function writeGeminiEmbed({ vectors }: EmbeddingAnswer, { isBatch }: ReadGeminiEmbed, profile: Profile): string {
  const { whole } = geminiForms[profile.name];
  // The numbers of vectors are many: their order needs no schema.
  if (isBatch) return whole({ [onlyMember(geminiEmbeddings)]: vectors.map((values) => ({ values })) });
  return whole({ [onlyMember(geminiEmbedding)]: { values: vectors[0] ?? [] } });
}

function onlyMember(schema: z.ZodObject): string {
  return Object.keys(schema.shape)[0] ?? "";
}

function written<Schema extends z.ZodType>(schema: Schema, value: z.input<Schema>): string {
  return geminiForms.exact.whole(inWireOrder(schema, value) as JsonValue);
}
