// Lists and their pages, which are of one version whatever is written between them.

import type { KubeObject } from '@kubecast/sdk';
import { tagOf } from './documents.ts';
import { inForm, type Column, type Form } from './forms.ts';
import { BadQuery, countsOf, queryOfList } from './query.ts';

export interface ListAnswer {
  readonly status: 200 | 404;
  /** Undefined of tables, since these show ages. */
  readonly tag: string | undefined;
  readonly body: unknown;
}

/** How a list, or the one object of a name, is to be answered. */
export interface ListForm {
  readonly one: string | undefined;
  readonly form: Form;
  readonly columns: readonly Column[];
  readonly now: number;
}

/** The rest of a list of which a page was answered. */
interface Rest {
  readonly objects: readonly KubeObject[];
  readonly version: string;
  /** Behind which it begins. */
  readonly last: KubeObject | undefined;
}

export class MockLists {
  readonly #rests = new Map<string, Rest>();
  #tokens = 0;

  /** @param below what there is below the path, as far as it may be seen @param floor lists of before are gone */
  answer(below: readonly KubeObject[], { one, form, columns, now }: ListForm, parameters: URLSearchParams, floor: number): ListAnswer {
    const query = queryOfList(parameters, now);
    const written = { one: one !== undefined, columns, include: parameters.get('includeObject') ?? '' };
    const shaped = (objects: readonly KubeObject[], metadata: object, list: () => unknown): unknown => (form === 'whole' ? list() : inForm(form, objects, metadata, written));
    const version = String(now);
    if (one !== undefined) {
      const [object] = below;
      const tag = form === 'table' ? undefined : `W/"mock.${object?.metadata.resourceVersion ?? ''}.${form}.${parameters.toString()}"`;
      return { status: object ? 200 : 404, tag, body: object && shaped([object], { resourceVersion: version }, () => query.shape(object)) };
    }
    const selected = below.filter(query.matches);
    const tag = form === 'table' ? undefined : `W/"mock.${version}.${form}.${parameters.toString()}.${tagOf(below.map(({ metadata }) => metadata.uid).join()).slice(3, -1)}"`;
    if (query.counts) return { status: 200, tag, body: { counts: countsOf(selected, query.counts), resourceVersion: version } };
    const { limit = 0, offset = 0 } = query.page ?? {};
    const sorted = [...selected].sort(query.compare);
    const rest = query.token === '' ? { objects: sorted.slice(offset), version, last: undefined } : this.#rests.get(query.token);
    if (!rest) throw new BadQuery('continue: it is no token of this mock');
    if (Number(rest.version) < floor) throw this.#gone(rest, sorted, version, query.compare);
    const page = rest.objects.slice(0, limit || rest.objects.length);
    const left = rest.objects.slice(page.length);
    const metadata = {
      resourceVersion: rest.version,
      ...(left.length > 0 && { continue: this.#keep({ ...rest, objects: left, last: page.at(-1) }) }),
      // As at an API server, which counts no further where it selects.
      ...(left.length > 0 && !parameters.get('labelSelector') && !parameters.get('fieldSelector') && { remainingItemCount: left.length }),
    };
    const [first] = below;
    const list = (): unknown => ({ kind: `${first?.kind ?? ''}List`, apiVersion: first?.apiVersion ?? 'v1', metadata, items: page.map(query.shape) });
    return { status: 200, tag, body: shaped(page, metadata, list) };
  }

  /** What a token is answered with whose version is gone: another one that goes on at the same place, in the newest. */
  #gone({ last }: Rest, sorted: readonly KubeObject[], version: string, compare: (a: KubeObject, b: KubeObject) => number): BadQuery {
    const objects = sorted.filter((object) => last === undefined || compare(object, last) > 0);
    return new BadQuery('The provided continue parameter is too old', 410, { continue: this.#keep({ objects, version, last }) });
  }

  #keep(rest: Rest): string {
    const token = `page-${++this.#tokens}`;
    this.#rests.set(token, rest);
    return token;
  }
}
