import type { ErrorObject } from "ajv";
import type { GenerationEvent } from "../../generation/event.ts";
import type { JsonSchema, Tool } from "../../generation/message.ts";
import type { WriteLine } from "./options.ts";

/** What a finished answer is checked against, where the grammar does not hold all of it. */
export interface AnswerCheckPlan {
  readonly tools: readonly Tool[];
  /** Of the visible text. */
  readonly schema?: JsonSchema;
}

/**
 * Validates finished answers whose grammar was widened (requirement T16), for the log. It follows the events of one request; nothing
 * of the answer changes.
 */
export class AnswerCheck {
  readonly #plan: AnswerCheckPlan;
  readonly #log: WriteLine;
  readonly #texts = new Map<number, string>();
  readonly #calls = new Map<string, { readonly name: string; arguments: string }>();

  constructor(plan: AnswerCheckPlan, log: WriteLine) {
    this.#plan = plan;
    this.#log = log;
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
        if (call && schema !== undefined) void this.#check(`the arguments of '${call.name}'`, call.arguments, schema);
      } else if (event.type === "finish" && event.reason === "stop" && this.#plan.schema !== undefined) {
        void this.#check(`choice ${event.choice}`, this.#texts.get(event.choice) ?? "", this.#plan.schema);
      }
    }
  }

  /** ajv is loaded on first use: few requests need it. */
  async #check(what: string, json: string, schema: JsonSchema): Promise<void> {
    try {
      const [{ Ajv2020 }, formats] = await Promise.all([import("ajv/dist/2020.js"), import("ajv-formats")]);
      const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, logger: false });
      formats.default.default(ajv);
      const validate = ajv.compile(schema === true || schema === false ? schema : { ...schema });
      const valid = validate(JSON.parse(json));
      if (valid) this.#log(`${what}: valid, as checked beyond the grammar`, "info");
      else this.#log(`${what}: not valid: ${told(validate.errors)}`, "warn");
    } catch (error) {
      this.#log(`${what}: could not be checked: ${error instanceof Error ? error.message : String(error)}`, "warn");
    }
  }
}

function told(errors: readonly ErrorObject[] | null | undefined): string {
  return (errors ?? []).map(({ instancePath, message }) => `${instancePath || "/"} ${message}`).join("; ");
}
