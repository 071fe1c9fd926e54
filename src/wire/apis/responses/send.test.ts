import { describe, expect, test } from "vitest";
import { readChatRequest } from "../chat/request.ts";
import { readResponsesRequest } from "./request.ts";
import { openSeal } from "../turn-seal.ts";
import { compactedItems } from "./state/input-items.ts";
import { writeResponsesRequest } from "./send.ts";

type Members = Readonly<Record<string, unknown>>;

/** A chat request as it goes to a server that speaks Responses. */
function fromChat(members: Members): unknown {
  const body = { model: "tiny", messages: [{ role: "user", content: "Hi" }], ...members };
  return writeResponsesRequest(readChatRequest(body, "req_1").request, { model: "gpt" });
}

function passedOn(members: Members): unknown {
  const body = { model: "tiny", input: "Hi", ...members };
  return writeResponsesRequest(readResponsesRequest(body, "req_1", { forwards: true }).request, { model: "gpt" });
}

describe("a chat request", () => {
  test("has its conversation as items, and is not stored", () => {
    const messages = [
      { role: "system", content: "Be kind." },
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image_url", image_url: { url: "data:,a" } },
        ],
      },
      {
        role: "assistant",
        content: "One moment.",
        reasoning_content: "Hm",
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } },
          { id: "call_2", type: "custom", custom: { name: "g", input: "x" } },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "1" },
      { role: "tool", tool_call_id: "call_2", content: "2" },
    ];
    expect(fromChat({ messages })).toEqual({
      model: "gpt",
      store: false,
      include: ["reasoning.encrypted_content"],
      input: [
        { role: "system", content: "Be kind." },
        {
          role: "user",
          content: [
            { type: "input_text", text: "Look" },
            { type: "input_image", image_url: "data:,a", detail: "auto" },
          ],
        },
        { role: "assistant", content: "One moment." },
        { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
        { type: "custom_tool_call", call_id: "call_2", name: "g", input: "x" },
        { type: "function_call_output", call_id: "call_1", output: "1" },
        { type: "custom_tool_call_output", call_id: "call_2", output: "2" },
      ],
    });
  });

  test("has its parameters under their names there", () => {
    const parameters = { type: "object", properties: {} };
    const schema = { type: "object" };
    const body = fromChat({
      max_completion_tokens: 50,
      temperature: 0.5,
      tools: [
        { type: "function", function: { name: "f", description: "F.", parameters } },
        {
          type: "custom",
          custom: { name: "g", format: { type: "grammar", grammar: { syntax: "regex", definition: "a+" } } },
        },
      ],
      tool_choice: { type: "custom", custom: { name: "g" } },
      reasoning_effort: "low",
      verbosity: "high",
      response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true } },
      logprobs: true,
      top_logprobs: 2,
      metadata: { a: "b" },
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(body).toMatchObject({
      stream: true,
      max_output_tokens: 50,
      temperature: 0.5,
      tools: [
        { type: "function", name: "f", description: "F.", parameters, strict: false },
        { type: "custom", name: "g", format: { type: "grammar", syntax: "regex", definition: "a+" } },
      ],
      tool_choice: { type: "custom", name: "g" },
      reasoning: { effort: "low" },
      text: { verbosity: "high", format: { type: "json_schema", name: "n", schema, strict: true } },
      include: ["message.output_text.logprobs", "reasoning.encrypted_content"],
      top_logprobs: 2,
      metadata: { a: "b" },
    });
    expect(body).not.toHaveProperty("stream_options");
    expect(body).not.toHaveProperty("n");
  });
});

describe("a Responses request", () => {
  test("is passed on unchanged, with members that are not known here", () => {
    const members = {
      input: [
        { type: "telepathy" },
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" },
        { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "Hi" }] },
      ],
      include: ["reasoning.encrypted_content"],
      previous_response_id: "resp_1",
      tools: [{ type: "web_search" }],
      tool_choice: { type: "web_search" },
      client_metadata: { a: 1 },
      stream: true,
      stream_options: { include_obfuscation: false },
    };
    // The upstream need not know that the response is generated in the background.
    expect(passedOn({ ...members, background: true })).toEqual({ ...members, model: "gpt" });
  });

  test("has what was compacted here as it was: the server could not open it", () => {
    const said = { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] };
    const compaction = { type: "compaction", id: "cmp_1", encrypted_content: compactedItems([said]) };
    const asked = { role: "user", content: "And now?" };
    expect(passedOn({ input: [said, compaction, asked] })).toMatchObject({ input: [said, asked] });
  });

  test("leaves out reasoning that we have encrypted: the server could not decrypt it", () => {
    const ours = { type: "reasoning", summary: [], encrypted_content: openSeal.seal({ text: "Hm" }) };
    expect(passedOn({ input: [ours, { role: "user", content: "Hi" }] })).toMatchObject({
      input: [{ role: "user", content: "Hi" }],
    });
  });

  test("of another API is written from its neutral members, and loses nothing that this API has", () => {
    const input = [
      { role: "developer", content: "Be kind." },
      { role: "user", content: [{ type: "input_file", filename: "a.txt", file_data: "data:,a" }] },
      { role: "assistant", content: "Yes.", phase: "commentary" },
      { type: "function_call", call_id: "call_1", name: "read", namespace: "files", arguments: "{}" },
      { type: "function_call_output", call_id: "call_1", output: "text" },
    ];
    const body = {
      model: "tiny",
      input,
      tools: [
        {
          type: "namespace",
          name: "files",
          tools: [{ type: "function", name: "read", parameters: null, strict: false }],
        },
        { type: "custom", name: "g" },
      ],
      tool_choice: { type: "function", name: "read", namespace: "files" },
      parallel_tool_calls: false,
      reasoning: { effort: "low", summary: "auto" },
      text: { format: { type: "json_object" }, verbosity: "low" },
      truncation: "auto",
      max_output_tokens: 20,
      store: false,
      include: ["reasoning.encrypted_content"],
    };
    const { passthrough: _passthrough, ...neutral } = readResponsesRequest(body, "req_1").request;
    expect(writeResponsesRequest(neutral, {})).toEqual(body);
  });
});
