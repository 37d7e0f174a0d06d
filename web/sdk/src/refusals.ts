// What is asked of a gateway beside the stream, and who is refused if that is, for one of its watches or for all of them.

import type { ClientOptions } from './clientoptions.ts';
import { messageOf } from './connection.ts';
import { within } from './deadline.ts';
import { isRefusal } from './lost.ts';
import type { Trouble } from './state.ts';

type Asks = Pick<ClientOptions, 'token' | 'fetch'> & { readonly gateway?: string | undefined };

/** See {@link Kubecast.request}. */
export const request = <T>({ token, gateway = '', fetch = globalThis.fetch }: Asks, path: string, init: RequestInit, read: (response: Response) => T | Promise<T>): Promise<T> =>
  within(20_000, async (signal) => {
    const headers = new Headers(init.headers);
    const bearer = await token?.('connect');
    if (bearer !== undefined) headers.set('Authorization', `Bearer ${bearer}`);
    return read(await fetch(gateway + path, { ...init, headers, cache: 'no-store', credentials: token ? 'omit' : 'include', signal }));
  }, init.signal);

/** Why a path is refused, in words if it is asked by `GET`; undefined: it is not; null: nobody knows. */
export const refusalOf = (as: Asks, path: string, method = 'HEAD'): Promise<Trouble | null | undefined> =>
  request(as, path, { method, headers: { Accept: 'text/event-stream' } }, async (response) => {
    const reason = `http:${response.status}`;
    if (isRefusal(reason)) return { reason, message: messageOf(await response.text(), response) };
    await response.body?.cancel(); // it would be a stream
    return response.ok ? undefined : null;
  }).catch(() => null);

