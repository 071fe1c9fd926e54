import { expect, test } from "vitest";
import type { Engine } from "../../wire/core/engine.ts";
import { RunningAnswers } from "./running-answers.ts";

/** An engine that answers the one question, and records the ids of the requests. */
function engine(): { readonly engine: Engine; readonly asked: string[] } {
  const asked: string[] = [];
  const ask = async ({ request }: { readonly request: { readonly id: string } }): Promise<boolean> => {
    asked.push(request.id);
    return true;
  };
  return { engine: { questions: () => ["end-reasoning"], ask } as unknown as Engine, asked };
}

test("a running answer is found by the id of its request and by its own, by its owner only, and not after its end", async () => {
  const answers = new RunningAnswers();
  const { engine: asking, asked } = engine();
  const first = answers.begin({ requestId: "req_1", owner: "a", engine: asking });
  const second = answers.begin({ requestId: "req_2", owner: "b", engine: asking });
  first.id = "chatcmpl-1";
  expect(await answers.endReasoning("a", "req_1")).toBe("ended");
  expect(await answers.endReasoning("a", "chatcmpl-1")).toBe("ended");
  expect(await answers.endReasoning("b", "req_2")).toBe("ended");
  expect(asked).toEqual(["req_1", "req_1", "req_2"]);
  expect(await answers.endReasoning("b", "req_1")).toBe("not-running");
  expect(await answers.endReasoning("a", "chatcmpl-2")).toBe("not-running");
  first.end();
  expect(await answers.endReasoning("a", "chatcmpl-1")).toBe("not-running");
  expect(await answers.endReasoning("b", "req_2")).toBe("ended");
  second.end();
  expect(await answers.endReasoning("b", "req_2")).toBe("not-running");
});
