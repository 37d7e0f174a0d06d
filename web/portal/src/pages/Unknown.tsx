import type { ReactNode } from 'react';
import { linkTo, type View } from '../view/view.ts';
import { t } from './texts.ts';

/** What an address shows that leads nowhere: a page in its place would be taken for what was meant. */
export function Unknown({ view }: { readonly view: View }): ReactNode {
  return (
    <div className="notice">
      <h1>{t.unknown}</h1>
      <p>{t.unknownWhy}</p>
      <a href={linkTo('mine', { ...view, unknown: undefined })}>{t.toMine}</a>
    </div>
  );
}
