import { once } from "node:events";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";
import { startTruewire } from "../test/support/serve.ts";

/**
 * Compares steering with cancelling and asking again, on a local model: the tokens of the prompt that are processed, and the time from the
 * client's decision to the first text of the new answer. A client that cancels leaves its connection and sends the conversation, with the
 * text that it has received, on another one.
 *
 * A steered response finishes its current item, so `steer` includes the rest of the first message; "after its end" does not.
 *
 *     npm run bench steer -- [MODEL.gguf] [--rounds 5] [--prompt 400] [--after 24] [--answer 64]
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    prompt: { type: "string", default: "400" },
    after: { type: "string", default: "24" },
    answer: { type: "string", default: "64" },
  },
});
const [model = "models/demo/demo.gguf"] = positionals;
const [rounds, words, after, answer] = [values.rounds, values.prompt, values.after, values.answer].map(Number) as [
  number,
  number,
  number,
  number,
];

interface Event {
  readonly type: string;
  readonly delta?: string;
  readonly response?: {
    readonly id: string;
    readonly usage?: {
      readonly input_tokens: number;
      readonly input_tokens_details: { readonly cached_tokens: number };
    };
  };
}

interface Measured {
  readonly promptTokens: number;
  readonly processed: number;
  readonly firstTextMs: number;
  /** From the end of the first response; NaN if the client did not wait for it. */
  readonly afterEndMs: number;
}

const server = await startTruewire([model, "--gpu", "off"]);
const url = `${server.url.replace("http", "ws")}/v1/responses`;

class Line {
  readonly #socket: WebSocket;
  readonly #events: Event[] = [];
  #wake: () => void = () => {};

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      this.#events.push(JSON.parse(data.toString()) as Event);
      this.#wake();
    });
  }

  static async open(): Promise<Line> {
    const socket = new WebSocket(url);
    await once(socket, "open");
    return new Line(socket);
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  async next(): Promise<Event> {
    while (this.#events.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#events.shift() as Event;
  }

  close(): void {
    this.#socket.terminate();
  }
}

const text = "The garden has tomatoes, beans, pumpkins and an old pear tree. ";
const change = "Answer in one short sentence.";

/** No two rounds begin alike, so that no round finds the prompt of another one in the cache. */
function request(round: string): Record<string, unknown> {
  const story = `Round ${round}. ${text.repeat(Math.ceil(words / text.split(" ").length))}`;
  const input = [{ type: "message", role: "user", content: `${story} Tell me about the garden.` }];
  return { type: "response.create", model: "demo", temperature: 0, max_output_tokens: answer, store: false, input };
}

/** Reads until some text of the first answer has come. */
async function begin(line: Line, round: string): Promise<{ readonly id: string; readonly said: string }> {
  line.send(request(round));
  let [id, said] = ["", ""];
  for (let count = 0; count < after;) {
    const { type, response, delta = "" } = await line.next();
    if (type === "response.created") id = response?.id ?? "";
    if (type === "response.completed" || type === "response.incomplete") throw new Error("The answer ended too early.");
    if (type === "error") throw new Error("The request was refused.");
    if (type === "response.output_text.delta") count++;
    said += type === "response.output_text.delta" ? delta : "";
  }
  return { id, said };
}

/** Reads the new answer. `begun`: when the client decided; `waits`: another response ends before. */
async function measure(line: Line, begun: number, waits: boolean): Promise<Measured> {
  let ended = waits ? 0 : Number.NaN;
  let first = 0;
  for (;;) {
    const { type, response } = await line.next();
    if (type === "error" || type === "response.failed") throw new Error("The request was refused.");
    const isEnd = type === "response.completed" || type === "response.incomplete";
    if (isEnd && ended === 0) ended = performance.now();
    else if (type === "response.output_text.delta" && ended !== 0) first ||= performance.now();
    else if (isEnd) {
      const { input_tokens: promptTokens = 0, input_tokens_details: details } = response?.usage ?? {};
      const processed = promptTokens - (details?.cached_tokens ?? 0);
      return { promptTokens, processed, firstTextMs: first - begun, afterEndMs: first - ended };
    }
  }
}

const ways: Readonly<Record<string, (round: string) => Promise<Measured>>> = {
  async steer(round) {
    const line = await Line.open();
    const { id } = await begin(line, round);
    const begun = performance.now();
    line.send({ type: "response.steer", previous_response_id: id, input: change });
    const measured = await measure(line, begun, true);
    line.close();
    return measured;
  },
  "cancel, whole conversation": (round) => askAgain(round, {}),
  "cancel, without the cache": (round) => askAgain(round, { cache_prompt: false }),
};

/** Leaves the connection, and sends the conversation with the text that it has received. */
async function askAgain(round: string, members: object): Promise<Measured> {
  const line = await Line.open();
  const { said } = await begin(line, round);
  const begun = performance.now();
  line.close();
  const again = await Line.open();
  const { input, ...rest } = request(round) as { input: readonly unknown[] };
  const next = [
    { type: "message", role: "assistant", content: said },
    { type: "message", role: "user", content: change },
  ];
  again.send({ ...rest, ...members, input: [...input, ...next] });
  const measured = await measure(again, begun, false);
  again.close();
  return measured;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

console.log(`${model}, ${rounds} rounds, medians; decided after ${after} deltas of at most ${answer} tokens`);
const table: Record<string, Record<string, number>> = {};
for (const [name, way] of Object.entries(ways)) {
  const all: Measured[] = [];
  for (let round = 0; round < rounds; round++) all.push(await way(`${name} ${round}`));
  table[name] = {
    "prompt tokens": median(all.map(({ promptTokens }) => promptTokens)),
    processed: median(all.map(({ processed }) => processed)),
    "first text, ms": Math.round(median(all.map(({ firstTextMs }) => firstTextMs))),
    "after its end, ms": Math.round(median(all.map(({ afterEndMs }) => afterEndMs))),
  };
}
console.table(table);
await server.stop();
