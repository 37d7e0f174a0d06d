// A gateway to develop and test against: speaks the wire contract as far as the SDK and the portal
// use it, and misbehaves on request. Not the reference; the real one is, in the end-to-end tests.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { MockCluster } from './cluster.ts';
import { MockStream, type StreamOptions, type Watch } from './stream.ts';

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
  fallback: Fallback | undefined;
  /** Answers every stream with this status instead, while it is set. */
  refuseWith: { readonly status: number; readonly headers?: Record<string, string> } | undefined;
  #server: Server | undefined;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens; after {@link stop} again on the same port. */
  async start(port = this.#port): Promise<void> {
    const server = createServer((request, response) => this.handle(request, response));
    this.#server = server;
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
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  cutAll(): void {
    for (const stream of this.streams) stream.cut();
  }

  /** Usable as a middleware; `next` gets what is no stream. */
  handle(request: IncomingMessage, response: ServerResponse, next: Fallback | undefined = this.fallback): void {
    const url = new URL(request.url ?? '/', 'http://gateway');
    const multiple = url.pathname === '/stream';
    if (url.pathname === '/auth/me') {
      this.#me(request, response, url);
      return;
    }
    if (!multiple && !/^\/apis?\//.test(url.pathname)) {
      if (next) next(request, response);
      else refuse(response, 404, 'nothing is here');
      return;
    }
    const lastEventId = String(request.headers['last-event-id'] ?? '');
    const token = tokenOf(request);
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
    const asked: [string, string][] = multiple ? [...url.searchParams].filter(([name]) => name !== 'heartbeat') : [['', url.pathname]];
    const watches = asked.map(([name, path]) => watchOf(name, path));
    const strange = watches.findIndex((watch) => watch === undefined);
    if (strange !== -1) {
      refuse(response, 404, `no kind is served at ${asked[strange]?.[1]}`);
      return;
    }
    for (const watch of watches as Watch[]) {
      const { namespace, resource } = watch;
      if (user.namespaces && !(namespace ? user.namespaces.includes(namespace) : resource !== 'namespaces' && user.namespaces.length > 0)) {
        const where = watch.namespace ? `in the namespace ${watch.namespace}` : 'at the cluster scope';
        refuse(response, 403, `you may not watch ${watch.resource} ${where}`);
        return;
      }
      if (!namespace) watch.visible = user.namespaces;
    }
    const { retry, heartbeat, sabotage } = this;
    const stream = new MockStream(this.cluster, this.epoch, watches as Watch[], response, { retry, heartbeat, sabotage });
    this.streams.add(stream);
    response.on('close', () => this.streams.delete(stream));
    if (this.unavailable) stream.goodbye('unavailable', lastEventId);
    else stream.begin(lastEventId);
  }

  #me(request: IncomingMessage, response: ServerResponse, url: URL): void {
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
    response.end(JSON.stringify({ clusters: [{ name: 'default', default: true, watch }] }));
  }
}

function tokenOf(request: IncomingMessage): string {
  return (request.headers.authorization ?? '').replace(/^Bearer /, '');
}

function watchOf(name: string, path: string): Watch | undefined {
  const match = /^\/apis?\/(?:[^/]+\/)?v[^/]+(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\?.*)?$/.exec(path);
  if (!match?.[2]) return undefined;
  return { name, resource: match[2], namespace: match[1], visible: undefined, version: undefined };
}

function refuse(response: ServerResponse, status: number, detail: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/problem+json', ...headers });
  response.end(status === 204 ? undefined : JSON.stringify({ type: 'about:blank', status, detail }));
}
