import { atName, objectOf, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { BodyView } from "../view.ts";
import { type Rules, notShown } from "../rule.ts";

const isSuccess = (view: BodyView, endpoint: string) =>
  view.exchange.endpoint === endpoint && view.exchange.response.status === 200 && view.value !== undefined;

/** Rules about the list of models. Source: specification, `ListModelsResponse` and `Model`. */
export const modelRules: Rules<BodyView> = {
  *"models/unique"(view) {
    if (!isSuccess(view, "models")) return notShown;
    const { data } = objectOf(view);
    const ids = Array.isArray(data) ? data.filter(isObject).map((model) => model.id) : [];
    const twice = ids.find((id, i) => ids.indexOf(id) !== i);
    if (twice !== undefined) yield atName(view, "data", `${shown(twice)} twice`);
  },
};
