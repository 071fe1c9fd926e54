import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { Peer } from "./peer.ts";
import { PeerMessageReader, socketPeer, writeFrame } from "./socket-peer.ts";
import { peerPair } from "../../test/support/peer-pair.ts";

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
      const reader = new PeerMessageReader();
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
  const reader = new PeerMessageReader();
  const bytes = Buffer.concat(sent.map((one) => writeFrame(one)));
  const read = Array.from(bytes, (byte) => reader.read(Buffer.of(byte))).flat();
  expect(read).toEqual(sent);
});

test("what cannot be copied is refused where it is sent", () => {
  expect(() => writeFrame({ callback: () => {} })).toThrow(/could not be cloned/);
});

test("bytes that claim a message of 4 GB are none", () => {
  expect(() => new PeerMessageReader().read(Buffer.alloc(8, 0xff))).toThrow("Invalid frame length: 4294967295 bytes");
});

interface Pair {
  readonly primary: Peer;
  readonly worker: Peer;
  end(): void;
}

async function socketPair(): Promise<Pair> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [far] = (await once(server, "connection")) as [Socket];
  onTestFinished(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return { primary: socketPeer(near), worker: socketPeer(far), end: () => void near.destroy() };
}

test("bytes that are no message end the connection", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [far] = (await once(server, "connection")) as [Socket];
  onTestFinished(() => void server.close());
  const peer = socketPeer(near);
  const waiting = peer.request("anything", null);
  far.write(Buffer.alloc(8, 0xff));
  await expect(waiting).rejects.toThrow("has ended");
  await peer.closed;
});

const kinds: readonly (readonly [string, () => Pair | Promise<Pair>])[] = [
  ["in memory", peerPair],
  ["over a socket", socketPair],
];

for (const [kind, open] of kinds) {
  test(`${kind}: requests are answered, and failures keep their message`, async () => {
    const { primary, worker } = await open();
    primary.onRequest("double", (body) => Number(body) * 2);
    primary.onRequest("fail", async () => {
      throw new Error("no such thing");
    });
    expect(await Promise.all([1, 2, 3].map((number) => worker.request("double", number)))).toEqual([2, 4, 6]);
    await expect(worker.request("fail", null)).rejects.toThrow("no such thing");
    await expect(worker.request("else", null)).rejects.toThrow("There is no handler for else.");
  });

  test(`${kind}: notifications arrive in order with requests, as copies of the time of sending`, async () => {
    const { primary, worker } = await open();
    const heard: unknown[] = [];
    worker.onNotification("count", (body) => heard.push(body));
    worker.onRequest("heard", () => heard.length);
    const counter = { at: 0 };
    for (let turn = 0; turn < 500; turn++) {
      primary.notify("count", counter);
      counter.at++;
    }
    expect(await primary.request("heard", null)).toBe(500);
    expect(heard).toEqual(Array.from({ length: 500 }, (_, at) => ({ at })));
  });

  test(`${kind}: bytes and an answer that cannot be copied`, async () => {
    const { primary, worker } = await open();
    worker.onRequest("echo", (body) => body);
    worker.onRequest("function", () => () => {});
    const image = new Uint8Array(300_000).map((_, at) => at % 251);
    const echoed = (await primary.request("echo", { image })) as { image: Uint8Array };
    expect(Buffer.compare(echoed.image, image)).toBe(0);
    await expect(primary.request("function", null)).rejects.toThrow(/could not be cloned/);
    expect(() => primary.notify("any", () => {})).toThrow(/could not be cloned/);
  });

  test(`${kind}: what waits when the connection ends fails, as does what is asked later`, async () => {
    const { primary, worker, end } = await open();
    worker.onRequest("never", () => new Promise(() => {}));
    const waiting = primary.request("never", null);
    await expect(primary.request("other", null)).rejects.toThrow("There is no handler for other.");
    end();
    await expect(waiting).rejects.toThrow("The connection between the processes of the server has ended.");
    await Promise.all([primary.closed, worker.closed]);
    await expect(worker.request("never", null)).rejects.toThrow("has ended");
    worker.notify("any", 1);
  });
}
