import fc from "fast-check";
import { expect, test } from "vitest";
import type { AnswerReading } from "../../../wire/core/inspection.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import { Ring } from "./inspector.ts";
import { Mask } from "../mask.ts";
import { fileTexts } from "./text-tape.ts";
import { RequestRecord } from "../request-record.ts";
import { WatchedRequest } from "./watched-request.ts";

const text = fc.string({ minLength: 1, maxLength: 4000 });
/** Something that is told of a request. */
const act = fc.oneof(
  fc.record({ what: fc.constantFrom("came", "tells", "written", "prompt", "understood", "received"), text }),
  fc.record({ what: fc.constant("events"), text }),
  fc.record({ what: fc.constant("sent"), text }),
);

function watch(maxBytes: number): { ring: Ring<WatchedRequest>; next: () => WatchedRequest } {
  const ring = new Ring<WatchedRequest>(maxBytes);
  let number = 0;
  const next = (): WatchedRequest => {
    const held = { bytes: 0, grow: (bytes: number): void => void (held.bytes += bytes) };
    const watched = new WatchedRequest({
      id: `req_${++number}`,
      number,
      method: "POST",
      path: "/v1/chat/completions",
      headers: [["host", "localhost"]],
      facts: new RequestRecord(),
      mask: new Mask([]),
      limit: maxBytes / 16,
      grow: (bytes) => held.grow(bytes),
      changed() {},
    });
    const place = ring.add(watched);
    ring.grow(place, held.bytes);
    held.grow = (bytes) => ring.grow(place, bytes);
    return watched;
  };
  return { ring, next };
}

const reread = (): AnswerReading => ({ push: () => [], end: () => [], abandon: () => [], repairs: [] });

function tell(watched: WatchedRequest, what: string, text: string, answers: { received(text: string): void }[]): void {
  switch (what) {
    case "came":
      return watched.body(new TextEncoder().encode(text));
    case "tells":
      return watched.responseText(text);
    case "written":
      return watched.rawText(text.length % 20, text);
    case "prompt":
      return watched.prompt({ text, lengths: [text.length], control: [0], quotes: [] });
    case "understood":
      return watched.parsedRequest({ id: text } as unknown as GenerationRequest);
    case "events":
      return watched.events([{ type: "text-delta", choice: 0, text }]);
    case "sent":
      answers.push(watched.sent({ url: "http://h", headers: {}, body: text, adaptations: [], reread, isWhole: false }));
      return undefined;
    default:
      return answers.at(-1)?.received(text);
  }
}

test("one request never takes all of the memory", () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
      const { ring, next } = watch(64 * 1024);
      const watched = next();
      const answers: { received(text: string): void }[] = [];
      for (const { what, text } of acts) tell(watched, what, text, answers);
      fileTexts();
      expect([...ring.values()]).toEqual([watched]);
      expect(ring.bytes).toBeLessThanOrEqual(ring.maxBytes);
    }),
    { numRuns: 60 },
  );
});

test("a stream that is too long is kept with its beginning and its end", () => {
  const { next } = watch(1024 * 1024);
  const watched = next();
  for (let at = 0; at < 10_000; at++) watched.responseText(`data: ${at}\n\n`);
  const { chunks, left_out: leftOut } = watched.shown().response.body;
  expect(chunks[0]?.text).toBe("data: 0\n\n");
  expect(chunks.at(-1)?.text).toBe("data: 9999\n\n");
  expect(chunks.length + (leftOut?.chunks ?? 0)).toBe(10_000);
});

test("the summary of an ended request does not change with its record", () => {
  const { next } = watch(1024 * 1024);
  const watched = next();
  const record = new RequestRecord({ receivedAt: performance.now(), model: "m" });
  record.sent.status = 200;
  watched.ended("finished", record);
  record.asked.model = "other";
  expect(watched.summary()).toMatchObject({ model: "m", outcome: "finished", status: 200 });
});

test("of a whole answer that is too long, the beginning and the end are kept to the letter", () => {
  const { next } = watch(1024 * 1024);
  const watched = next();
  const answer = "😀é".repeat(100_000);
  watched.responseText(answer);
  const { chunks, left_out: leftOut } = watched.shown().response.body;
  const texts = chunks.map(({ text }) => text);
  const { after = 0, characters = 0 } = leftOut ?? {};
  const head = texts.slice(0, after).join("");
  const tail = texts.slice(after).join("");
  expect(head.length).toBeGreaterThan(4000);
  expect(tail.length).toBeGreaterThan(10_000);
  expect(answer.startsWith(head) && answer.endsWith(tail)).toBe(true);
  expect(head.length + characters + tail.length).toBe(answer.length);
});
