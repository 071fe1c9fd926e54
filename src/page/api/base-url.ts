/** The API of the server that the page came from, `…/v1/`, behind whatever prefix a proxy has put: this script lies in `…/page/`. */
export const baseUrl: URL = new URL("../v1/", import.meta.url);
