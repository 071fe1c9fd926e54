import { getLlama } from "node-llama-cpp";
import { BatchGate } from "../src/engines/llama/process/batch-gate.ts";
import type { WayOptions } from "./engine-ways.ts";

/** The library with all of its sequences advanced together, and nothing else: no queue, no pieces, no events. What can be had at best. */
export interface Lockstep {
  /** Greedy answers to all prompts, of so many tokens each. */
  generate(prompts: readonly string[], tokens: number): Promise<void>;
  close(): Promise<void>;
}

export async function openLockstep({ model: modelPath, slots, contextSize }: WayOptions): Promise<Lockstep> {
  const llama = await getLlama({ gpu: false, build: "never", maxThreads: 1, progressLogs: false });
  const model = await llama.loadModel({ modelPath });
  const gate = new BatchGate();
  const context = await model.createContext({
    sequences: slots,
    contextSize,
    batchSize: 512,
    threads: 1,
    batching: { dispatchSchedule: gate.schedule },
  });
  const sequences = Array.from({ length: slots }, () => context.getSequence());
  return {
    async generate(prompts, tokens) {
      for (const sequence of sequences) await sequence.adaptStateToTokens([], false);
      const answers = prompts.map((prompt, i) =>
        sequences[i]?.evaluate(model.tokenize(prompt, true), { temperature: 0, yieldEogToken: true }),
      );
      for (let step = 0; step < tokens; step++) {
        gate.close();
        const all = answers.map((answer) => answer?.next());
        await gate.settled();
        gate.open();
        await Promise.all(all);
      }
      for (const answer of answers) await answer?.return();
    },
    async close() {
      await context.dispose();
      await model.dispose();
    },
  };
}
