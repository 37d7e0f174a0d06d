// What is kept of a job that has ended, beside its states: what it was told to do, and the end of its log; see "History" in wire.md.

import { answerTo, AskedError, saidTo } from './asked.ts';
import type { Kubecast } from './kubecast.ts';
import { isJsonObject, type KubeObject } from './object.ts';
import { pathOf, type Resource } from './resource.ts';

/** One job of a history. */
export interface KeptQuery {
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid: string;
  readonly cluster?: string | undefined;
}

/**
 * The object as it was last seen, without its status; undefined where it is not kept. Rejects with an {@link AskedError} if the gateway does not
 * answer that.
 */
export function pastSpec<T extends KubeObject>(kc: Kubecast, resource: Resource<T>, query: KeptQuery): Promise<T | undefined> {
  return unlessNone(answerTo(kc, pathTo(resource, query, 'spec')).then((body) => (isJsonObject(body) ? (body as unknown as T) : undefined)));
}

/**
 * The last lines of the container that decided how the job ended, or with `pod` those of one of its pods, by uid, whose `log` is true; undefined where they are not kept. They are a stranger's text. Rejects with an
 * {@link AskedError}; its status is 403 if the caller may not read logs there.
 */
export function pastLog(kc: Kubecast, resource: Resource<KubeObject>, query: KeptQuery & { readonly pod?: string | undefined }): Promise<string | undefined> {
  return unlessNone(saidTo(kc, pathTo(resource, query, 'log') + (query.pod === undefined ? '' : `&pod=${encodeURIComponent(query.pod)}`), { headers: { Accept: 'text/plain' } }));
}

function pathTo(resource: Resource<KubeObject>, { namespace, name, uid, cluster }: KeptQuery, view: string): string {
  return `/history${pathOf(resource, { namespace, name, cluster })}?${new URLSearchParams({ uid, view }).toString()}`;
}

async function unlessNone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof AskedError && error.status === 404) return undefined;
    throw error;
  }
}
