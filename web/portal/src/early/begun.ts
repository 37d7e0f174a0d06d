// What `start.js` has asked for while this script was on the way.

declare global {
  var kubecastBegun: Map<string, Promise<Response | undefined>> | undefined;
}

/** The answer to a path of the gateway, if it was asked for early; undefined: it was not, or there is none. Each is given once, since later it would be old. */
export async function begun(path: string): Promise<Response | undefined> {
  const answer = globalThis.kubecastBegun?.get(path);
  globalThis.kubecastBegun?.delete(path);
  return answer;
}
