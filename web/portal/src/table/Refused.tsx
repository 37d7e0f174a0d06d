// What stands in a table's place when the gateway does not show it.

import { isFinal } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Notice } from '../app/Notice.tsx';
import { t } from '../app/texts.ts';
import { useNamespaces } from '../filters/NamespaceFilter.tsx';
import type { TableName } from '../view/view.ts';

interface RefusedProps {
  readonly table: TableName;
  readonly namespace: string;
  readonly visible: readonly string[] | undefined;
  /** `failed`: trying again by itself would not mend it. */
  readonly status: 'denied' | 'failed';
  readonly error: { readonly message: string } | undefined;
  readonly onRetry: () => void;
}

export function Refused({ table, namespace, visible, status, error, onRetry }: RefusedProps): ReactNode {
  const { status: listing } = useNamespaces();
  const listed = visible !== undefined || !isFinal({ status: listing });
  if (status === 'failed') {
    return (
      <Notice title={t.ended} said={error?.message} onRetry={onRetry}>
        {t.endedWhy}
      </Notice>
    );
  }
  return (
    <Notice title={t.forbidden[table](namespace)} said={error?.message} onRetry={onRetry}>
      {namespace ? t.nameRight : t.yourOwn} {listed ? t.choose : t.enter}
    </Notice>
  );
}
