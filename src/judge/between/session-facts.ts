import { isObject } from "../../wire/core/json.ts";
import { weather } from "./fact-values.ts";
import { type Api, baseBody, type Fact, type Json, markerOf, parsed, toolIn, turnsOf } from "./facts.ts";

/** A session whose requests only append: the vendor has all of the earlier prompt in its cache. */
export function sessionFactsOf(api: Api, model: string): Fact[] {
  const rule = "A rule of the session that is worth caching. ".repeat(200);
  const member = turnsOf[api];
  const before: Json[] = [];
  return [0, 1, 2, 3].map((turn): Fact => {
    const id = `session-${turn}`;
    const base = baseBody(api, model, id, true);
    const [own = {}] = (base[member] as Json[]).slice(-1);
    before.push(own);
    const system = member === "messages" && api !== "messages" ? [{ role: "system", content: rule }] : [];
    const body = { ...base, ...sessionMembers(api, rule), [member]: [...system, ...before] };
    before.push(...sessionTurn(api, turn));
    const continues = turn > 0 && { continues: `session-${turn - 1}` };
    return {
      id,
      title: `turn ${turn + 1} of a session`,
      side: "request",
      stream: true,
      isQuick: true,
      body,
      ...continues,
    };
  });
}

/** A request that gives the answer to another one back, with the result of its call. */
export function returnOf({ id, stream, body: asked }: Fact, state: string): Fact {
  return {
    id: `returned-${id}`,
    title: "the vendor's state, given back in the next turn",
    side: "request",
    stream,
    isQuick: true,
    body: asked,
    continues: id,
    returns: state,
  };
}

/** The body of such a request. undefined: the answer has no call. */
export function returnedBody(api: Api, { id, body }: Fact, answer: string): Json | undefined {
  const turn = turnIn(api, parsed(answer));
  if (!turn) return undefined;
  return { ...body, [turnsOf[api]]: [...(body[turnsOf[api]] as Json[]), ...turn(`${markerOf(id)} rain`)] };
}

/** The turn of an answer, as a client gives it back, and the result of its first call. */
function turnIn(api: Api, answer: unknown): ((result: string) => Json[]) | undefined {
  const root = isObject(answer) ? answer : {};
  const first = (list: unknown, has: (item: Json) => unknown = () => true): Json | undefined =>
    Array.isArray(list) ? list.filter(isObject).find((item) => has(item)) : undefined;
  switch (api) {
    case "chat":
    case "ollama": {
      const { message } = api === "ollama" ? root : (first(root["choices"]) ?? {});
      const call = isObject(message) ? first(message["tool_calls"]) : undefined;
      const name = api === "ollama" && { tool_name: weather.name };
      return call && ((content) => [message as Json, { role: "tool", tool_call_id: call["id"], ...name, content }]);
    }
    case "responses": {
      const call = first(root["output"], ({ type }) => type === "function_call");
      const items = root["output"] as Json[];
      return call && ((output) => [...items, { type: "function_call_output", call_id: call["call_id"], output }]);
    }
    case "messages": {
      const call = first(root["content"], ({ type }) => type === "tool_use");
      const result = (content: string): Json => ({ type: "tool_result", tool_use_id: call?.["id"], content });
      return (
        call &&
        ((content) => [
          { role: "assistant", content: root["content"] },
          { role: "user", content: [result(content)] },
        ])
      );
    }
    case "gemini": {
      const content = first(root["candidates"])?.["content"];
      const call = isObject(content) ? first(content["parts"], (part) => part["functionCall"]) : undefined;
      const { id } = (call?.["functionCall"] ?? {}) as Json;
      const functionResponse = (output: string): Json => ({ id, name: weather.name, response: { output } });
      return (
        call &&
        ((output) => [content as Json, { role: "user", parts: [{ functionResponse: functionResponse(output) }] }])
      );
    }
  }
}

function sessionMembers(api: Api, rule: string): Json {
  const tools = [toolIn(api, weather)];
  switch (api) {
    case "chat":
      return { tools, prompt_cache_key: "session-17" };
    case "responses":
      return { tools, instructions: rule, prompt_cache_key: "session-17" };
    case "messages":
      return { tools, system: [{ type: "text", text: rule, cache_control: { type: "ephemeral" } }] };
    case "ollama":
      return { tools };
    case "gemini":
      return { tools, systemInstruction: { parts: [{ text: rule }] } };
  }
}

function sessionTurn(api: Api, at: number): Json[] {
  const { name } = weather;
  const id = `${api === "messages" ? "toolu" : "call"}_session00000000000000${at}`;
  const input = { city: `City ${at}` };
  const content = `Weather ${at}`;
  switch (api) {
    case "chat": {
      const called = { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
      return [
        { role: "assistant", content: null, tool_calls: [called] },
        { role: "tool", tool_call_id: id, content },
      ];
    }
    case "responses":
      return [
        { type: "function_call", call_id: id, name, arguments: JSON.stringify(input) },
        { type: "function_call_output", call_id: id, output: content },
      ];
    case "messages":
      return [
        { role: "assistant", content: [{ type: "tool_use", id, name, input }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] },
      ];
    case "ollama":
      return [
        { role: "assistant", content: "", tool_calls: [{ id, function: { name, arguments: input } }] },
        { role: "tool", tool_name: name, tool_call_id: id, content },
      ];
    case "gemini":
      return [
        { role: "model", parts: [{ functionCall: { id, name, args: input } }] },
        { role: "user", parts: [{ functionResponse: { id, name, response: { output: content } } }] },
      ];
  }
}
