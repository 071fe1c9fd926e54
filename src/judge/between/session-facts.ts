import { weather } from "./fact-values.ts";
import { type Api, baseBody, type Fact, type Json, toolIn, turnsOf } from "./facts.ts";

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
