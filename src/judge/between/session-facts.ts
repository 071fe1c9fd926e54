import { type Api, baseBody, type Fact, type Json } from "./facts.ts";
import { chatTool, messagesTool, responsesTool } from "./request-facts.ts";

const tool = "get_weather";

/** A session whose requests only append: the vendor has all of the earlier prompt in its cache. */
export function sessionFactsOf(api: Api, model: string): Fact[] {
  const rule = "A rule of the session that is worth caching. ".repeat(200);
  const member = api === "responses" ? "input" : "messages";
  const before: Json[] = [];
  return [0, 1, 2, 3].map((turn): Fact => {
    const id = `session-${turn}`;
    const base = baseBody(api, model, id, true);
    const [own = {}] = (base[member] as Json[]).slice(-1);
    before.push(own);
    const system = api === "chat" ? [{ role: "system", content: rule }] : [];
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
  if (api === "chat") return { tools: [chatTool], prompt_cache_key: "session-17" };
  if (api === "responses") return { tools: [responsesTool], instructions: rule, prompt_cache_key: "session-17" };
  return { tools: [messagesTool], system: [{ type: "text", text: rule, cache_control: { type: "ephemeral" } }] };
}

function sessionTurn(api: Api, at: number): Json[] {
  const id = `${api === "messages" ? "toolu" : "call"}_session00000000000000${at}`;
  const json = `{"city":"City ${at}"}`;
  if (api === "chat")
    return [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name: tool, arguments: json } }],
      },
      { role: "tool", tool_call_id: id, content: `Weather ${at}` },
    ];
  if (api === "responses")
    return [
      { type: "function_call", call_id: id, name: tool, arguments: json },
      { type: "function_call_output", call_id: id, output: `Weather ${at}` },
    ];
  return [
    { role: "assistant", content: [{ type: "tool_use", id, name: tool, input: JSON.parse(json) as Json }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: `Weather ${at}` }] },
  ];
}
