// A gateway to develop and test against: speaks the wire contract as far as the SDK and the portal
// use it, and misbehaves on request. Not the reference; the real one is, in the end-to-end tests.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { MockCluster } from './cluster.ts';
import { MockLists, type ListAnswer } from './lists.ts';
import { inMemory, type MockRequest, type MockResponse } from './memory.ts';
import { BadQuery, queryOfStream, reserved } from './query.ts';
import { MockStream, sightOf, type StreamOptions, type Watch } from './stream.ts';
import { MockQueue, type MockInbox, type MockLog, type MockPast, type ToldQueue } from './told.ts';

export interface MockUser {
  /** The namespaces that the user may see the content of, and not list; undefined: everything. */
  readonly namespaces?: readonly string[];
}

/** What a request for anything but a stream is answered with, for the portal's own files. */
export type Fallback = (request: IncomingMessage, response: ServerResponse) => void;

export class MockGateway {
  readonly cluster = new MockCluster();
  /** By token. Whoever is missing gets 401. */
  readonly users = new Map<string, MockUser>([['let-me-in', {}]]);
  readonly streams = new Set<MockStream>();
  /** Each request for a stream, as it came. */
  readonly requests: { readonly url: string; readonly lastEventId: string; readonly token: string }[] = [];
  epoch = 'e1';
  retry = 10;
  heartbeat = 15_000;
  sabotage: StreamOptions['sabotage'];
  /** Lets every stream in, and says goodbye at once: as a gateway that has never read its cluster. */
  unavailable = false;
  /** What is read of the history and of the notifications, whoever asks; undefined: there is none. */
  past: MockPast | undefined;
  inbox: MockInbox | undefined;
  /** The history's database is away: streams that have something of it end at once. */
  pastAway = false;
  /** The kinds that are served, as `jobs.batch`; undefined: any that is asked for. */
  kinds: ReadonlySet<string> | undefined;
  fallback: Fallback | undefined;
  /** Answers every stream with this status instead, while it is set. */
  refuseWith: { readonly status: number; readonly headers?: Record<string, string> } | undefined;
  /** In memory: nobody answers. */
  away = false;
  /** Asks it without a network. Addresses may begin with its paths. */
  readonly fetch = inMemory((request, response) => {
    if (this.away) response.socket?.destroy();
    else this.handle(request, response);
  });
  /** By `namespace/name`, or the name of one without a namespace; the list of them under the empty one. */
  readonly #queues = new Map<string, MockQueue>();
  readonly #lists = new MockLists();
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens; after {@link stop} again on the same port. */
  async start(port = this.#port): Promise<void> {
    const { createServer } = await import('node:http'); // where it is used in memory, there may be none
    const server = createServer((request, response) => this.handle(request, response, () => this.#fallBack(request, response)));
    this.#server = server;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
  }

  /** As SIGKILL would: every connection breaks, the port is closed. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const stream of this.streams) stream.cut();
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  cutAll(): void {
    for (const stream of this.streams) stream.cut();
  }

  /** A queue is there, or has changed. Before the first there are none, as on a cluster without Kueue. */
  queue(queue: ToldQueue): void {
    this.#queueAt([queue.namespace, queue.name].filter(Boolean).join('/')).put(queue);
    const items = [...this.#queues].filter(([key]) => key !== '').map(([, { last }]) => ({ ...last, jobs: undefined }));
    this.#queueAt('').put({ items });
  }

  #queueAt(key: string): MockQueue {
    const log = this.#queues.get(key) ?? new MockQueue();
    this.#queues.set(key, log);
    return log;
  }

  /** Usable as a middleware; `next` gets what is no stream. */
  handle(request: MockRequest, response: MockResponse, next?: () => void): void {
    const url = new URL(request.url ?? '/', 'http://gateway');
    const multiple = url.pathname === '/stream';
    if (url.pathname === '/auth/me') {
      this.#me(request, response, url);
      return;
    }
    const asks = (path: string): boolean => told.test(path);
    if (asks(url.pathname)) {
      this.#told(request, response, url);
      return;
    }
    const values = multiple ? [...url.searchParams.values()].filter(asks) : [];
    // Who asks for it learns that there is none. Not worth counting.
    if (values.some((path) => !this.#logOf(path))) {
      refuse(response, 404, 'there is no such thing');
      return;
    }
    if (/^\/clusters\/|^\/auth\/ticket$/.test(url.pathname)) {
      refuse(response, 501, 'the mock has no tickets, and one cluster');
      return;
    }
    if (url.pathname.startsWith('/logs/')) {
      refuse(response, 404, 'the mock has no logs'); // as on /stream, where a client is to find out which of its watches it is
      return;
    }
    if (!multiple && !/^\/apis?\//.test(url.pathname)) {
      if (next) next();
      else refuse(response, 404, 'nothing is here');
      return;
    }
    if (!/^(GET|HEAD|OPTIONS)$/.test(request.method ?? 'GET')) {
      refuse(response, 405, 'nothing is written through the gateway');
      return;
    }
    const lastEventId = String(request.headers['last-event-id'] ?? url.searchParams.get('lastEventId') ?? url.searchParams.get('last_event_id') ?? '');
    const token = tokenOf(request);
    if (!multiple && request.method === 'GET' && !request.headers.accept?.includes('text/event-stream')) {
      this.#list(url, token, request, response);
      return;
    }
    this.requests.push({ url: request.url ?? '', lastEventId, token });
    if (this.refuseWith) {
      const { status, headers } = this.refuseWith;
      refuse(response, status, 'refused by the test', headers);
      return;
    }
    const user = this.users.get(token);
    if (!user) {
      refuse(response, 401, 'the token is not valid', { 'WWW-Authenticate': 'Bearer' });
      return;
    }
    const asked: [string, string][] = multiple ? [...url.searchParams].filter(([name]) => !reserved.has(name)) : [['', url.pathname + url.search]];
    const misnamed = multiple && [...url.searchParams].find(([name, value]) => reserved.has(name) && value.startsWith('/'));
    if (misnamed) {
      refuse(response, 400, `${misnamed[0]} is the name of a parameter`);
      return;
    }
    const defaults = multiple ? new URLSearchParams([...url.searchParams].filter(([key]) => reserved.has(key))) : url.searchParams;
    let watches: (Watch | undefined)[];
    try {
      watches = asked.map(([name, path]) => this.#watchOf(name, path, defaults));
    } catch (error) {
      if (!(error instanceof BadQuery)) throw error;
      refuse(response, error.status, error.message);
      return;
    }
    const strange = watches.findIndex((watch) => watch === undefined);
    if (strange !== -1) {
      refuse(response, 404, `no kind is served at ${asked[strange]?.[1]}`);
      return;
    }
    for (const watch of watches as Watch[]) {
      const { namespace, resource } = watch;
      if (user.namespaces && !watch.told && !(namespace ? user.namespaces.includes(namespace) : resource !== 'namespaces' && user.namespaces.length > 0)) {
        const where = watch.namespace ? `in the namespace ${watch.namespace}` : 'at the cluster scope';
        refuse(response, 403, `you may not watch ${watch.resource} ${where}`);
        return;
      }
      if (!namespace && !watch.told) watch.visible = user.namespaces;
    }
    if (request.method === 'HEAD') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end();
      return;
    }
    const { retry, sabotage } = this;
    const asksFor = Number(/^(\d+)s$/.exec(url.searchParams.get('heartbeat') ?? '')?.[1] ?? Infinity) * 1_000;
    const heartbeat = Math.min(this.heartbeat, asksFor);
    const stream = new MockStream(this.cluster, this.epoch, sightOf(user.namespaces), watches as Watch[], response, { retry, heartbeat, sabotage });
    this.streams.add(stream);
    response.on('close', () => this.streams.delete(stream));
    if (this.unavailable || (this.pastAway && values.length > 0)) stream.goodbye('unavailable', lastEventId);
    else stream.begin(lastEventId);
  }

  #fallBack(request: IncomingMessage, response: ServerResponse): void {
    if (this.fallback) this.fallback(request, response);
    else refuse(response, 404, 'nothing is here');
  }

  /** A list, a page of it, counts, or one object. */
  #list(url: URL, token: string, request: MockRequest, response: MockResponse): void {
    const user = this.users.get(token);
    if (!user) {
      refuse(response, 401, 'the token is not valid', { 'WWW-Authenticate': 'Bearer' });
      return;
    }
    const watch = watchOf('', url.pathname);
    if (!watch || !this.#serves(url.pathname)) {
      refuse(response, 404, `no kind is served at ${url.pathname}`);
      return;
    }
    if (/as=|protobuf/.test(String(request.headers.accept ?? ''))) {
      refuse(response, 501, 'the mock answers lists as plain JSON only');
      return;
    }
    if (user.namespaces && (watch.namespace ? !user.namespaces.includes(watch.namespace) : user.namespaces.length === 0)) {
      refuse(response, 403, `you may not list ${watch.resource} there`);
      return;
    }
    const below = this.cluster.list(watch.resource).filter(
      ({ metadata }) =>
        (!watch.namespace || metadata.namespace === watch.namespace) && (!watch.object || metadata.name === watch.object) && (!user.namespaces || user.namespaces.includes(metadata.namespace ?? '')),
    );
    let answered: ListAnswer;
    try {
      answered = this.#lists.answer(below, watch.object, url.searchParams, String(this.cluster.version));
    } catch (error) {
      if (!(error instanceof BadQuery)) throw error;
      refuse(response, error.status, error.message);
      return;
    }
    const headers = { 'Content-Type': 'application/json', ETag: answered.tag };
    if (answered.status === 404) refuse(response, 404, `${watch.resource} "${watch.object}" not found`);
    else if (answered.status === 200 && request.headers['if-none-match'] === answered.tag) response.writeHead(304, headers).end();
    else {
      response.writeHead(answered.status, headers);
      response.end(JSON.stringify(answered.body));
    }
  }

  /** Whether the kind of a path is served. */
  #serves(path: string): boolean {
    if (!this.kinds) return true;
    const [, group = '', resource = ''] = /^\/apis?\/(?:([^/]+)\/)?v[^/]+(?:\/namespaces\/[^/]+)?\/([a-z]+)/.exec(path) ?? [];
    return this.kinds.has(group === '' ? resource : `${resource}.${group}`);
  }

  #logOf(path: string): MockLog | undefined {
    if (path.startsWith('/queues')) return this.#queues.get(queueAt(path));
    return path.startsWith('/history') ? this.past : this.inbox;
  }

  #watchOf(name: string, path: string, defaults: URLSearchParams): Watch | undefined {
    const log = told.test(path) ? this.#logOf(path) : undefined;
    if (!log) {
      const watch = watchOf(name, path);
      if (!watch || !this.#serves(path)) return undefined;
      const own = new URL(path, 'http://gateway').searchParams;
      // These make a watch another stream, so they stand in its own query only.
      const common = [...defaults].filter(([key]) => !own.has(key) && !['countBy', 'limit', 'sort', 'offset'].includes(key));
      const query = queryOfStream(new URLSearchParams([...own, ...(name === '' ? [] : common)]));
      return { ...watch, query };
    }
    const limit = Number(new URL(path, 'http://gateway').searchParams.get('limit') ?? 100);
    return { name, resource: path, namespace: undefined, visible: undefined, version: undefined, told: { log, limit } };
  }

  /** The history, the queues and the notifications, as lists; and what is to be changed of the latter. */
  #told(request: MockRequest, response: MockResponse, url: URL): void {
    const { inbox, past } = this;
    const answer = (status: number, body?: unknown): void => {
      response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
      response.end(body === undefined ? undefined : JSON.stringify(body));
    };
    if (!this.users.has(tokenOf(request))) refuse(response, 401, 'the token is not valid', { 'WWW-Authenticate': 'Bearer' });
    else if (url.pathname === '/queues') answer(200, this.#queues.get('')?.last ?? { items: [] });
    else if (!this.#logOf(url.pathname)) refuse(response, 404, 'there is no history');
    else if (this.pastAway) refuse(response, 503, 'the database is away', { 'Retry-After': '1' });
    else if (url.pathname.startsWith('/queues')) answer(200, this.#queues.get(queueAt(url.pathname))?.last);
    else if (past && url.pathname.startsWith('/history')) answer(200, past.list(url.searchParams));
    else if (inbox) answerInbox(inbox, request, url.pathname.endsWith('/settings'), answer);
  }

  #me(request: MockRequest, response: MockResponse, url: URL): void {
    const user = this.users.get(tokenOf(request));
    if (!user) {
      refuse(response, 401, 'the token is not valid', { 'WWW-Authenticate': 'Bearer' });
      return;
    }
    const watch = (url.searchParams.get('kinds') ?? '').split(',').map((kind) => {
      const [resource = '', ...group] = kind.split('.');
      const namespaces = resource === 'namespaces' ? [] : (user.namespaces ?? []);
      return { group: group.join('.'), resource, all: user.namespaces === undefined, namespaces };
    });
    response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
    response.end(JSON.stringify({ username: usernameOf(tokenOf(request)), clusters: [{ name: 'default', default: true, watch }] }));
  }
}

/** What is told by number, or as a whole, and not as objects. */
const told = /^\/(notifications|history|queues)\b/;

/** By what a queue is known here. */
const queueAt = (path: string): string => path.replace(/^\/queues\/?|\?.*$/g, '');

function answerInbox(inbox: MockInbox, request: MockRequest, settings: boolean, answer: (status: number, body?: unknown) => void): void {
  if (request.method === 'GET' || request.method === 'HEAD') {
    answer(200, settings ? inbox.settings : inbox.list());
    return;
  }
  let body = '';
  const utf8 = new TextDecoder();
  request.on('data', (part) => (body += utf8.decode(part, { stream: true })));
  request.on('end', () => {
    const said: unknown = JSON.parse(body);
    if (inbox.refuseWith) {
      answer(inbox.refuseWith, { detail: 'refused by the test' });
    } else if (settings) {
      inbox.settings = said;
      answer(200, said);
    } else {
      inbox.read(said as Parameters<MockInbox['read']>[0]);
      answer(204);
    }
  });
}

/** What a token says of itself, if it looks like one. */
function usernameOf(token: string): string {
  const [, claims = ''] = token.split('.');
  return claims === '' ? '' : String((JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) as { sub?: unknown }).sub);
}

function tokenOf(request: MockRequest): string {
  return String(request.headers.authorization ?? '').replace(/^Bearer /, '');
}

function watchOf(name: string, path: string): Watch | undefined {
  const match = /^\/apis?\/(?:[^/]+\/)?v[^/]+(?:\/namespaces\/([^/?]+)(?=\/))?\/([a-z]+)(?:\/([^/?]+))?(?:\?.*)?$/.exec(path);
  if (!match?.[2]) return undefined;
  return { name, resource: match[2], namespace: match[1], object: match[3] && decodeURIComponent(match[3]), visible: undefined, version: undefined };
}

function refuse(response: MockResponse, status: number, detail: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/problem+json', ...headers });
  response.end(status === 204 ? undefined : JSON.stringify({ type: 'about:blank', status, detail }));
}
