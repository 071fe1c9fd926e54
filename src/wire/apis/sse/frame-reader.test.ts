import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RepairLog } from "../tolerant/repairs.ts";
import { SseFrameReader, FrameTooLongError } from "./frame-reader.ts";

interface Frame {
  readonly data: string;
  readonly event: string;
  readonly bare: boolean;
}

function read(pieces: Iterable<Uint8Array | string>): { frames: Frame[]; repairs: string[] } {
  const frames: Frame[] = [];
  const repairs = new RepairLog();
  const reader = new SseFrameReader({ frame: (data, event, bare) => frames.push({ data, event, bare }) }, repairs);
  for (const piece of pieces) reader.push(piece);
  reader.end();
  return { frames, repairs: repairs.list().map(({ id }) => id) };
}

const plain = (data: string): Frame => ({ data, event: "", bare: false });

describe("framing (what servers send, one case each)", () => {
  const cases: [title: string, input: string, frames: Frame[], repairs: string[]][] = [
    ["an exact stream", "data: a\n\ndata: [DONE]\n\n", [plain("a"), plain("[DONE]")], []],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", [plain("a"), plain("b")], ["line-ends"]],
    ["CR alone", "data: a\r\rdata: b\r\r", [plain("a"), plain("b")], ["line-ends"]],
    ["no space after the colon", "data:a\n\n", [plain("a")], ["no-space"]],
    ["only one space is taken", "data:  a\n\n", [plain(" a")], []],
    ["comments", ": OPENROUTER PROCESSING\n\ndata: a\n\n:ping\n\n", [plain("a")], ["comment"]],
    ["an event name", "event: error\ndata: a\n\n", [{ data: "a", event: "error", bare: false }], ["event-name"]],
    // A name was kept for the next data, however many blank lines came between: a chunk after `event: ping` was dropped as a ping. Each event
    // of the tests that had a name had data, too.
    ["an event name without data", "event: ping\n\ndata: a\n\n", [plain("a")], ["event-name"]],
    [
      "an error's name without data",
      "event: error\n\ndata: a\n\n",
      [{ data: "", event: "error", bare: false }, plain("a")],
      ["event-name"],
    ],
    [
      "an event name before bare JSON",
      'event: error\n{"a":1}\n\ndata: a\n\n',
      [{ data: '{"a":1}', event: "error", bare: true }, plain("a")],
      ["event-name"],
    ],
    ["id and retry", "id: 7\nretry: 3\ndata: a\n\n", [plain("a")], ["unknown-field"]],
    ["a byte order mark", "\uFEFFdata: a\n\n", [plain("a")], ["bom"]],
    ["a bare JSON line", '{"a":1}\n\n', [{ data: '{"a":1}', event: "", bare: true }], []],
    ["a bare JSON line without any end", '{"a":1}', [{ data: '{"a":1}', event: "", bare: true }], []],
    ["data over several lines", 'data: {"a":\ndata: 1}\n\n', [plain('{"a":\n1}')], []],
    [
      "no blank lines",
      'data: {"a":1}\ndata: {"a":2}\ndata: [DONE]\n',
      [plain('{"a":1}'), plain('{"a":2}'), plain("[DONE]")],
      ["no-blank-line"],
    ],
    ["a last event without a line end", "data: a", [plain("a")], ["no-blank-line"]],
    ["a pretty-printed body", '{\n  "a": 1\n}\n', [{ data: '{\n  "a": 1\n}', event: "", bare: true }], []],
    ["a page", "<html>\n\n<p>no</p>\n</html>\n", [{ data: "<html>\n\n<p>no</p>\n</html>", event: "", bare: true }], []],
    ["an error line of old llama.cpp", 'error: {"m":1}\n\n', [{ data: '{"m":1}', event: "error", bare: false }], []],
    ["an indented field", "  data: a\n\n", [plain("a")], ["unknown-field"]],
    ["data without a colon", "data\n\n", [plain("")], []],
    [
      "words before the stream",
      "hello there\ndata: a\n\n",
      [{ data: "hello there", event: "", bare: true }, plain("a")],
      [],
    ],
  ];
  test.each(cases)("%s", (_, input, frames, repairs) => {
    expect(read([input])).toEqual({ frames, repairs });
  });

  test.each(cases)("%s, byte by byte", (_, input, frames) => {
    const bytes = new TextEncoder().encode(input);
    expect(read(Array.from(bytes, (_byte, i) => bytes.slice(i, i + 1))).frames).toEqual(frames);
  });
});

test("a stream reads the same however its bytes are cut, inside characters and between CR and LF too", () => {
  const line = fc.constantFrom(
    'data: {"t":"héllo 😀"}',
    "data:[DONE]",
    ": ping",
    "event: x",
    "",
    "",
    '{"bare":"日本"}',
    "data: two words",
    "<p>",
    "}",
  );
  const ends = fc.constantFrom("\n", "\r\n", "\r");
  fc.assert(
    fc.property(
      fc.array(fc.tuple(line, ends), { maxLength: 12 }),
      fc.array(fc.nat(200), { maxLength: 8 }),
      (lines, cuts) => {
        const bytes = new TextEncoder().encode(lines.map(([text, end]) => text + end).join(""));
        const places = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((end, i) => bytes.slice(places[i], end));
        expect(read(pieces)).toEqual(read([bytes]));
      },
    ),
  );
});

test("a line of more than 64 kB is one event", () => {
  const long = "x".repeat(300_000);
  const text = `data: ${long}\n\n`;
  const pieces = Array.from({ length: Math.ceil(text.length / 1000) }, (_, i) => text.slice(i * 1000, (i + 1) * 1000));
  expect(read(pieces).frames).toEqual([plain(long)]);
});

test.each([
  ["one line without an end", "data: xxxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxx"],
  ["one event of many lines", "data: a\n", "data: xxxxxxxxxxxxxxxx\n"],
  ["a page without an end", "<html>\n", "xxxxxxxxxxxxxxxx\n"],
])("%s stops at the limit with a typed error", (_, first, more) => {
  const reader = new SseFrameReader({ frame: () => {} }, new RepairLog(), 1000);
  reader.push(first);
  expect(() => {
    for (let i = 0; i < 100; i++) reader.push(more);
  }).toThrow(FrameTooLongError);
});

describe("where a repair was made", () => {
  const lines = ["\uFEFF", ": ping\r\n", "\n", "data:{}\n", "\n", "id: 7\n", "data: a\n", "\n", "data: {}"];
  const input = lines.join("");

  /** Each kind of repair with the line at its place. */
  function places(pieces: Iterable<string>): string[] {
    const repairs = new RepairLog();
    const kept = repairs.keepPlaces();
    const reader = new SseFrameReader({ frame: () => repairs.note("keep-alive") }, repairs);
    for (const piece of pieces) reader.push(piece);
    reader.end();
    expect(repairs.at).toBe(input.length);
    return kept.map(({ id, at }) => `${id} ${JSON.stringify(input.slice(at).split(/\r?\n/)[0])}`);
  }

  test("is the beginning of the frame, however the input is cut", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(input.length)), (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), input.length];
        const pieces = edges.slice(1).map((end, at) => input.slice(edges[at], end));
        expect(places(pieces)).toEqual([
          'bom "\uFEFF: ping"',
          'line-ends ": ping"',
          'comment ": ping"',
          'no-space "data:{}"',
          'keep-alive "data:{}"',
          'unknown-field "id: 7"',
          'keep-alive "data: a"',
          'no-blank-line "data: {}"',
          'keep-alive "data: {}"',
        ]);
      }),
    );
  });

  test("is told to nobody who does not ask", () => {
    const repairs = new RepairLog();
    const reader = new SseFrameReader({ frame() {} }, repairs);
    reader.push(input);
    expect(repairs.keepsPlaces).toBe(false);
    expect(repairs.total).toBeGreaterThan(0);
  });
});
