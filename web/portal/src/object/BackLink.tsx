// Leads from the page of an object to where somebody came from, by that page's name; to its table, where the page was opened by a link of elsewhere.

import type { ReactNode } from 'react';
import { goBack, useOrigin } from '../navigation/origin.ts';
import { t as pages } from '../pages/texts.ts';
import { formatView, type View } from '../view/view.ts';
import { t } from './texts.ts';

export interface Back {
  readonly href: string;
  readonly title: string;
  /** The title is the cluster's, and has no translation. */
  readonly foreign?: boolean;
}

export function BackLink({ view, table }: { readonly view: View; /** The one that lists the object. */ readonly table: Back }): ReactNode {
  const origin = useOrigin();
  const { href, title, foreign } = origin ? backTo(origin, view, table) : table;
  return (
    <a className="job-back" href={href} translate={foreign ? 'no' : undefined} onClick={origin && goBack}>
      {t.back(title)}
    </a>
  );
}

function backTo(origin: View, { page, kind, object, cluster }: View, table: Back): Back {
  const href = formatView(origin);
  const isHere = origin.page === page && origin.kind === kind;
  const elsewhere = origin.cluster !== '' && origin.cluster !== cluster ? ` · ${origin.cluster}` : '';
  if (origin.object) {
    const { namespace, name } = origin.object;
    // The name stands in the heading already.
    const isNamesake = isHere && namespace === object?.namespace && name === object.name && elsewhere === '';
    return isNamesake ? { href, title: t.otherRun } : { href, title: name + elsewhere, foreign: true };
  }
  if (isHere) return { ...table, href, title: table.title + elsewhere };
  return origin.kind === '' ? { href, title: pages.titles[origin.page] + elsewhere } : { href, title: origin.kind + elsewhere, foreign: true };
}
