import type { Exchange } from "../rules/exchange.ts";
import { notShown } from "../rules/group/group-rule.ts";
import { judgeCompacted } from "../rules/group/stored.ts";
import { isObject } from "../../core/json.ts";
import { parsedJson } from "../rules/view.ts";
import { create, earlierAnswer, question, story } from "./response-request.ts";
import type { Scenario } from "./scenario.ts";

const history = [{ type: "message", role: "user", content: story }, earlierAnswer];

/** Compacts a history and continues it. */
export const compactedResponse: Scenario = {
  id: "responses/compact",
  about: "Responses: a history that is compacted",
  api: "responses",
  async run(steps) {
    const compaction = await steps.ask({
      ...create("compact/create", "a history to be compacted", {}),
      endpoint: "response-compaction",
      path: () => "/responses/compact",
      body: (model) => ({ model, input: history }),
    });
    const output = compaction && outputOf(compaction);
    const input = [...(output ?? []), { type: "message", role: "user", content: question }];
    const next =
      output && (await steps.ask(create("compact/continue", "a compacted history continues", { input, store: false })));
    return [compaction ? judgeCompacted(compaction, next) : notShown("no answer")];
  },
};

function outputOf({ response }: Exchange): readonly unknown[] | undefined {
  const value = response.status === 200 ? parsedJson(response.body) : undefined;
  return isObject(value) && Array.isArray(value.output) ? value.output : undefined;
}
