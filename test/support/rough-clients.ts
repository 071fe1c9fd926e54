import { connect } from "node:net";
import type { Socket } from "node:net";

/** What a client sends, whether it reads, and how it goes. */
interface RoughVisit {
  readonly sends: string;
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
];

/** Every way to come, to read or not, and to leave. `members`: of the chat requests, beside `stream`. */
function roughVisits(members: Readonly<Record<string, unknown>>): RoughVisit[] {
  const request = (stream: boolean): string => {
    const body = JSON.stringify({ ...members, stream });
    const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  };
  const texts = [
    request(true),
    request(true).repeat(4),
    request(false) + request(true) + request(true),
    request(true) + request(true).slice(0, -5),
    request(true).slice(0, 40),
  ];
  return texts.flatMap((sends) => [true, false].flatMap((reads) => ways.map((goes) => ({ sends, reads, goes }))));
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
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.on("connect", () => {
      socket.write(sends);
      if (reads) socket.resume();
      else socket.pause();
      setTimeout(() => goes(socket), at % 40);
    });
    await closed;
  };
  for (let at = 0; at < count; at += 40) {
    await Promise.all(Array.from({ length: Math.min(40, count - at) }, (_, next) => visit(at + next)));
  }
}
