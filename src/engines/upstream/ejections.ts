/** Whether a URL gets requests. `answers`: somebody answers there, if only with errors. */
export type UrlState = { readonly inService: true } | { readonly inService: false; readonly answers: boolean };

/** What several processes that ask the same URLs tell each other about them, so that each need not find it out, and one of them probes. */
export interface Ejections {
  /** Tells the others. A URL that stays out of service is told again with each probe. */
  tell(url: string, state: UrlState): void;
  /** Hears what the others tell, first of all what is out of service already. Returns what ends that. */
  listen(heard: (url: string, state: UrlState) => void): () => void;
}
