import { type ReadGeminiEmbed, readGeminiEmbed, writeGeminiEmbed } from "../../wire/apis/gemini/models.ts";
import { geminiContentType } from "../../wire/apis/gemini/form.ts";
import { geminiErrorFormat, geminiModelsPath } from "../../wire/apis/gemini/port.ts";
import { canAnswer } from "../../wire/core/engine.ts";
import { estimateInputs } from "../../wire/core/estimate-tokens.ts";
import { invalidRequest } from "../../wire/core/failure.ts";
import { askVectors } from "./embed-and-rerank.ts";
import type { ModelEndpoint, NamedRequest, ServerRoute } from "./reply.ts";

/* The paths of Gemini's API for embeddings. Those that generate and count tokens are a port's. Source: https://ai.google.dev/api/embeddings. */

type ReadEmbed = NamedRequest & ReadGeminiEmbed;

const embedding = {
  conventions: geminiErrorFormat,
  api: { name: "embeddings", operation: "embeddings" },
} as const;

export const geminiRoutes: readonly (readonly [path: string, route: ServerRoute])[] = [
  [`${geminiModelsPath}:embedContent`, { ...embedding, methods: { POST: embedEndpoint(false) } }],
  [`${geminiModelsPath}:batchEmbedContents`, { ...embedding, methods: { POST: embedEndpoint(true) } }],
];

function embedEndpoint(isBatch: boolean): ModelEndpoint<ReadEmbed> {
  return {
    lists: "embeddings",
    read(body, { profile }, { requestId }) {
      const read = readGeminiEmbed(body, requestId, profile, isBatch);
      return { name: read.request.model, ...read };
    },
    check({ info, from: { engine } }) {
      if (!canAnswer(engine, "embed"))
        throw invalidRequest(
          `models/${info.id} makes no embeddings, so it is not supported for embedContent.`,
          "model",
        );
    },
    cost: ({ request }) => ({ prompt: estimateInputs(request.inputs) }),
    async answer(read, model, reply, service) {
      const answer = await askVectors(read.request, model, reply, service);
      reply.send(200, geminiContentType, writeGeminiEmbed(answer, read, reply.profile));
    },
  };
}
