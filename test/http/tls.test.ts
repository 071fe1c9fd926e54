import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { once } from "node:events";
import { connect as connectPlain } from "node:net";
import { Agent, fetch } from "undici";
import { afterAll, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireConfig } from "../../src/serve/config/schema.ts";
import { selfSigned } from "../support/certificate.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { runTruewire, startTruewire } from "../support/serve.ts";
import { waitMs } from "../support/hang.ts";

const first = selfSigned("first");
const second = selfSigned("second");

describe.skipIf(!first || !second)("a server with a certificate of its own", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-tls-"));
  const tlsCert = join(folder, "cert.pem");
  const tlsKey = join(folder, "key.pem");
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const use = (certificate: typeof first): void => {
    writeFileSync(tlsCert, certificate?.cert ?? "");
    writeFileSync(tlsKey, certificate?.key ?? "");
  };
  const trusting = (certificate: typeof first): Agent =>
    new Agent({ connect: { ca: certificate?.cert ?? "", timeout: waitMs } });
  /** The name in the certificate that a new connection is shown. */
  const shown = (url: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", rejectUnauthorized: false }, () => {
        resolve(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      });
      socket.on("error", reject);
    });

  test("answers by HTTPS, streams included, and changes the certificate while a stream runs", async () => {
    use(first);
    let go: () => void = () => {};
    const waiting = new Promise<void>((resolve) => (go = resolve));
    const engine = new ScriptedEngine(async function* () {
      const [begin, ...rest] = answer(["Hello", " world"]);
      if (begin) yield begin;
      await waiting;
      yield* rest;
    });
    const config: TruewireConfig = {
      port: 0,
      logLevel: "silent",
      tlsCert,
      tlsKey,
      models: [{ kind: "engine", engine }],
    };
    const server = await createServer(config);
    expect(server.url).toMatch(/^https:/);
    const dispatcher = trusting(first);
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "scripted", stream: true, messages: [{ role: "user", content: "x" }] }),
      dispatcher,
    });
    expect(response.status).toBe(200);
    use(second);
    await server.reload(config);
    expect(await shown(server.url)).toBe("second");
    go();
    expect((await response.text()).trim()).toMatch(/ world.*\[DONE\]$/s);

    // What is broken changes nothing.
    use({ cert: first?.cert ?? "", key: second?.key ?? "" });
    await expect(server.reload(config)).rejects.toThrow("are not a certificate and its private key in PEM form");
    expect(await shown(server.url)).toBe("second");
    await dispatcher.close();
    await server.close(0);
  });

  // Once, the handshake had destroyed the TLS connection before the answer was written, and the client saw an empty reply.
  test("an HTTP request to its port is told to use https://, and the connection is closed", async () => {
    use(first);
    const engine = new ScriptedEngine(() => answer(["Hi"]));
    const server = await createServer({
      port: 0,
      tlsCert,
      tlsKey,
      logLevel: "silent",
      models: [{ kind: "engine", engine }],
    });
    const response = await fetch(server.url.replace("https:", "http:") + "/v1/models");
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("this port serves HTTPS: use https:// in the URL.");
    const doctor = async (url: string): Promise<string> => (await runTruewire(["doctor", url])).stdout;
    expect(await doctor(server.url.replace("https:", "http:"))).toContain("use https:// in the URL");
    expect(await doctor(server.url)).toContain("NODE_EXTRA_CA_CERTS=ca.pem truewire doctor");
    const socket = connectPlain(Number(new URL(server.url).port), "127.0.0.1", () =>
      socket.write("GET / HTTP/1.1\r\n\r\n"),
    );
    socket.resume();
    await once(socket, "close");
    await server.close(0);
  });

  test("is not started with half of it, or with what is none", async () => {
    use(first);
    const models: TruewireConfig["models"] = [{ kind: "engine", engine: new ScriptedEngine(() => answer(["Hi"])) }];
    const start = (config: TruewireConfig): Promise<unknown> => createServer({ port: 0, models, ...config });
    await expect(start({ tlsCert })).rejects.toThrow("tlsCert: expected tlsKey next to it, a PEM file");
    await expect(start({ tlsKey })).rejects.toThrow("tlsKey: expected tlsCert next to it, a PEM file");
    await expect(start({ tlsCert, tlsKey: join(folder, "none.pem") })).rejects.toThrow(
      /tlsKey: cannot be read: ENOENT/,
    );
    writeFileSync(tlsKey, "nothing");
    await expect(start({ tlsCert, tlsKey })).rejects.toThrow("are not a certificate and its private key in PEM form");
  });

  test("the command line reads the files again on SIGHUP", async () => {
    use(first);
    const file = join(folder, "truewire.yaml");
    writeFileSync(join(folder, "program.ts"), "export default () => 'Hello';\n");
    writeFileSync(file, "tlsCert: cert.pem\ntlsKey: key.pem\nport: 0\nmodels: [./program.ts]\n");
    const truewire = await startTruewire(["--config", file]);
    expect(truewire.url).toMatch(/^https:/);
    expect(await shown(truewire.url)).toBe("first");
    use(second);
    truewire.process.kill("SIGHUP");
    await expect.poll(() => shown(truewire.url)).toBe("second");
    expect(await truewire.stop()).toBe(0);
  });
});
