// An API server that a test scripts: it answers as much of discovery, get, list, watch and pod logs as the gateway asks, holds what it is
// told to hold, and has no controllers. For what a real control plane cannot be made to do at will: thousands of pods in any state, ends of
// last week, a progress bar that moves.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly uid?: string; readonly resourceVersion?: string; readonly [more: string]: unknown };
  readonly [more: string]: unknown;
}

interface Kind {
  readonly group: string;
  readonly version: string;
  readonly apiVersion: string;
  readonly base: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly objects: Map<string, ScriptedObject>;
  /** What changed, oldest first: the version, the watch event as a line, and the namespace. */
  readonly changes: (readonly [version: number, line: string, namespace: string])[];
  readonly watchers: Set<(line: string, namespace: string) => void>;
}

function kindOf(group: string, plural: string, kind: string, namespaced: boolean): Kind {
  const version = 'v1';
  const apiVersion = group ? `${group}/${version}` : version;
  return { group, version, apiVersion, base: group ? `/apis/${apiVersion}` : `/api/${version}`, plural, kind, namespaced, objects: new Map(), changes: [], watchers: new Set() };
}

const rbac = 'rbac.authorization.k8s.io';
const kinds = (): Kind[] => [
  kindOf('', 'namespaces', 'Namespace', false),
  kindOf('', 'nodes', 'Node', false),
  kindOf('', 'pods', 'Pod', true),
  kindOf('', 'events', 'Event', true),
  kindOf('batch', 'jobs', 'Job', true),
  kindOf(rbac, 'roles', 'Role', true),
  kindOf(rbac, 'clusterroles', 'ClusterRole', false),
  kindOf(rbac, 'rolebindings', 'RoleBinding', true),
  kindOf(rbac, 'clusterrolebindings', 'ClusterRoleBinding', false),
];

/** So many changes of a kind can be gone on from; a watch from before is told that it is too late. */
const keptChanges = 50_000;
const bookmarksEvery = 5_000;
const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

interface WrittenLog {
  readonly lines: string[];
  ended: boolean;
  readonly followers: Set<() => void>;
}

/** An object's time, `ago` milliseconds before now. */
export const time = (ago = 0): string => new Date(Date.now() - ago).toISOString().replace(/\.\d+Z$/, 'Z');

export class ScriptedApi {
  readonly #kinds = new Map(kinds().map((kind) => [kind.plural, kind]));
  readonly #logs = new Map<string, WrittenLog>();
  readonly #server: Server;
  #version = 1_000;
  /** Of all of them: no two objects have one uid, of whatever clusters. */
  static #uids = 0;

  static async start(): Promise<ScriptedApi> {
    const api = new ScriptedApi();
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.#server.requestTimeout = 0;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Makes an object, or replaces that of its name, whose uid and time of creation stay. */
  put(plural: string, object: ScriptedObject): ScriptedObject {
    const kind = this.#kind(plural);
    const { namespace = '', name } = object.metadata;
    const before = kind.objects.get(`${namespace}/${name}`);
    const uid = before?.metadata.uid ?? `00000000-0000-4000-8000-${String(++ScriptedApi.#uids).padStart(12, '0')}`;
    const creationTimestamp = before?.metadata.creationTimestamp ?? time();
    const made = { apiVersion: kind.apiVersion, kind: kind.kind, ...object, metadata: { uid, creationTimestamp, ...object.metadata, resourceVersion: String(++this.#version) } };
    kind.objects.set(`${namespace}/${name}`, made);
    this.#tell(kind, before ? 'MODIFIED' : 'ADDED', made);
    return made;
  }

  remove(plural: string, namespace: string, name: string): void {
    const kind = this.#kind(plural);
    const object = kind.objects.get(`${namespace}/${name}`);
    if (!object) throw new Error(`there is no ${plural} ${namespace}/${name}`);
    kind.objects.delete(`${namespace}/${name}`);
    this.#tell(kind, 'DELETED', { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } });
  }

  get(plural: string, namespace: string, name: string): ScriptedObject {
    const object = this.#kind(plural).objects.get(`${namespace}/${name}`);
    if (!object) throw new Error(`there is no ${plural} ${namespace}/${name}`);
    return object;
  }

  all(plural: string): readonly ScriptedObject[] {
    return [...this.#kind(plural).objects.values()];
  }

  /** A container writes these lines, now. */
  write(namespace: string, pod: string, container: string, ...lines: readonly string[]): void {
    const log = this.#log(namespace, pod, container);
    // To the nanosecond, and no two at once, as a container runtime stamps them.
    const now = new Date().toISOString().slice(0, -1);
    for (const line of lines) log.lines.push(`${now}${String(log.lines.length % 1_000_000).padStart(6, '0')}Z ${line}\n`);
    for (const follower of [...log.followers]) follower();
  }

  endLog(namespace: string, pod: string, container: string): void {
    const log = this.#log(namespace, pod, container);
    log.ended = true;
    for (const follower of [...log.followers]) follower();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #kind(plural: string): Kind {
    const kind = this.#kinds.get(plural);
    if (!kind) throw new Error(`the scripted API server has no ${plural}`);
    return kind;
  }

  #log(namespace: string, pod: string, container: string): WrittenLog {
    const key = `${namespace}/${pod}/${container}`;
    const log = this.#logs.get(key) ?? { lines: [], ended: false, followers: new Set() };
    this.#logs.set(key, log);
    return log;
  }

  #tell(kind: Kind, type: string, object: ScriptedObject): void {
    const line = `${JSON.stringify({ type, object })}\n`;
    const { namespace = '' } = object.metadata;
    kind.changes.push([this.#version, line, namespace]);
    if (kind.changes.length > 2 * keptChanges) kind.changes.splice(0, keptChanges);
    for (const watcher of kind.watchers) watcher(line, namespace);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://api');
    if (pathname === '/api' || pathname === '/apis') {
      response.writeHead(200, { 'Content-Type': aggregated }).end(JSON.stringify(this.#discovery(pathname === '/api')));
    } else if (pathname === '/version') send(response, 200, { major: '1', minor: '36', gitVersion: 'v1.36.3' });
    else if (/^\/(livez|readyz|healthz)$/.test(pathname)) response.end('ok');
    else if (pathname === '/openapi/v3') send(response, 200, { paths: {} });
    else this.#answerOf(pathname, searchParams, response);
  }

  #answerOf(path: string, query: URLSearchParams, response: ServerResponse): void {
    const [, base = '', namespace = '', plural = '', name = '', subresource = ''] = /^(\/api\/[^/]+|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(path) ?? [];
    const kind = this.#kinds.get(plural);
    const object = kind?.objects.get(`${namespace}/${name}`);
    if (kind?.base !== base) refuse(response, 404, 'NotFound', 'the server could not find the requested resource');
    else if (name === '') {
      if (query.get('watch')) this.#watch(kind, namespace, query, response);
      else this.#list(kind, namespace, query, response);
    } else if (!object) refuse(response, 404, 'NotFound', `${plural} "${name}" not found`);
    else if (subresource === 'log') this.#sendLog(object, query, response);
    else send(response, 200, object);
  }

  #discovery(core: boolean): object {
    const groups = new Map<string, Map<string, object[]>>();
    for (const kind of this.#kinds.values()) {
      if ((kind.group === '') !== core) continue;
      const versions = groups.get(kind.group) ?? new Map<string, object[]>();
      const responseKind = { group: kind.group, version: kind.version, kind: kind.kind };
      const logs = { subresource: 'log', responseKind: { group: '', version: 'v1', kind: 'Pod' }, verbs: ['get'] };
      const resource = { resource: kind.plural, responseKind, scope: kind.namespaced ? 'Namespaced' : 'Cluster', singularResource: kind.kind.toLowerCase(), verbs: ['get', 'list', 'watch'], ...(kind.plural === 'pods' && { subresources: [logs] }) };
      groups.set(kind.group, versions.set(kind.version, [...(versions.get(kind.version) ?? []), resource]));
    }
    const items = [...groups].map(([name, versions]) => ({ metadata: { name }, versions: [...versions].map(([version, resources]) => ({ version, resources, freshness: 'Current' })) }));
    return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items };
  }

  #list(kind: Kind, namespace: string, query: URLSearchParams, response: ServerResponse): void {
    const all = [...kind.objects.values()].filter((object) => namespace === '' || object.metadata.namespace === namespace);
    const from = Number(query.get('continue') ?? 0);
    const limit = Number(query.get('limit') ?? 0) || Infinity;
    const metadata = { resourceVersion: String(this.#version), ...(from + limit < all.length && { continue: String(from + limit) }) };
    send(response, 200, { kind: `${kind.kind}List`, apiVersion: kind.apiVersion, metadata, items: all.slice(from, from + limit) });
  }

  #watch(kind: Kind, namespace: string, query: URLSearchParams, response: ServerResponse): void {
    const from = Number(query.get('resourceVersion') ?? 0);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.flushHeaders();
    if (from > 0 && from < (kind.changes[0]?.[0] ?? 0) - 1 && kind.changes.length >= keptChanges) {
      response.end(`${JSON.stringify({ type: 'ERROR', object: status(410, 'Expired', `too old resource version: ${from}`) })}\n`);
      return;
    }
    const tell = (line: string, of: string): void => {
      if (namespace === '' || of === namespace) response.write(line);
    };
    for (const [version, line, of] of kind.changes) if (from > 0 && version > from) tell(line, of);
    kind.watchers.add(tell);
    const bookmark = (): unknown => response.write(`${JSON.stringify({ type: 'BOOKMARK', object: { kind: kind.kind, apiVersion: kind.apiVersion, metadata: { resourceVersion: String(this.#version) } } })}\n`);
    const bookmarks = setInterval(bookmark, bookmarksEvery);
    const over = setTimeout(() => response.end(), Number(query.get('timeoutSeconds') ?? 600) * 1_000);
    response.on('close', () => {
      kind.watchers.delete(tell);
      clearInterval(bookmarks);
      clearTimeout(over);
    });
  }

  #sendLog({ metadata, spec }: ScriptedObject, query: URLSearchParams, response: ServerResponse): void {
    const { containers } = spec as { containers: { name: string }[] };
    const container = query.get('container') ?? containers[0]?.name ?? '';
    const log = this.#logs.get(`${metadata.namespace}/${metadata.name}/${container}`);
    if (!log) {
      refuse(response, 400, 'BadRequest', `container "${container}" in pod "${metadata.name}" is waiting to start: ContainerCreating`);
      return;
    }
    const [since, tail] = [query.get('sinceTime'), query.get('tailLines')];
    // Whole seconds, as a kubelet takes them.
    const asked = log.lines.filter((line) => since === null || line.slice(0, 19) >= since.slice(0, 19));
    const stamped = query.get('timestamps') === 'true';
    const write = (line: string): unknown => response.write(stamped ? line : line.slice(line.indexOf(' ') + 1));
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    response.flushHeaders();
    for (const line of tail === null ? asked : asked.slice(asked.length - Math.min(asked.length, Number(tail)))) write(line);
    if (query.get('follow') !== 'true' || log.ended) {
      response.end();
      return;
    }
    let next = log.lines.length;
    const follow = (): void => {
      while (next < log.lines.length) write(log.lines[next++] ?? '');
      if (log.ended) response.end();
    };
    log.followers.add(follow);
    response.on('close', () => log.followers.delete(follow));
  }
}

const send = (response: ServerResponse, code: number, body: object): void => {
  response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
};

const status = (code: number, reason: string, message: string): object => ({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason, message });

const refuse = (response: ServerResponse, code: number, reason: string, message: string): void => send(response, code, status(code, reason, message));
