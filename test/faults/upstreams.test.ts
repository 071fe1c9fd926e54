import { createServer as createHttpsServer } from "node:https";
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { selfSigned } from "../support/certificate.ts";
import { freePort } from "../support/redis-server.ts";
import { until } from "../support/scripted-engine.ts";
import { bodyOf, event, role, say, startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";
import { fault } from "./fault.ts";
import { outcome } from "./outcome.ts";
import { afterwards, ask, newFolder, serve } from "./support.ts";

async function upstream(...args: Parameters<typeof startScripted>): Promise<ScriptedServer> {
  const server = await startScripted(...args);
  afterwards(server.close);
  return server;
}

/** A configuration of one upstream. */
function configured(entry: string): string[] {
  const file = join(newFolder(), "truewire.yaml");
  writeFileSync(file, `port: 0\nmodels:\n  - { kind: upstream, ${entry} }\n`);
  return ["--config", file];
}

const stream = { stream: true };
const hello = role + event({ content: "Hello" });

fault("an upstream is down when the server starts", async () => {
  const port = await freePort();
  const server = await serve(configured(`name: away, url: "http://127.0.0.1:${port}/v1"`));
  const refused = await outcome(ask(server.url, "m", "Hi"));
  await upstream((response, body) => say(response, body, "Hello"), port);
  await until(async () => (await outcome(ask(server.url, "m", "Hi"))) === "200", "it is taken in");
  return { clients: [refused], log: server.stderr };
});

fault("an upstream dies before it answers, on every attempt", async () => {
  let isDown = true;
  const source = await upstream((response, body) => (isDown ? void response.destroy() : say(response, body, "Hello")));
  const server = await serve([source.url]);
  const refused = await outcome(ask(server.url, "m", "Hi", stream));
  isDown = false;
  await until(async () => (await outcome(ask(server.url, "m", "Hi"))) === "200", "it is asked again");
  return { clients: [refused], log: server.stderr };
});

fault("an upstream dies in the middle of an answer", async () => {
  const source = await upstream((response, body) => {
    response.writeHead(200, { "content-type": body["stream"] === true ? "text/event-stream" : "application/json" });
    response.write(body["stream"] === true ? hello : bodyOf("Hello").slice(0, 50));
    setTimeout(() => response.destroy(), 50);
  });
  const server = await serve(configured(`url: "${source.url}", retries: 0`));
  const streamed = await outcome(ask(server.url, "m", "Hi", stream));
  const whole = await outcome(ask(server.url, "m", "Hi"));
  return { clients: [`a stream ${streamed}`, `without a stream ${whole}`], log: server.stderr };
});

fault("an upstream hangs before its first event", async () => {
  const source = await upstream((response) => response.writeHead(200).flushHeaders());
  const server = await serve(configured(`url: "${source.url}", retries: 0, timeouts: { firstEvent: 300ms }`));
  return { clients: [await outcome(ask(server.url, "m", "Hi", stream))], log: server.stderr };
});

fault("an upstream hangs in the middle of an answer", async () => {
  const source = await upstream((response) => response.write(hello));
  const server = await serve(configured(`url: "${source.url}", timeouts: { idle: 300ms }`));
  return { clients: [await outcome(ask(server.url, "m", "Hi", stream))], log: server.stderr };
});

fault("an upstream answers 500 once, or for long", async () => {
  let broken = 1;
  const source = await upstream((response, body) => {
    if (broken-- > 0) response.writeHead(500).end("Internal Server Error");
    else say(response, body, "Hello");
  });
  const server = await serve([source.url]);
  const once = await outcome(ask(server.url, "m", "Hi", stream));
  broken = 3;
  return {
    clients: [`once ${once}`, `for long ${await outcome(ask(server.url, "m", "Hi", stream))}`],
    log: server.stderr,
  };
});

fault("an upstream says that it is overloaded, 429 with a long `Retry-After`", async () => {
  const source = await upstream((response) =>
    response.writeHead(429, { "retry-after": "120" }).end('{"error":{"message":"slow down"}}'),
  );
  const server = await serve([source.url]);
  return { clients: [await outcome(ask(server.url, "m", "Hi", stream))], log: server.stderr };
});

fault("one of two URLs of an upstream dies", async () => {
  const [one, other] = [
    await upstream((response, body) => say(response, body, "Hello")),
    await upstream((response, body) => say(response, body, "Hello")),
  ];
  const server = await serve(configured(`url: ["${one.url}", "${other.url}"]`));
  await one.close();
  const [streams, wholes] = [new Set<string>(), new Set<string>()];
  for (let i = 0; i < 10; i++) {
    streams.add(await outcome(ask(server.url, "m", "Hi", stream)));
    wholes.add(await outcome(ask(server.url, "m", "Hi")));
  }
  return {
    clients: [`every stream ${[...streams].join(" or ")}`, `every whole answer ${[...wholes].join(" or ")}`],
    log: server.stderr,
  };
});

fault("an upstream ends a stream without saying why", async () => {
  const source = await upstream((response) => void response.end(hello));
  const server = await serve([source.url]);
  return { clients: [await outcome(ask(server.url, "m", "Hi", stream))], log: server.stderr };
});

const [good, expired] = [selfSigned("localhost"), selfSigned("localhost", -1)];

fault(
  "the certificate of an upstream expires",
  async () => {
    const folder = newFolder();
    const ca = join(folder, "ca.pem");
    writeFileSync(ca, `${good?.cert ?? ""}${expired?.cert ?? ""}`);
    const source = createHttpsServer({ cert: good?.cert ?? "", key: good?.key ?? "" }, (request, response) => {
      response.setHeader("connection", "close");
      if (request.method === "GET") response.end('{"object":"list","data":[{"id":"m","object":"model"}]}');
      else response.end(bodyOf("Hello"));
    });
    await new Promise<void>((resolve) => source.listen(0, "127.0.0.1", resolve));
    afterwards(() => source.close());
    const { port } = source.address() as AddressInfo;
    const server = await serve(configured(`url: "https://127.0.0.1:${port}/v1", tls: { ca: "${ca}" }`));
    const before = await outcome(ask(server.url, "m", "Hi"));
    source.setSecureContext({ cert: expired?.cert ?? "", key: expired?.key ?? "" });
    const refused = await outcome(ask(server.url, "m", "Hi"));
    source.setSecureContext({ cert: good?.cert ?? "", key: good?.key ?? "" });
    await until(async () => (await outcome(ask(server.url, "m", "Hi"))) === "200", "it is trusted again");
    return { clients: [`before ${before}`, `then ${refused}`], log: server.stderr };
  },
  good !== null && expired !== null,
);

fault("an upstream sends what is no answer", async () => {
  const source = await upstream(
    (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<html>Bad gateway</html>"),
  );
  const server = await serve([source.url]);
  const streamed = await outcome(ask(server.url, "m", "Hi", stream));
  return {
    clients: [`a stream ${streamed}`, `without a stream ${await outcome(ask(server.url, "m", "Hi"))}`],
    log: server.stderr,
  };
});

fault("a client leaves in the middle of an answer", async () => {
  const source = await upstream((response) => response.write(hello));
  const server = await serve([source.url]);
  const leaving = new AbortController();
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], stream: true }),
    signal: leaving.signal,
  });
  await response.body?.getReader().read();
  leaving.abort();
  await until(() => source.open() === 0, "the upstream's request is ended");
  await until(() => server.stderr().includes("cancelled by client"), "it is logged");
  return { clients: ["no one reads"], log: server.stderr };
});
