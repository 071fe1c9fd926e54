import { type Defect, everywhere, type Json, without } from "./mutations.ts";

const turns = (change: (turns: readonly Json[]) => readonly unknown[]) => (body: Json) => ({
  ...body,
  messages: change(body["messages"] as Json[]),
});

/** What only sessions show, whose requests give back the answers to earlier ones. */
export const sessionDefects: readonly Defect[] = [
  {
    api: "messages",
    name: "loses the thinking of the second turn",
    request: turns((messages) => messages.map((turn, at) => (at === 1 ? withoutThinking(turn) : turn))),
    finds: "request lost returned state",
  },
  {
    api: "responses",
    name: "loses encrypted reasoning of earlier turns",
    request: everywhere(without("encrypted_content")),
    finds: "request lost returned state",
  },
  {
    api: "gemini",
    name: "loses signatures of calls of earlier turns",
    request: everywhere(without("thoughtSignature")),
    finds: "request lost returned state",
  },
  {
    api: "chat",
    name: "puts the number of turns before the first message",
    request: turns(([system, ...rest]) => [
      { ...system, content: `${rest.length}. ${String(system?.["content"])}` },
      ...rest,
    ]),
    finds: "request cache-lost prompt",
  },
  {
    api: "messages",
    name: "marks no turn",
    request: turns((messages) => messages.map(everywhere(without("cache_control")))),
    finds: "request lost cacheMarks",
  },
  {
    api: "chat",
    name: "gives results of parallel calls to each other's calls",
    request: turns(swapped),
    finds: "request changed messages[].content[].call",
  },
  {
    api: "messages",
    name: "says of no result that it is an error",
    request: turns((messages) => messages.map(everywhere(without("is_error")))),
    finds: "request lost messages[].content[].isError",
  },
  {
    api: "ollama",
    name: "loses rules between turns",
    request: turns((messages) => messages.filter(({ role }, at) => at === 0 || role !== "system")),
    finds: "request changed system",
  },
  {
    api: "messages",
    name: "gives a client the calls of another",
    answer: (text: string) => text.replaceAll("fact:call-whole.", "fact:calls-whole."),
    finds: "answer mixed-up",
    only: ["call-whole"],
  },
].map((defect) => ({ only: ["session"], ...defect }) as Defect);

function withoutThinking(turn: Json): Json {
  const { content } = turn;
  return Array.isArray(content)
    ? { ...turn, content: (content as Json[]).filter(({ type }) => type !== "thinking") }
    : turn;
}

/** The first two results that follow each other have each other's ids. */
function swapped(messages: readonly Json[]): Json[] {
  const at = messages.findIndex(({ role }, index) => role === "tool" && messages[index + 1]?.["role"] === "tool");
  const ids = [messages[at]?.["tool_call_id"], messages[at + 1]?.["tool_call_id"]];
  return messages.map((message, index) =>
    at !== -1 && (index === at || index === at + 1) ? { ...message, tool_call_id: ids[index === at ? 1 : 0] } : message,
  );
}
