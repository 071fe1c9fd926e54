// Runs one bench by its name:  npm run bench NAME [-- its options]
const benches: Readonly<Record<string, () => Promise<unknown>>> = {
  agents: () => import("./agents.ts"),
  attack: () => import("./attack/run.ts"),
  cancel: () => import("./cancel.ts"),
  demo: () => import("./demo.ts"),
  draft: () => import("./draft.ts"),
  engine: () => import("./engine.ts"),
  first: () => import("./first.ts"),
  formats: () => import("./formats.ts"),
  gateway: () => import("./gateway.ts"),
  images: () => import("./images.ts"),
  page: () => import("./page.ts"),
  replicas: () => import("./replicas.ts"),
  soak: () => import("./soak.ts"),
  speculation: () => import("./speculation.ts"),
  stall: () => import("./stall.ts"),
  start: () => import("./start.ts"),
  steer: () => import("./steer.ts"),
  store: () => import("./store.ts"),
  wire: () => import("./wire.ts"),
  workers: () => import("./workers.ts"),
};

const [name = ""] = process.argv.splice(2, 1);
const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
if (bench) {
  await bench();
} else {
  console.error(`usage: npm run bench ${Object.keys(benches).join("|")} [-- options]`);
  process.exitCode = 2;
}
