import { expect, test } from "vitest";
import fc from "fast-check";
import { FrameReader, writeFrame } from "./frames.ts";

const message = fc.oneof(
  fc.object({ withBigInt: true, withTypedArray: true, withDate: true, withNullPrototype: false }),
  fc.string({ unit: "binary" }),
  fc.uint8Array(),
  fc.constant(undefined),
);

test("messages are the same however their bytes are cut", () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 6 }), fc.array(fc.nat({ max: 40 })), (messages, lengths) => {
      const bytes = Buffer.concat(messages.map((one) => writeFrame(one)));
      const reader = new FrameReader();
      const read: unknown[] = [];
      let at = 0;
      for (let turn = 0; at < bytes.length; turn++) {
        const length = lengths[turn % Math.max(1, lengths.length)] ?? bytes.length;
        read.push(...reader.read(bytes.subarray(at, at + Math.max(1, length))));
        at += Math.max(1, length);
      }
      expect(read).toEqual(messages);
    }),
  );
});

test("each byte by itself", () => {
  const sent = [{ text: "a" }, new Uint8Array([1, 2, 3]), "€"];
  const reader = new FrameReader();
  const bytes = Buffer.concat(sent.map((one) => writeFrame(one)));
  const read = Array.from(bytes, (byte) => reader.read(Buffer.of(byte))).flat();
  expect(read).toEqual(sent);
});

test("what cannot be copied is refused where it is sent", () => {
  expect(() => writeFrame({ callback: () => {} })).toThrow(/could not be cloned/);
});

test("bytes that claim a message of 4 GB are none", () => {
  expect(() => new FrameReader().read(Buffer.alloc(8, 0xff))).toThrow("A message of 4294967295 bytes is none.");
});
