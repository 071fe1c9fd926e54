const mostInARow = 4;

/**
 * Whose turn it is: prompts or answers. They do not share a batch, since llama.cpp would split it into two passes anyway. Where few
 * answers run and many prompts wait, several pieces of prompts are read in a row: a batch pays only when it is full, and those who wait
 * for a first token are more than those who wait for the next.
 */
export class StepTurns {
  #promptsInARow = 0;

  next(prompting: number, answering: number): "prompts" | "answers" {
    const most = answering === 0 ? Number.POSITIVE_INFINITY : Math.min(mostInARow, Math.ceil(prompting / answering));
    if (prompting > 0 && this.#promptsInARow < most) {
      this.#promptsInARow++;
      return "prompts";
    }
    this.#promptsInARow = 0;
    return "answers";
  }
}
