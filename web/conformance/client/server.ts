// A server of which a case decides every byte.

import { inMemory, type MockRequest, type MockResponse } from '@kubecast/sdk/testing';
import { check, Failure, pause, until } from '../case.ts';
import type { Row } from './subject.ts';

/** All that is asked for is below this list. */
export const path = '/api/v1/configmaps';
/** In milliseconds: what happens within it may as well have happened at once. */
const moment = 5;

export class Server {
  /** The requests for the stream, as they came. */
  readonly connections: Connection[] = [];
  readonly fetch = inMemory((request, response) => this.#take(request, response));
  #taken = 0;
  #refusal = { status: 404, headers: {} as Readonly<Record<string, string>> };
  #stop: () => void = () => undefined;
  #url = 'http://gateway';

  get url(): string {
    return this.#url;
  }

  async listen(): Promise<void> {
    const { createServer } = await import('node:http');
    const server = createServer((request, response) => this.#take(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    this.#stop = () => {
      server.close();
      server.closeAllConnections();
    };
  }

  close(): void {
    for (const connection of this.connections) connection.cut();
    this.#stop();
  }

  /** The next request for the stream that no case has looked at yet. */
  async next(within?: number): Promise<Connection> {
    await until(() => this.waiting > 0, () => `the client does not ask for connection ${this.#taken + 1}`, within);
    const next = this.connections[this.#taken++];
    if (!next) throw new Failure('nothing is asked for');
    return next;
  }

  /** How many requests for the stream no case has looked at yet. */
  get waiting(): number {
    return this.connections.length - this.#taken;
  }

  /**
   * How many are asked for from now on, within a time in milliseconds. They are answered as `answer` does. The time is that of an idle machine:
   * it is counted in pauses, which take longer on a busy one, as the client does.
   */
  async count(within: number, answer: (connection: Connection) => void): Promise<number> {
    let count = 0;
    for (let left = within; left > 0; left -= moment) {
      for (; this.waiting > 0; count++) answer(await this.next());
      await pause(moment);
    }
    return count;
  }

  #take(request: MockRequest, response: MockResponse): void {
    const url = new URL(request.url ?? '/', this.#url);
    const [name, asked] = [...url.searchParams].find(([, value]) => value.startsWith(path)) ?? ['', url.pathname];
    if (request.method !== 'GET' || !asked.startsWith(path)) {
      // Who wants to know more of a refusal hears the same again.
      response.writeHead(this.#refusal.status, this.#refusal.headers).end();
      return;
    }
    const position = String(request.headers['last-event-id'] ?? url.searchParams.get('lastEventId') ?? url.searchParams.get('last_event_id') ?? '');
    const refused = (status: number, headers: Readonly<Record<string, string>>): void => {
      this.#refusal = { status, headers };
    };
    this.connections.push(new Connection(url.pathname === '/stream' ? name : '', position, response, refused));
  }
}

export class Connection {
  /** With which the client came. */
  readonly position: string;
  /** It has let go. */
  closed = false;
  readonly #name: string;
  readonly #response: MockResponse;
  #beat: ReturnType<typeof setInterval> | undefined;
  readonly #refused: (status: number, headers: Readonly<Record<string, string>>) => void;

  constructor(name: string, position: string, response: MockResponse, refused: Connection['refuse']) {
    this.position = position;
    this.#name = name;
    this.#response = response;
    this.#refused = refused;
    response.on('close', () => {
      this.closed = true;
      this.silence();
    });
  }

  /** Answers with a stream, of which nothing is told yet. It has heartbeats, between frames, until it is made silent. */
  begin(retry: number | undefined = 10): this {
    this.#beat = setInterval(() => this.write(':\n\n'), 300);
    this.#response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    return this.write(`: conformance\n\n${retry === undefined ? '' : `retry: ${retry}\n\n`}`);
  }

  /** As when the network between is gone: nobody is told. */
  silence(): this {
    clearInterval(this.#beat);
    return this;
  }

  /** The head, and not a byte after it. */
  beginSilently(type = 'text/event-stream'): this {
    this.#response.writeHead(200, { 'Content-Type': type });
    return this;
  }

  write(bytes: string | Uint8Array): this {
    this.#response.write(bytes);
    return this;
  }

  /** The position at a version; 0: one that names none. */
  id(version: number): string {
    if (version === 0) return this.#name ? 'e1' : 'e1.0';
    return this.#name ? `e1.${this.#name}-${version}` : `e1.${version}`;
  }

  frame(type: string, data: unknown, version: number): string {
    return this.rawFrame(type, JSON.stringify(data), this.id(version));
  }

  rawFrame(type: string, data: string, id: string): string {
    const connectionOnly = type === 'goodbye' || type === 'expiring';
    return `event: ${this.#name && !connectionOnly ? `${this.#name}.${type}` : type}\nid: ${id}\ndata: ${data}\n\n`;
  }

  tell(type: string, data: unknown, version: number): this {
    return this.write(this.frame(type, data, version));
  }

  /** A whole snapshot. */
  snapshot(objects: readonly Row[], version: number): this {
    for (const object of objects) this.tell('added', object, 0);
    return this.synced(objects.length, version);
  }

  synced(count: number, version: number): this {
    return this.tell('synced', { resourceVersion: String(version), count }, version);
  }

  bookmark(version: number): this {
    return this.tell('bookmark', { resourceVersion: String(version) }, version);
  }

  goodbye(reason: string, version: number): void {
    this.tell('goodbye', { reason }, version).end();
  }

  /** Ends as an answer that is complete. */
  end(text?: string): void {
    this.silence();
    this.#response.end(text);
  }

  /** Breaks the connection. What was written to it arrives before. */
  cut(): void {
    this.silence();
    this.#response.socket?.destroy();
  }

  refuse(status: number, headers: Readonly<Record<string, string>> = {}): void {
    this.#refused(status, headers);
    this.#response.writeHead(status, { 'Content-Type': 'application/problem+json', ...headers });
    this.#response.end(JSON.stringify({ type: 'about:blank', title: 'Refused', status, detail: 'this is refused', reason: 'Refused' }));
  }

  /** The client has come back to where it was. */
  resumesAt(position: string): this {
    check(this.position === position, `the client came back with the position ${JSON.stringify(this.position)}, and not ${JSON.stringify(position)}`);
    return this;
  }
}

/** An object of version `version`. Its uid is made of its name, unless it is told. */
export function object(name: string, version: number | string, more: { uid?: string; namespace?: string; data?: Record<string, string> } = {}): Row {
  const { uid = `uid-${name}`, namespace = 'team-a', ...rest } = more;
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, uid, resourceVersion: String(version) }, ...rest } as Row;
}
