// The obvious client, of an EventSource and a Map: what is wrong with it is what the cases are for.

import type { ClientUnderTest, Place, Row } from './client/subject.ts';

/** An EventSource as browsers have it (WHATWG HTML, 9.2), as far as a page uses it: Node has none. */
class EventSource {
  onopen: () => void = () => undefined;
  onerror: () => void = () => undefined;
  onevent: (type: string, data: string) => void = () => undefined;
  readonly #abort = new AbortController();
  #id = '';
  #retry = 1_000;

  constructor({ fetch, url, path }: Place) {
    void this.#run(fetch, url + path);
  }

  close(): void {
    this.#abort.abort();
  }

  async #run(fetch: Place['fetch'], url: string): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        const headers = { Accept: 'text/event-stream', ...(this.#id && { 'Last-Event-ID': this.#id }) };
        const response = await fetch(url, { headers, signal });
        if (response.status !== 200 || response.headers.get('Content-Type') !== 'text/event-stream') {
          this.close();
          this.onerror();
          return;
        }
        this.onopen();
        await this.#read(response);
      } catch {
        // as after a clean end
      }
      if (signal.aborted) return;
      this.onerror();
      await new Promise((resolve) => setTimeout(resolve, this.#retry));
    }
  }

  async #read({ body }: Response): Promise<void> {
    let rest = '';
    const utf8 = new TextDecoder();
    for await (const bytes of (body ?? []) as AsyncIterable<Uint8Array>) {
      const blocks = (rest + utf8.decode(bytes, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) this.#take(Object.fromEntries(block.split('\n').map((line) => /^(\w*):? ?(.*)$/.exec(line)?.slice(1) ?? []) as [string, string][]));
    }
  }

  #take({ event, id, data, retry }: Record<string, string>): void {
    if (retry !== undefined) this.#retry = Number(retry);
    if (id !== undefined) this.#id = id;
    if (event !== undefined && data !== undefined) this.onevent(event, data);
  }
}

export function openNaively(place: Place): ClientUnderTest {
  const source = new EventSource(place);
  const rows = new Map<string, Row>();
  let status = 'connecting';
  source.onopen = () => (status = 'live');
  source.onerror = () => (status = 'reconnecting');
  source.onevent = (type, data) => {
    if (!/^(added|modified|deleted)$/.test(type)) return;
    try {
      const object = JSON.parse(data) as Row;
      if (type === 'deleted') rows.delete(object.metadata.name);
      else rows.set(object.metadata.name, object);
    } catch {
      // as a page that leaves it to the console
    }
  };
  return { rows: () => rows.values(), status: () => status, close: () => source.close() };
}
