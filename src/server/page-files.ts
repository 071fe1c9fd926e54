/** One file of the page that browsers get. */
export interface PageFile {
  readonly contentType: string;
  readonly text: string;
  /** As the header has it, in its quotes. */
  readonly etag: string;
}

/** The page's files by their names; whoever starts the server has read them. */
export type PageFiles = ReadonlyMap<string, PageFile>;
