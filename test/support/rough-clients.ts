import { connect } from "node:net";
import type { Socket } from "node:net";

/** What a client sends, whether it reads, and how it goes. */
interface RoughVisit {
  readonly sends: Buffer;
  readonly reads: boolean;
  readonly goes: (socket: Socket) => void;
}

const ways: readonly RoughVisit["goes"][] = [
  (socket) => socket.destroy(),
  (socket) => socket.resetAndDestroy(),
  (socket) => {
    socket.end();
    setTimeout(() => socket.destroy(), 20);
  },
  // Half-closed for as long as the server likes, within a bound.
  (socket) => {
    socket.end();
    setTimeout(() => socket.destroy(), 300).unref();
  },
  // Within the answer, where there is one that is read.
  (socket) => {
    socket.once("data", () => socket.destroy());
    setTimeout(() => socket.destroy(), 100);
  },
];

/** Every way to come, to read or not, and to leave. `members`: of the requests, beside `stream`. */
function roughVisits(members: Readonly<Record<string, unknown>>): RoughVisit[] {
  const request = (stream: boolean, more = ""): string => {
    const body = JSON.stringify({ ...members, stream });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${more}`;
    return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  };
  const headOf = (text: string): string => text.slice(0, text.indexOf("\r\n\r\n") + 4);
  const chunked = `${headOf(request(true)).replace(/Content-Length: \d+/, "Transfer-Encoding: chunked")}5\r\n{"mod`;
  const upgrade = [
    "GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket",
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  ].join("\r\n");
  const message = frame(JSON.stringify({ type: "response.create", model: members["model"], input: "x" }));
  const texts: readonly (string | Buffer)[] = [
    "",
    request(true).slice(0, 40),
    headOf(request(true)),
    headOf(request(true, "Expect: 100-continue\r\n")),
    request(true).slice(0, -5),
    chunked,
    request(true),
    request(false),
    request(true).repeat(4),
    request(false) + request(true) + request(true),
    request(true) + request(true).slice(0, -5),
    upgrade.slice(0, 80),
    upgrade,
    Buffer.concat([Buffer.from(upgrade), message]),
    Buffer.concat([Buffer.from(upgrade), message, message]),
    Buffer.concat([Buffer.from(upgrade), message.subarray(0, -5)]),
  ];
  return texts.flatMap((text) =>
    [true, false].flatMap((reads) => ways.map((goes) => ({ sends: Buffer.from(text), reads, goes }))),
  );
}

/** A message of a WebSocket's client, of 126 to 65,535 bytes or fewer than that. The mask of zeros leaves the text as it is. */
function frame(text: string): Buffer {
  const { length } = text;
  const size = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([0x81, ...size, 0, 0, 0, 0]), Buffer.from(text)]);
}

/** So many connections to a server, lost in every way, some at once. */
export async function loseConnections(
  url: string,
  count: number,
  members: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { hostname, port } = new URL(url);
  const visits = roughVisits(members);
  const visit = async (at: number): Promise<void> => {
    const { sends, reads, goes } = visits[at % visits.length] as RoughVisit;
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.on("connect", () => {
      socket.write(sends);
      if (reads) socket.resume();
      else socket.pause();
      setTimeout(() => goes(socket), at % 41);
    });
    await closed;
  };
  // Another follows as soon as one is lost, so that the ways mix.
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await visit(next++);
  };
  await Promise.all(Array.from({ length: 40 }, lane));
}
