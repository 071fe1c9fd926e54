import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTruewire } from "../support/serve.ts";

const commands = ["systemd-notify", "python3"].filter((name) => spawnSync(name, ["--version"]).status !== 0);
for (const command of commands) console.log(`skipped: ${command} is not on the PATH`);

/** What systemd's end of the socket does, as far as it concerns us: it prints every datagram. Node has no such sockets. */
const receiver = `
import socket, sys
end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
end.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(end.recv(4096).decode().replace("\\n", " "), flush=True)
`;

describe.skipIf(commands.length > 0)("a service of systemd's", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-systemd-"));
  const socket = join(folder, "notify");
  let listening: ChildProcess;
  let heard = "";
  beforeAll(async () => {
    listening = spawn("python3", ["-c", receiver, socket], { stdio: ["ignore", "pipe", "inherit"] });
    listening.stdout?.setEncoding("utf8").on("data", (text: string) => (heard += text));
    await once(listening.stdout as NodeJS.ReadableStream, "data");
  });
  afterAll(() => {
    listening.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  test("tells when it is ready, when it reads its configuration again, and when it stops", async () => {
    const file = join(folder, "truewire.yaml");
    writeFileSync(join(folder, "program.ts"), "export default () => 'Hello';\n");
    writeFileSync(file, "port: 0\nmodels: [./program.ts]\n");
    const truewire = await startTruewire(["--config", file], { env: { NOTIFY_SOCKET: socket } });
    const said = (state: string, times = 1): Promise<void> =>
      expect.poll(() => heard.split(`${state}=1 MAINPID=${truewire.process.pid} `).length - 1).toBe(times);
    await said("READY");
    expect(heard).toContain(`STATUS=Serving 1 model on ${truewire.url}`);
    truewire.process.kill("SIGHUP");
    await said("RELOADING");
    await said("READY", 2);
    const over = truewire.stop();
    await said("STOPPING");
    expect(await over).toBe(0);
  });
});
