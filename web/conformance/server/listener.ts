// Reads an event stream as strictly as the contract is written.

import { check, Failure, until } from '../case.ts';
import type { ServerSubject, Thing } from './subject.ts';

/** An event as it was told. */
export interface Told {
  /** The watch's name on `/stream`; empty elsewhere. */
  readonly watch: string;
  readonly type: string;
  readonly id: string;
  readonly data: Record<string, unknown>;
}

export class Listener {
  readonly status: number;
  readonly headers: Headers;
  readonly told: Told[] = [];
  /** The blocks as they came, comments and `retry:` among them. */
  readonly blocks: string[] = [];
  readonly #abort: AbortController;
  #text = '';
  #ended = false;
  #failure: Failure | undefined;

  /** Asks for a stream. @param from the position */
  static async open(subject: ServerSubject, path: string, from?: string): Promise<Listener> {
    const abort = new AbortController();
    const headers = { ...subject.headers, Accept: 'text/event-stream', ...(from === undefined ? {} : { 'Last-Event-ID': from }) };
    const response = await (subject.fetch ?? globalThis.fetch)(subject.url + path, { headers, signal: abort.signal });
    return new Listener(response, abort);
  }

  private constructor({ status, headers, body }: Response, abort: AbortController) {
    this.status = status;
    this.headers = headers;
    this.#abort = abort;
    void this.#read(body);
  }

  /** The position behind what was told. */
  get id(): string {
    return this.told.at(-1)?.id ?? '';
  }

  close(): void {
    this.#abort.abort();
  }

  /** Waits for an event, and returns it. */
  async next(type: string, match: (told: Told) => boolean = () => true, within?: number): Promise<Told> {
    let found: Told | undefined;
    await this.until(() => (found = this.told.find((told) => told.type === type && match(told))) !== undefined, `${type} is not told`, within);
    if (!found) throw new Failure(type);
    return found;
  }

  /** The event that tells an object in the state that has this `n` in its data. */
  async tells(name: string, n: string): Promise<void> {
    await this.until(() => this.state().get(name)?.data?.n === n, `${name} is not told with n=${n}`);
  }

  async until(holds: () => boolean, what: string, within?: number): Promise<void> {
    const done = (): boolean => this.#failure !== undefined || holds();
    await until(done, () => `${what}; what was told is ${this.told.map(({ type, watch }) => (watch ? `${watch}.${type}` : type)).join(' ') || 'nothing'}`, within);
    if (this.#failure) throw this.#failure;
  }

  async ends(): Promise<void> {
    await until(() => this.#ended, () => 'the answer does not end');
  }

  /** What a client has by now, of one watch, by name. */
  state(watch = ''): Map<string, Thing> {
    const state = new Map<string, Thing>();
    for (const { watch: own, type, data } of this.told) {
      if (own !== watch) continue;
      if (type === 'reset') state.clear();
      const { metadata } = data as { metadata?: Thing['metadata'] };
      if (!metadata) continue;
      if (type === 'deleted') state.delete(metadata.name);
      else state.set(metadata.name, data as unknown as Thing);
    }
    return state;
  }

  async #read(body: ReadableStream<Uint8Array> | null): Promise<void> {
    const utf8 = new TextDecoder('utf-8', { fatal: true });
    try {
      for await (const bytes of (body ?? []) as AsyncIterable<Uint8Array>) {
        this.#text += utf8.decode(bytes, { stream: true });
        const blocks = this.#text.split('\n\n');
        this.#text = blocks.pop() ?? '';
        for (const block of blocks) this.#take(block);
      }
    } catch (error) {
      if (error instanceof Failure) this.#failure = error;
      else if (!this.#abort.signal.aborted) this.#failure = new Failure(`the stream broke: ${String(error)}`);
    }
    this.#ended = true;
  }

  #take(block: string): void {
    this.blocks.push(block);
    if (this.status !== 200 || /^(:[^\n]*|retry: \d+)(\n(:[^\n]*|retry: \d+))*$/.test(block)) return;
    const [, event = '', id = '', data = ''] = /^event: ([a-z0-9]+(?:\.[a-z]+)?)\nid: ([\x21-\x7e]*)\ndata: ([^\r\n]*)$/.exec(block) ?? [];
    check(event !== '', `a frame is not an event with an id and one line of data: ${JSON.stringify(block)}`);
    check(id !== '' || /^(goodbye|expiring)$/.test(event), `${event} has no id`);
    const [type = '', watch = ''] = event.split('.').reverse();
    let read: unknown;
    try {
      read = JSON.parse(data);
    } catch {
      throw new Failure(`the data of ${event} is no JSON: ${data}`);
    }
    check(typeof read === 'object' && read !== null, `the data of ${event} is no object`);
    this.told.push({ watch, type, id, data: read as Record<string, unknown> });
  }
}

/** The name of what an event tells. */
export const nameOf = ({ data }: Told): string => (data as { metadata?: { name: string } }).metadata?.name ?? '';

export const versionOf = ({ data }: Told): string => String((data as { metadata?: { resourceVersion?: unknown } }).metadata?.resourceVersion ?? data.resourceVersion);
