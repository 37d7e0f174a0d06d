// Where the page stands. Its gateway stands there, too; and whatever browsers keep by origin is of all that shares the host.

/**
 * What comes before a path of the gateway: as `/tools/kubecast`, or empty at the root of its host. It begins with one slash: two
 * would make another host of what follows, and a link that a proxy lets through could choose it.
 */
export const baseOf = (pathname: string): string => {
  const path = pathname.replace(/^\/+/, '/');
  return path.startsWith('/') ? path.slice(0, path.lastIndexOf('/')) : '';
};

export const base = baseOf(location.pathname);

/** A name, among those that all pages of an origin share, for the pages of one gateway only. */
export const ownName = (name: string, at = base): string => (at === '' ? name : `${name}@${at}`);
