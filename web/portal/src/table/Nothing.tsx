// Why a table is empty: a namespace that is not there is no empty one.

import type { ReactNode } from 'react';
import { t } from '../app/texts.ts';
import { useNamespaces } from '../filters/NamespaceFilter.tsx';
import type { TableName } from '../view/view.ts';

interface NothingProps {
  readonly table: TableName;
  readonly namespace: string;
  readonly visible: readonly string[] | undefined;
}

export function Nothing({ table, namespace, visible }: NothingProps): ReactNode {
  const { data, status } = useNamespaces();
  // Who sees some namespaces only is not told which others there are.
  const missing = namespace !== '' && visible === undefined && status === 'live' && !data.some(({ metadata }) => metadata.name === namespace);
  if (!missing) return <p>{t.empty[table](namespace, visible !== undefined)}</p>;
  return (
    <>
      <p>{t.noNamespace(namespace)}</p>
      <p>{t.noNamespaceWhy}</p>
    </>
  );
}
