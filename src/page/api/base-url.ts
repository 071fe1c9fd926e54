/** URL of the API of the page's own server, `…/v1/`, including a prefix that a proxy adds: this script is in `…/page/`. */
export const baseUrl: URL = new URL("../v1/", import.meta.url);
