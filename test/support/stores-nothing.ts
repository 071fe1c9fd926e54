/** The settings with which several workers need no Redis. */
export const storesNothing = { store: { maxCount: 0 }, sessions: { memory: false } };
