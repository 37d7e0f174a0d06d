// The page of an object of whatever kind but jobs, pods and nodes, which have pages of their own.

import type { ReactNode } from 'react';
import { Notice } from '../app/Notice.tsx';
import { useKinds } from '../kinds/discovery.ts';
import type { View } from '../view/view.ts';
import { AnyPage } from './AnyPage.tsx';
import { t } from './texts.ts';

export function ObjectPage({ view, namespace, name }: { view: View; namespace: string; name: string }): ReactNode {
  const { data: kinds, error, retry } = useKinds();
  const kind = kinds?.find(({ id }) => id === view.kind);
  if (kind) return <AnyPage view={view} kind={kind} namespace={namespace} name={name} />;
  if (!kinds && !error) return <p className="page-wait">{t.loading}</p>;
  return (
    <Notice title={t.cannotBeShown} said={error?.message} onRetry={retry}>
      {kinds && t.noKind}
    </Notice>
  );
}
