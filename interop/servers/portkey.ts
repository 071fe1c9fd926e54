import { createServer, request } from "node:http";
import { freePort, nodePackages, startServer } from "../place.ts";
import type { RunningProcess } from "../place.ts";
import type { RealServer } from "./server.ts";

/** With @hono/node-server 1.19, which the gateway gets today, every stream and list of models is answered with "immutable" and status 500. */
const packages = nodePackages("portkey", { "@hono/node-server": "1.11.0" });
const name = "@portkey-ai/gateway";

export function startPortkey(port: number): Promise<RunningProcess> {
  const ready = `http://127.0.0.1:${port}/`;
  return startServer(packages.program("gateway"), [`--port=${port}`, "--headless"], { ready, log: "portkey.log" });
}

/** Returns the headers of a request to Portkey's gateway that name the server with the API of OpenAI, by its base URL with `/v1`. */
export function portkeyHeaders(base: string): Readonly<Record<string, string>> {
  return { "x-portkey-provider": "openai", "x-portkey-custom-host": base };
}

/**
 * Portkey's gateway has no configuration of its own: headers of each request name what it asks. A proxy in front of it adds them, so that it has
 * an address like other servers.
 */
export const portkey: RealServer = {
  id: "portkey",
  name: "Portkey",
  from: `npm ${name}`,
  over: "demo",
  isQuick: true,
  apis: ["chat", "responses", "messages"],
  version: () => packages.version(name),
  install: () => packages.install(`${name}@1.15.2`),
  async start(port, upstream) {
    if (!upstream) throw new Error("Portkey serves the model of another server.");
    const { url: base, model, contextSize } = upstream;
    const own = await freePort();
    const running = await startPortkey(own);
    const headers = portkeyHeaders(`${base}/v1`);
    const proxy = createServer((asked, answer) => {
      const { method, url: path, headers: given } = asked;
      const options = { host: "127.0.0.1", port: own, method, path, headers: { ...given, ...headers } };
      const sent = request(options, (response) => {
        answer.writeHead(response.statusCode ?? 502, response.headers);
        response.on("error", () => answer.destroy()).pipe(answer);
      });
      sent.on("error", () => answer.destroy());
      answer.on("close", () => sent.destroy());
      asked.pipe(sent);
    });
    await new Promise<void>((settle) => proxy.listen(port, "127.0.0.1", settle));
    return {
      url: `http://127.0.0.1:${port}`,
      model,
      contextSize,
      async stop(signal) {
        await running.stop(signal);
        proxy.closeAllConnections();
        proxy.close();
      },
    };
  },
};
