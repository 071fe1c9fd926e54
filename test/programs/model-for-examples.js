// Calls `add` when told to, gives a tool's result back, and else repeats what was said.
export default async function* ({ messages, tools }) {
  const last = messages.at(-1);
  if (last.role === "tool") yield `The tool said: ${last.content}`;
  else if (tools && last.content === "use add") yield { type: "tool-call", name: "add", arguments: { a: 1, b: 2 } };
  else
    for (const piece of ["You ", "said: ", typeof last.content === "string" ? last.content : last.content[0].text])
      yield piece;
}
