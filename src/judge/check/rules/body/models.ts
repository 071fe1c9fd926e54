import { atName, objectOf, shown } from "../place.ts";
import type { BodyRule, Violation } from "../rule.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView, Json } from "../view.ts";

const isSuccess = (view: BodyView, endpoint: string) =>
  view.exchange.endpoint === endpoint && view.exchange.response.status === 200 && view.value !== undefined;

function* modelViolations(view: BodyView, model: Json): Generator<Violation> {
  if (typeof model.id !== "string" || model.id === "") yield atName(view, "id", `id ${shown(model.id)}`);
  if (model.object !== "model") yield atName(view, "object", `object ${shown(model.object)}`);
  if (!Number.isInteger(model.created)) yield atName(view, "created", `created ${shown(model.created)}`);
  if (typeof model.owned_by !== "string") yield atName(view, "owned_by", `owned_by ${shown(model.owned_by)}`);
}

const modelsRule = { severity: "error", concern: "requests are misunderstood", judges: "body" } as const;

/** Rules about the list of models. Source: specification, `ListModelsResponse` and `Model`. */
export const modelRules: readonly BodyRule[] = [
  {
    ...modelsRule,
    id: "models/list",
    says: 'GET /v1/models answers {"object": "list", "data": […]}.',
    source: "specification",
    breaks: ["Open WebUI and every client with a model menu"],
    shown: (view) => isSuccess(view, "models"),
    *judge(view) {
      const { object, data } = objectOf(view);
      if (!Array.isArray(data)) yield atName(view, "data", `data is ${shown(data)}`);
      else if (object !== "list") yield atName(view, "object", `object ${shown(object)}`);
    },
  },
  {
    ...modelsRule,
    id: "models/model",
    says: 'A model has id, object: "model", created and owned_by.',
    source: "specification: Model",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    shown: (view) => isSuccess(view, "models") || isSuccess(view, "model"),
    *judge(view) {
      const { data } = objectOf(view);
      const models =
        view.exchange.endpoint === "model" ? [objectOf(view)] : Array.isArray(data) ? data.filter(isObject) : [];
      for (const model of models) yield* modelViolations(view, model);
    },
  },
  {
    id: "models/unique",
    severity: "warning",
    concern: "requests are misunderstood",
    says: "No two models have the same id.",
    source: "specification (an id is what a request names)",
    breaks: ["Open WebUI (one of them cannot be chosen)"],
    judges: "body",
    shown: (view) => isSuccess(view, "models"),
    *judge(view) {
      const { data } = objectOf(view);
      const ids = Array.isArray(data) ? data.filter(isObject).map((model) => model.id) : [];
      const twice = ids.find((id, i) => ids.indexOf(id) !== i);
      if (twice !== undefined) yield atName(view, "data", `${shown(twice)} twice`);
    },
  },
];
