// Each address of the wire as openapi.yaml has it, and what the mock has of its parameters: served, refused with 501 and a sentence, or
// without an effect at the gateway, too. A test goes through openapi.yaml and finds out whether that is so.

/** What answers at an address. */
export type Part = 'objects' | 'document' | 'health' | 'review' | 'stream' | 'log' | 'logs' | 'history' | 'queues' | 'inbox' | 'clusters' | 'me' | 'session' | 'ticket' | 'none';

export interface Address {
  readonly part: Part;
  /** The parameters that have their effect. */
  readonly serves: readonly string[];
  /** By parameter, what is said of those that are refused; under the empty name, of the address as a whole. */
  readonly lacks?: Readonly<Record<string, string>>;
  /** By parameter, why those that are not refused have no effect. */
  readonly ignores?: Readonly<Record<string, string>>;
}

const positions = ['Last-Event-ID', 'lastEventId', 'last_event_id'];

const list: Address = {
  part: 'objects',
  serves: [
    ...['Accept', 'If-None-Match', 'labelSelector', 'fieldSelector', 'limit', 'continue', 'resourceVersion', 'resourceVersionMatch', 'sort', 'search', 'fields', 'countBy', 'offset', 'includeObject'],
    ...['sendInitialEvents', 'deltas', 'conflate', 'heartbeat', ...positions, 'watch', 'allowWatchBookmarks', 'timeoutSeconds'],
  ],
};
const object: Address = { part: 'objects', serves: ['Accept', 'If-None-Match', 'resourceVersion', 'fields', 'includeObject', 'Last-Event-ID', 'watch'] };
const document: Address = { part: 'document', serves: ['Accept', 'If-None-Match'] };
const health: Address = { part: 'health', serves: [] };
const history: Address = {
  part: 'history',
  serves: ['view', 'pod', 'state', 'owner', 'queue', 'uid', 'parent', 'cause', 'search', 'since', 'until', 'limit', 'continue', 'by', 'step'],
};
const queue: Address = { part: 'queues', serves: ['kind', 'limit', 'conflate'] };
const inbox: Address = { part: 'inbox', serves: [] };

const absent = (says: string): Address => ({ part: 'none', serves: [], lacks: { '': says } });
const logs: Address = { part: 'logs', serves: ['container', 'tailLines', 'sinceTime', 'sinceSeconds', 'search', 'labelSelector', 'fieldSelector', 'follow', 'view', 'from', 'limit', 'time', 'context', 'ignoreCase'] };
const podLog: Address = {
  part: 'log',
  serves: ['container', 'follow', 'previous', 'sinceSeconds', 'sinceTime', 'timestamps', 'tailLines', 'limitBytes'],
  lacks: { stream: 'The mock does not tell what was written to which stream.' },
  ignores: { pretty: 'A log is text.', insecureSkipTLSVerifyBackend: 'There is no node to ask.' },
};
const signIn = absent('The mock has no identity provider: sign in with one of its tokens.');

/** By method and path. The first one that matches is meant. */
export const contract: Readonly<Record<string, Address>> = {
  'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews': { part: 'review', serves: [] },
  'POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews': { part: 'review', serves: [] },
  'POST /apis/authentication.k8s.io/v1/selfsubjectreviews': { part: 'review', serves: [] },
  'GET /api/{version}/namespaces/{namespace}/pods/{name}/log': podLog,
  'GET /api/{version}/namespaces/{namespace}/{resource}': list,
  'GET /api/{version}/namespaces/{namespace}/{resource}/{name}': object,
  'GET /api/{version}/{resource}': list,
  'GET /api/{version}/{resource}/{name}': object,
  'GET /apis/{group}/{version}/namespaces/{namespace}/{resource}': list,
  'GET /apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}': object,
  'GET /apis/{group}/{version}/{resource}': list,
  'GET /apis/{group}/{version}/{resource}/{name}': object,
  'GET /api': document,
  'GET /api/{version}': document,
  'GET /apis': document,
  'GET /apis/{group}': document,
  'GET /apis/{group}/{version}': document,
  'GET /version': document,
  'GET /openapi/v2': absent('The mock has no schemas in this form: there is /openapi/v3.'),
  'GET /openapi/v3': document,
  'GET /openapi/v3/{path}': { ...document, ignores: { hash: 'Nothing is kept for ever, since another object may have more.' } },
  'GET /healthz': health,
  'GET /livez': health,
  'GET /readyz': health,
  'GET /stream': { part: 'stream', serves: ['watches', 'labelSelector', 'fieldSelector', 'search', 'resourceVersion', 'sendInitialEvents', 'fields', 'deltas', 'conflate', 'heartbeat', ...positions] },
  'GET /history/apis/{group}/{version}/{resource}': history,
  'GET /history/apis/{group}/{version}/namespaces/{namespace}/{resource}': history,
  'GET /history/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}': history,
  'GET /queues': { part: 'queues', serves: ['conflate'] },
  'GET /queues/{name}': queue,
  'GET /queues/{namespace}/{name}': { ...queue, serves: ['limit', 'conflate'] },
  'GET /notifications': { part: 'inbox', serves: ['unread', 'limit', 'continue'] },
  'POST /notifications/read': inbox,
  'GET /notifications/settings': inbox,
  'PUT /notifications/settings': inbox,
  'GET /logs/api/v1/namespaces/{namespace}/pods/{name}': logs,
  'GET /logs/api/v1/namespaces/{namespace}/pods': logs,
  'GET /logs/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}': logs,
  'GET /clusters': { part: 'clusters', serves: [] },
  'GET /auth/me': { part: 'me', serves: ['kinds'] },
  'GET /auth/session': { part: 'session', serves: [] },
  'POST /auth/session': { part: 'session', serves: [] },
  'POST /auth/logout': { part: 'session', serves: [] },
  'POST /auth/ticket': { part: 'ticket', serves: [] },
  'GET /auth/login': signIn,
  'GET /auth/callback': signIn,
  'POST /auth/backchannel-logout': signIn,
  'GET /openapi.yaml': absent('The mock does not have the document with it.'),
};

/** Behind /history and /logs there may stand what is not in openapi.yaml: the core group, and all namespaces. */
const alsoThere: Readonly<Record<string, Address>> = {
  'GET /history/api/{version}/{resource}': history,
  'GET /history/api/{version}/namespaces/{namespace}/{resource}': history,
  'GET /history/api/{version}/namespaces/{namespace}/{resource}/{name}': history,
  'GET /logs/api/v1/pods': logs,
  'GET /logs/api/v1/namespaces/{namespace}/{resource}/{name}': logs,
};

const routes = Object.entries({ ...contract, ...alsoThere }).map(([route, address]) => {
  const [method = '', path = ''] = route.split(' ');
  const pattern = path.replaceAll(/[.]/g, '\\.').replaceAll(/\{path\}/g, '(?<path>.+)').replaceAll(/\{([a-z]+)\}/g, '(?<$1>[^/]+)');
  return { method, matches: new RegExp(`^${pattern}$`), address };
});

export interface Found {
  readonly address: Address;
  /** What stands in the path where the address has names in braces. */
  readonly named: Readonly<Record<string, string | undefined>>;
}

/** What is at a path; `other`: something that takes other methods. */
export function addressOf(method: string, path: string): Found | 'other' | undefined {
  let other = false;
  for (const route of routes) {
    const match = route.matches.exec(path);
    if (!match) continue;
    if (route.method === method) {
      try {
        return { address: route.address, named: Object.fromEntries(Object.entries(match.groups ?? {}).map(([name, text]) => [name, decodeURIComponent(text)])) };
      } catch {
        return undefined; // an escape that is none
      }
    }
    other = true;
  }
  return other ? 'other' : undefined;
}

/** The methods that a path takes, as the header `Allow` has them. */
export function methodsAt(path: string): string {
  const taken = new Set(routes.filter(({ matches }) => matches.test(path)).map(({ method }) => method));
  return [...(taken.has('GET') ? ['GET', 'HEAD'] : []), ...['POST', 'PUT'].filter((method) => taken.has(method)), 'OPTIONS'].join(', ');
}

/** Values that ask for nothing. */
const off = new Set(['', 'false', '0', 'All']);

/** What of a question is to be refused with 501, in a sentence. */
export function lackOf({ lacks = {} }: Address, parameters: URLSearchParams): string | undefined {
  if (lacks['']) return lacks[''];
  for (const [key, value] of parameters) if (lacks[key] !== undefined && !off.has(value)) return lacks[key];
  return undefined;
}

/** A path without the name of the mock's one cluster; undefined: it is of another one. */
export function inDefaultCluster(path: string): string | undefined {
  const [, before = '', cluster] = /^(\/history|\/logs)?\/clusters\/([^/]+)(?=\/)/.exec(path) ?? [];
  if (cluster === undefined) return path;
  return cluster === 'default' ? before + path.slice(`${before}/clusters/default`.length) : undefined;
}
