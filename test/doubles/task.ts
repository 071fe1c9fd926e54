/*
 * The task of every session: an agent's turns, each a loop of steps. What the model says depends on the conversation alone: on the last text
 * of the user and the number of results since then. So a double needs no memory, and any of them can continue the session of another one.
 */

export interface TaskCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** One answer of the model. Without calls it is the last one of its turn. */
export interface Step {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls: readonly TaskCall[];
}

/** What a double finds in a request. */
export interface Conversation {
  /** The last text of the user. */
  readonly userText: string;
  /** Since then. */
  readonly calls: readonly TaskCall[];
  readonly results: number;
}

/** The user's text of a turn. */
export function userText(session: string, turn: number): string {
  return `Session ${session}, turn ${turn}: go on with the house.`;
}

/** The user's text of a turn with steps of its own: for agents, which have other tools. Its letters and digits pass through any agent. */
export function scriptedText(session: string, turn: number, steps: readonly Step[]): string {
  return `${userText(session, turn)} Steps: ${Buffer.from(JSON.stringify(steps)).toString("base64url")}.`;
}

/** The steps that a text of the user asks for. */
function stepsOfText(text: string): readonly Step[] {
  const { session, turn } = placeOf(text);
  const [, script] = /, turn \d+: .*? Steps: ([\w-]+)\./s.exec(text) ?? [];
  return script === undefined
    ? stepsOf(turn, session)
    : (JSON.parse(Buffer.from(script, "base64url").toString()) as Step[]);
}

/** The session and the turn that a text of the user belongs to. */
export function placeOf(text: string): { readonly session: string; readonly turn: number } {
  const [, session = "none", turn = "1"] = /Session (\S+), turn (\d+)/.exec(text) ?? [];
  return { session, turn: Number(turn) };
}

/**
 * The steps of a turn. Odd turns: parallel calls after reasoning and a text, a call without reasoning whose result is an error, a call after
 * reasoning, and the last text after reasoning. Even turns are short.
 */
function stepsOf(turn: number, house: string): readonly Step[] {
  if (turn % 2 === 0)
    return [
      { reasoning: `Turn ${turn}: the window, then.`, calls: [{ name: "look", input: { house, at: turn * 10 } }] },
      { text: finalText(turn), calls: [] },
    ];
  return [
    {
      reasoning: `Turn ${turn}: two doors — „left“ & "right".\nI look at both. 😀`,
      text: "I look.",
      calls: [1, 2].map((side) => ({ name: "look", input: { house, at: turn * 10 + side } })),
    },
    { calls: [{ name: "read", input: { house, path: `/house/${turn}.txt` } }] },
    { reasoning: `Turn ${turn}: it cannot be read. I wait.`, calls: [{ name: "wait", input: { house } }] },
    { reasoning: `Turn ${turn}: that is all.`, text: finalText(turn), calls: [] },
  ];
}

/** What the user gets at the end of a turn. */
export function finalText(turn: number): string {
  return `Turn ${turn} is done.`;
}

/** The calls of a whole turn. */
export function callsOf(session: string, turn: number): readonly TaskCall[] {
  return callsOfText(userText(session, turn));
}

/** The calls of the turn that a text of the user asks for. */
export function callsOfText(text: string): readonly TaskCall[] {
  return stepsOfText(text).flatMap(({ calls }) => calls);
}

/** The next answer. */
function nextStep({ userText: text, results }: Conversation): Step {
  let before = 0;
  for (const step of stepsOfText(text)) {
    if (results <= before) return step;
    before += step.calls.length;
  }
  return { text: finalText(placeOf(text).turn), calls: [] };
}

/** The sessions of a double: their prompts, and what is lost on their way. */
export class Sessions {
  /** The prompts of each session, as JSON. */
  readonly prompts = new Map<string, string[]>();
  readonly lost: string[] = [];

  /** Returns the next answer of a conversation. */
  next(conversation: Conversation, prompt: unknown): Step {
    const { userText, calls, results } = conversation;
    const { session, turn } = placeOf(userText);
    this.prompts.set(session, [...(this.prompts.get(session) ?? []), JSON.stringify(prompt)]);
    // The calls of the task that the conversation does not have, or has in another form.
    for (const [index, call] of callsOfText(userText).slice(0, results).entries()) {
      const sent = calls[index];
      if (!sent || !sameCall(sent, call))
        this.lost.push(`${session}: call ${index} of turn ${turn}: ${JSON.stringify(sent)}`);
    }
    return nextStep(conversation);
  }
}

/** The reasoning that came with a call of the task. */
export function reasoningOfCall({ name, input }: TaskCall): string | undefined {
  const number = Number(input["at"] ?? /\d+/.exec(JSON.stringify(input["path"] ?? ""))?.[0]);
  if (name === "read" || Number.isNaN(number)) return undefined;
  return stepsOf(Math.floor(number / 10), String(input["house"])).find(({ calls }) =>
    calls.some((call) => sameCall(call, { name, input })),
  )?.reasoning;
}

/** Whether two calls are the same; the members of an input have no order. */
export function sameCall(one: TaskCall, other: TaskCall): boolean {
  const text = ({ input }: TaskCall): string => JSON.stringify(input, Object.keys(input).toSorted());
  return one.name === other.name && text(one) === text(other);
}

/** Runs a tool, as a client does. */
export function runTool({ name, input }: TaskCall): { readonly text: string; readonly isError: boolean } {
  if (name === "read") return { text: `ENOENT: no such file ${String(input["path"])}`, isError: true };
  return {
    text: name === "look" ? `At ${String(input["at"])} of ${String(input["house"])}: a door.` : "Waited.",
    isError: false,
  };
}

const text = { type: "string" };

/** The tools, with the schemas of their arguments. */
export const tools = [
  { name: "look", properties: { house: text, at: { type: "integer" } }, required: ["house", "at"] },
  { name: "read", properties: { house: text, path: text }, required: ["house", "path"] },
  { name: "wait", properties: { house: text }, required: ["house"] },
].map(({ name, properties, required }) => ({
  name,
  description: `Tool ${name}`,
  schema: { type: "object", properties, required, additionalProperties: false },
}));
