// A program that calls the function whose arguments the user's last message names, as in `web_search {"query":"x"}`, and then says what it returned.
export default async function* ({ messages, tools = [] }) {
  const last = messages.at(-1);
  if (last.role === "tool") {
    const { content } = last;
    yield `The tool said: ${typeof content === "string" ? content : content.map((part) => part.text ?? `[${part.type}]`).join(" ")}`;
    return;
  }
  const said = typeof last.content === "string" ? last.content : last.content.map((part) => part.text).join("");
  const [, name = "", given = "{}"] = /^(\w+) (\{[^]*\})$/.exec(said) ?? [];
  const names = tools.map((tool) => tool.function.name);
  if (names.includes(name)) yield { type: "tool-call", name, arguments: JSON.parse(given) };
  else yield `I have ${names.join(", ") || "no functions"}.`;
}
