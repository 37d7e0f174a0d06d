// The mock gateway as the tabs of a mock browser reach it, which may stand still or be killed while they are answered.

import { EventEmitter } from 'node:events';
import type { MockGateway } from './gateway.ts';
import type { MockTab } from './browser.ts';
import type { MockRequest } from './memory.ts';

const utf8 = new TextEncoder();

/** @param gateway undefined while nobody listens */
export function fetchFrom(gateway: () => MockGateway | undefined, { run, gone }: MockTab): typeof fetch {
  return (input, init) =>
    new Promise<Response>((resolve, reject) => {
      const present = gateway();
      if (!present) {
        setTimeout(() => run(() => reject(new TypeError('fetch failed'))), 1);
        return;
      }
      const url = new URL(typeof input === 'string' ? input : input instanceof URL ? input.href : input.url, 'http://gateway');
      const headers = Object.fromEntries(new Headers(init?.headers));
      const request = { url: url.pathname + url.search, method: init?.method ?? 'GET', headers } as unknown as MockRequest;
      const events = new EventEmitter();
      let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
      let open = true;
      const over = new AbortController();
      const finish = (how: () => void): void => {
        if (!open) return;
        open = false;
        over.abort();
        events.emit('close');
        run(how);
      };
      const body = new ReadableStream<Uint8Array>({
        start: (started) => {
          controller = started;
        },
        cancel: () => finish(() => undefined),
      });
      let bodyless = false;
      const response = {
        writeHead: (status: number, told: Record<string, string> = {}) => {
          bodyless = status === 204 || request.method === 'HEAD';
          run(() => resolve(new Response(bodyless ? null : body, { status, headers: told })));
          return response;
        },
        write: (text: string, done?: () => void) => {
          run(() => {
            if (open) controller?.enqueue(utf8.encode(text));
            done?.();
          });
        },
        end: (text?: string) => {
          if (text !== undefined && !bodyless) response.write(text);
          run(() => finish(() => controller?.close()));
        },
        on: (event: string, listener: () => void) => events.on(event, listener),
        socket: { destroy: () => finish(() => controller?.error(new TypeError('terminated'))) },
      };
      init?.signal?.addEventListener('abort', () => {
        reject(new DOMException('aborted', 'AbortError'));
        finish(() => controller?.error(init.signal?.reason));
      });
      gone.addEventListener('abort', () => finish(() => undefined), { signal: over.signal });
      present.handle(request, response);
    });
}
