import {
  Agent,
  MemorySession,
  OpenAIConversationsSession,
  OpenAIProvider,
  Runner,
  tool,
  webSearchTool,
} from "@openai/agents";
import OpenAI from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { serveTurns } from "../support/serve-turns.ts";
import type { TurnItem, TurnsServer } from "../support/serve-turns.ts";
import { dailyPart } from "../support/runs.ts";

const call = (name: string, input: object): TurnItem => ({ type: "tool-call", name, arguments: input });
const thought = (text: string): TurnItem => ({ type: "reasoning", text });

const readInvoice = tool({
  name: "read_invoice",
  description: "Read an invoice",
  parameters: z.object({ number: z.number() }),
  execute: ({ number }) => `Invoice ${number}: 12 €`,
});

/** OpenAI's Agents SDK, whose models speak Responses. */
describe.each(dailyPart(["lean", "exact"], 2, 1))("the Agents SDK, wire %s", (wire) => {
  let server: TurnsServer;
  afterEach(() => server.close());

  async function runnerOf(...turns: readonly (readonly TurnItem[])[]): Promise<Runner> {
    server = await serveTurns(turns, "--wire", wire);
    const modelProvider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: "none", useResponses: true });
    return new Runner({ modelProvider, model: "scripted", tracingDisabled: true });
  }

  const roles = (ask: number): unknown[] => server.asked()[ask]?.messages.map(({ role }) => role) ?? [];

  const billing = new Agent({ name: "Billing", instructions: "You read invoices.", tools: [readInvoice] });
  const desk = Agent.create({ name: "Desk", instructions: "You hand over.", handoffs: [billing] });
  const handedOver = [
    [thought("Not mine."), call("transfer_to_Billing", {})],
    [thought("I look."), call("read_invoice", { number: 7 })],
    [thought("There."), "It is ", "12 €."],
  ];

  test("hands over to another agent, which calls its tool and answers", async () => {
    const runner = await runnerOf(...handedOver);
    const result = await runner.run(desk, "What is invoice 7?");
    expect(result.finalOutput).toBe("It is 12 €.");
    expect(result.lastAgent?.name).toBe("Billing");
    expect(
      server.asked().map(({ tools }) => tools?.map((each) => each.type === "function" && each.function.name)),
    ).toEqual([["transfer_to_Billing"], ["read_invoice"], ["read_invoice"]]);
    expect(server.asked()[2]?.messages).toMatchObject([
      { role: "system", content: "You read invoices." },
      { role: "user", content: "What is invoice 7?" },
      {
        role: "assistant",
        reasoning_content: "Not mine.",
        tool_calls: [{ function: { name: "transfer_to_Billing" } }],
      },
      { role: "tool", content: expect.stringContaining("Billing") as string },
      { role: "assistant", reasoning_content: "I look.", tool_calls: [{ function: { arguments: '{"number":7}' } }] },
      { role: "tool", content: "Invoice 7: 12 €" },
    ]);
  });

  test("the same in streams", async () => {
    const runner = await runnerOf(...handedOver);
    const result = await runner.run(desk, "What is invoice 7?", { stream: true });
    let text = "";
    for await (const piece of result.toTextStream()) text += piece;
    await result.completed;
    expect(text).toBe("It is 12 €.");
    expect(result.finalOutput).toBe("It is 12 €.");
    expect(result.lastAgent?.name).toBe("Billing");
    expect(server.asked()).toHaveLength(3);
  });

  test("an output in a form", async () => {
    const runner = await runnerOf(['{"city":"Paris",', '"celsius":21}']);
    const outputType = z.object({ city: z.string(), celsius: z.number() });
    const result = await runner.run(new Agent({ name: "Weather", outputType }), "Paris?");
    expect(result.finalOutput).toEqual({ city: "Paris", celsius: 21 });
    expect(server.asked()[0]?.options.response_format).toMatchObject({ type: "json_schema" });
  });

  test("a session of its own, and a hosted tool that nobody runs here", async () => {
    const runner = await runnerOf(["Good day."], ["Still here."]);
    const agent = new Agent({ name: "Host", instructions: "Be kind.", tools: [webSearchTool()] });
    const session = new MemorySession();
    await runner.run(agent, "Hello", { session });
    const { finalOutput } = await runner.run(agent, "Are you there?", { session });
    expect(finalOutput).toBe("Still here.");
    expect(roles(1)).toEqual(["system", "user", "assistant", "user"]);
    await expect.poll(() => server.stderr()).toContain("nothing here runs");
  });

  test("previousResponseId: the server keeps what was said, also between the calls of one run", async () => {
    const runner = await runnerOf(["Good day."], [call("read_invoice", { number: 7 })], ["It is 12 €."]);
    const first = await runner.run(billing, "Hello");
    const { lastResponseId: previousResponseId } = first;
    const { finalOutput } = await runner.run(billing, "Invoice 7?", { previousResponseId });
    expect(finalOutput).toBe("It is 12 €.");
    // Instructions are each request's own.
    expect(roles(2)).toEqual(["system", "user", "assistant", "user", "assistant", "tool"]);
  });

  // The page of this client said that there are no conversations, long after there were.
  test("conversationId and a session in /v1/conversations: the server keeps the items", async () => {
    const runner = await runnerOf(["Good day."], ["Still here."], ["Good evening."], ["Here, too."]);
    const client = new OpenAI({ baseURL: server.baseURL, apiKey: "none" });
    const agent = new Agent({ name: "Host", instructions: "Be kind." });
    const { id: conversationId } = await client.conversations.create({});
    await runner.run(agent, "Hello", { conversationId });
    const { finalOutput } = await runner.run(agent, "Are you there?", { conversationId });
    expect(finalOutput).toBe("Still here.");
    expect(roles(1)).toEqual(["system", "user", "assistant", "user"]);
    const session = new OpenAIConversationsSession({ client });
    await runner.run(agent, "Hello", { session });
    await runner.run(agent, "And there?", { session });
    expect(roles(3)).toEqual(["system", "user", "assistant", "user"]);
    expect(await session.getItems()).toHaveLength(4);
  });

  test("a failure is an error with its status", async () => {
    const error = { name: "RequestError", status: 400, param: "input" };
    const runner = await runnerOf([{ fail: "Too hot.", error }]);
    await expect(runner.run(billing, "Hello")).rejects.toMatchObject({ status: 400, param: "input" });
    expect(server.asked()).toHaveLength(1);
  });
});
