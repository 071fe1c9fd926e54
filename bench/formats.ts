// Reads calls with arguments of 1 kB, 100 kB and 10 MB, whole, character by character and in chunks of four characters, once per family
// and codec. It measures CPU time, which a busy machine does not change. No parser may be quadratic: the time per character stays within a factor of two from 1 kB to 10 MB.
import { formatNamed } from "../src/text/formats/known.ts";
import { TextReader } from "../src/text/formats/text-reader.ts";

const sentence = 'The quick brown fox jumps over the lazy dog; 12 of 34 were <b>bold</b>, some said \\"no\\".\\n';
const plainSentence = "The quick brown fox jumps over the lazy dog; 12 of 34 were <b>bold</b>, some said no.\n";

interface Case {
  readonly name: string;
  readonly format: string;
  readonly text: (filling: string) => string;
  /** The filling has no JSON escapes. */
  readonly plain?: boolean;
}

const cases: readonly Case[] = [
  {
    name: "object",
    format: "hermes",
    text: (a) => `<tool_call>\n{"name": "f", "arguments": {"a": "${a}"}}\n</tool_call>`,
  },
  {
    name: "object, array",
    format: "command-r7b",
    text: (a) => `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"a": "${a}"}}]<|END_ACTION|>`,
  },
  {
    name: "object, bare",
    format: "llama3-json",
    text: (a) => `{"name": "f", "parameters": {"a": "${a}"}}`,
  },
  {
    name: "named, json",
    format: "deepseek-v3.1",
    text: (a) =>
      `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": "${a}"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  },
  {
    name: "named, loose",
    format: "gemma4",
    text: (a) => `<|tool_call>call:f{a:<|"|>${a}<|"|>}<tool_call|>`,
    plain: true,
  },
  {
    name: "named, kwargs",
    format: "lfm2",
    text: (a) => `<|tool_call_start|>[f(a="${a}")]<|tool_call_end|>`,
  },
  {
    name: "named, tagged",
    format: "qwen3-coder",
    text: (a) => `<tool_call>\n<function=f>\n<parameter=a>\n${a}\n</parameter>\n</function>\n</tool_call>`,
    plain: true,
  },
  {
    name: "named, tagged pairs",
    format: "glm-4.5",
    text: (a) => `<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>${a}</arg_value>\n</tool_call>`,
    plain: true,
  },
  {
    name: "routed, json",
    format: "gpt-oss",
    text: (a) => `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": "${a}"}<|call|>`,
  },
  { name: "reasoning", format: "hermes", text: (a) => `<think>\n${a}</think>\n\nok`, plain: true },
  { name: "visible text", format: "hermes", text: (a) => a, plain: true },
];

const sizes = [1_000, 100_000, 10_000_000];
const chunkings = [
  ["whole", 0],
  ["1 character", 1],
  ["4 characters", 4],
] as const;

/** Reads a text in chunks of this many characters, 0: whole. Gives seconds of CPU, of the best of several runs for short texts. */
function time(format: string, text: string, chunk: number): number {
  const description = formatNamed(format);
  if (!description) throw new Error(`no format ${format}`);
  const runs = Math.max(1, Math.min(2_000, Math.round(500_000 / text.length)));
  // The best of them: on a busy machine, the others measure how busy it was.
  const rounds = text.length > 1_000_000 && chunk > 0 ? 2 : 5;
  let best = Infinity;
  for (let round = 0; round < rounds; round++) {
    const begin = process.cpuUsage();
    let characters = 0;
    for (let run = 0; run < runs; run++) {
      const reader = new TextReader({ format: description, choice: 0, newCallId: () => "call_0" });
      if (chunk === 0) characters += reader.push(text).length;
      else for (let at = 0; at < text.length; at += chunk) characters += reader.push(text.slice(at, at + chunk)).length;
      characters += reader.end().length;
    }
    if (characters === 0) throw new Error(`${format}: nothing was read`);
    best = Math.min(best, microsecondsSince(begin) / 1e6 / runs);
  }
  return best;
}

/** CPU time, user's and system's together: how the kernel parts it between the two is an estimate where the time is short. */
function microsecondsSince(begin: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(begin);
  return user + system;
}

/** Whether half a second of CPU time since `begin` is not yet over. */
function warm(begin: NodeJS.CpuUsage): boolean {
  return microsecondsSince(begin) < 500_000;
}

function main(): void {
  console.log("family               chunks           1 kB        100 kB         10 MB   growth   10 MB");
  for (const { name, format, text, plain } of cases) {
    for (const [label, chunk] of chunkings) {
      const perCharacter = sizes.map((size) => {
        const filling = plain === true ? plainSentence : sentence;
        const whole = text(filling.repeat(Math.ceil(size / filling.length)));
        // First, unmeasured readings until the compiler, whose threads count as CPU time as well, is done with the code.
        if (size === sizes[0]) for (const begin = process.cpuUsage(); warm(begin);) time(format, whole, chunk);
        return (time(format, whole, chunk) / whole.length) * 1e9;
      });
      const [small = 0, , large = 0] = perCharacter;
      const rate =
        chunk === 4 ? `${(1e3 / (large * 4)).toFixed(2)} million chunks/s` : `${(1e3 / large).toFixed(1)} MB/s`;
      const columns = perCharacter.map((ns) => `${ns.toFixed(1)} ns`.padStart(14)).join("");
      console.log(`${name.padEnd(21)}${label.padEnd(13)}${columns}${(large / small).toFixed(2).padStart(9)}   ${rate}`);
    }
  }
}

main();
