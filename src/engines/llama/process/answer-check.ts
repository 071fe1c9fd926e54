import type { GenerationEvent } from "../../../core/events.ts";
import type { JsonSchema } from "../../../core/message.ts";
import type { AnswerCheckPlan } from "../preparing/constraint-plan.ts";

/** Takes a JSON text that is to be checked by a schema. `what`: its name in the log. */
export type CheckText = (what: string, json: string, schema: JsonSchema) => void;

/**
 * Collects the answer to one request whose grammar cannot enforce all of its schemas, and passes each finished part on to be checked.
 * The result goes to the log; the answer does not change.
 */
export class AnswerCheck {
  readonly #plan: AnswerCheckPlan;
  readonly #check: CheckText;
  readonly #texts = new Map<number, string>();
  readonly #calls = new Map<string, { readonly name: string; arguments: string }>();

  constructor(plan: AnswerCheckPlan, check: CheckText) {
    this.#plan = plan;
    this.#check = check;
  }

  read(events: readonly GenerationEvent[]): void {
    for (const event of events) {
      if (event.type === "text-delta") {
        this.#texts.set(event.choice, (this.#texts.get(event.choice) ?? "") + event.text);
      } else if (event.type === "tool-call-start") {
        this.#calls.set(`${event.choice} ${event.index}`, { name: event.name, arguments: "" });
      } else if (event.type === "tool-call-delta") {
        const call = this.#calls.get(`${event.choice} ${event.index}`);
        if (call) call.arguments += event.arguments;
      } else if (event.type === "tool-call-end" && event.status === "succeeded") {
        const call = this.#calls.get(`${event.choice} ${event.index}`);
        const schema = this.#plan.tools.find((tool) => tool.name === call?.name)?.parameters;
        if (call && schema !== undefined) this.#check(`the arguments of '${call.name}'`, call.arguments, schema);
      } else if (event.type === "finish" && event.reason === "stop" && this.#plan.schema !== undefined) {
        this.#check(`choice ${event.choice}`, this.#texts.get(event.choice) ?? "", this.#plan.schema);
      }
    }
  }
}
