// Whole lists, read page by page.

import { answerTo, type Kubecast, type KubeObject } from '@kubecast/sdk';
import { parseExact } from '../exact/exact.ts';

/** Objects of a page: large enough to be quick, small enough to be given up soon. */
const pageSize = 500;

interface List {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly KubeObject[];
}

/** The answers to a list's address, one page after the other, all of one version. Rejects in the gateway's own words. */
export async function* pagesOf(kc: Kubecast, path: string, signal: AbortSignal, accept = 'application/json', parse: (text: string) => unknown = parseExact): AsyncGenerator {
  for (let rest: string | undefined = ''; rest !== undefined; ) {
    const query = new URLSearchParams({ limit: String(pageSize), ...(rest && { continue: rest }) });
    const page = await answerTo(kc, `${path}${path.includes('?') ? '&' : '?'}${query.toString()}`, { headers: { Accept: accept }, signal }, parse);
    signal.throwIfAborted();
    yield page;
    rest = (page as List).metadata?.continue || undefined;
  }
}

/** The objects of a list, each with the version and kind that stand only once in it, and with all numbers as they are unless `parse` says otherwise. */
export async function* objectsOf(kc: Kubecast, path: string, signal: AbortSignal, parse?: (text: string) => unknown): AsyncGenerator<KubeObject> {
  for await (const page of pagesOf(kc, path, signal, undefined, parse)) {
    const { apiVersion, kind, items = [] } = page as List;
    for (const object of items) yield { apiVersion, kind: kind?.replace(/List$/, ''), ...object };
  }
}
