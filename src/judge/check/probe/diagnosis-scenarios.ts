import { judgeDiagnosed } from "../rules/group/diagnosed.ts";
import { type GroupVerdict, notShown } from "../rules/group/group-rule.ts";
import type { Probe } from "./probe.ts";
import { prompts, saying } from "./prompts.ts";
import { create, idOf, story } from "./response-request.ts";
import type { Scenario, ScenarioSteps } from "./scenario.ts";

/** The vendors cache prompts of 1,024 tokens and more. A model with a small context gets a shorter one. */
const lengths = [24, 2];

/** A request, the same again, and one with another system prompt, which both name the first. `compared`: without an id, the first. */
async function diagnosed(
  steps: ScenarioSteps,
  compared: (name: string, about: string, system: string, id?: string) => Probe,
): Promise<readonly GroupVerdict[]> {
  for (const length of lengths) {
    const system = `You know this of the user: ${story} `.repeat(length);
    const id = idOf(await steps.ask(compared("first", "a request to compare with", system)));
    if (id === undefined) continue;
    const same = await steps.ask(compared("same", "the same request, compared with it", system, id));
    const changed = `You are brief. ${system}`;
    const other = await steps.ask(compared("changed", "another system prompt, compared with it", changed, id));
    return [same && other ? judgeDiagnosed(same, other) : notShown("no answer")];
  }
  return [notShown("no answer to compare with")];
}

/** Cache diagnostics of the Messages API. */
export const diagnosedMessage: Scenario = {
  id: "messages/diagnostics",
  about: "Messages: cache diagnostics",
  api: "messages",
  run: (steps) =>
    diagnosed(steps, (name, about, system, id) => ({
      id: `messages/diagnostics/${name}`,
      about: `Messages: ${about}`,
      endpoint: "messages",
      method: "POST",
      path: () => "/messages",
      body: (model) => ({
        model,
        max_tokens: 16,
        system,
        messages: saying(prompts.hello),
        diagnostics: { previous_message_id: id ?? null },
      }),
      expects: "any",
    })),
};

/** Prompt cache diagnostics of the Responses API. */
export const diagnosedResponse: Scenario = {
  id: "responses/diagnostics",
  about: "Responses: prompt cache diagnostics",
  api: "responses",
  run: (steps) =>
    diagnosed(steps, (name, about, system, id) =>
      create(`diagnostics/${name}`, about, {
        instructions: system,
        input: prompts.hello,
        ...(id !== undefined && { prompt_cache_options: { comparison_response_id: id } }),
      }),
    ),
};
