// Lists and their pages, which are of one version whatever is written between them.

import type { KubeObject } from '@kubecast/sdk';
import { BadQuery, countsOf, queryOfList } from './query.ts';

export interface ListAnswer {
  readonly status: 200 | 404;
  readonly tag: string;
  readonly body: unknown;
}

/** The rest of a list of which a page was answered. */
interface Rest {
  readonly objects: readonly KubeObject[];
  readonly version: string;
}

export class MockLists {
  readonly #rests = new Map<string, Rest>();
  #tokens = 0;

  /** @param below what there is below the path, as far as it may be seen @param one the name of the one object that is asked for */
  answer(below: readonly KubeObject[], one: string | undefined, parameters: URLSearchParams, now: string): ListAnswer {
    const query = queryOfList(parameters);
    if (one !== undefined) {
      const [object] = below;
      return { status: object ? 200 : 404, tag: `W/"${object?.metadata.resourceVersion ?? ''}"`, body: object && query.shape(object) };
    }
    const selected = below.filter(query.matches);
    const tag = `W/"mock.${now}.${parameters.toString()}"`;
    if (query.counts) return { status: 200, tag, body: { counts: countsOf(selected, query.counts), resourceVersion: now } };
    const { limit = 0, offset = 0 } = query.page ?? {};
    const rest = query.token === '' ? { objects: [...selected].sort(query.compare).slice(offset), version: now } : this.#rests.get(query.token);
    if (!rest) throw new BadQuery('continue: it is no token of this mock');
    const page = rest.objects.slice(0, limit || rest.objects.length);
    const left = rest.objects.slice(page.length);
    const [first] = below;
    const metadata = { resourceVersion: rest.version, ...(left.length > 0 && { continue: this.#keep({ ...rest, objects: left }), remainingItemCount: left.length }) };
    return { status: 200, tag, body: { kind: `${first?.kind ?? ''}List`, apiVersion: first?.apiVersion ?? 'v1', metadata, items: page.map(query.shape) } };
  }

  #keep(rest: Rest): string {
    const token = `page-${++this.#tokens}`;
    this.#rests.set(token, rest);
    return token;
  }
}
