import type { ModelInfo } from "../../core/engine.ts";
import type { ModelLister } from "../voice.ts";

/**
 * Models as Anthropic lists them, for clients that say whose form they expect. All are on one page. A time of creation that is not known
 * is 1970's, limits that are not known are null. Source: recordings of 2026, and the types of Anthropic's SDK 0.120.0.
 */
export const anthropicModels: ModelLister = {
  isMeant: (header) => header("anthropic-version") !== undefined || header("x-api-key") !== undefined,
  list: (models) =>
    JSON.stringify({
      data: models.map(modelObject),
      has_more: false,
      first_id: models[0]?.id ?? null,
      last_id: models.at(-1)?.id ?? null,
    }),
  one: (model) => JSON.stringify(modelObject(model)),
};

function modelObject({ id, created, contextLength, maxOutputTokens, sees }: ModelInfo): object {
  return {
    type: "model",
    id,
    display_name: id,
    created_at: new Date(created * 1000).toISOString().replace(".000Z", "Z"),
    max_input_tokens: contextLength ?? null,
    max_tokens: maxOutputTokens ?? contextLength ?? null,
    capabilities: {
      batch: no,
      citations: no,
      code_execution: no,
      context_management: no,
      effort: { supported: true, low: yes, medium: yes, high: yes, xhigh: yes, max: yes },
      image_input: sees === true ? yes : no,
      pdf_input: no,
      structured_outputs: yes,
      thinking: { supported: true, types: { enabled: yes, adaptive: yes } },
    },
  };
}

const yes = { supported: true };
const no = { supported: false };
