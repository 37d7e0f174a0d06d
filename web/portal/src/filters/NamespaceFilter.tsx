// The namespace to which a page is narrowed, for pages that follow what they show by themselves.

import { defineResource, type KubeObject } from '@kubecast/sdk';
import { useWatch } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { setView } from '../view/view.ts';
import { NamespaceInput } from './NamespacePicker.tsx';
import { t } from './texts.ts';
import './filters.css';

const namespaces = defineResource<KubeObject>()({ version: 'v1', plural: 'namespaces' });
const fields = ['metadata.name'];

/** `visible`: those in which something may be seen, where that is not all. Who may neither list namespaces nor knows of any types one. */
export function NamespaceFilter({ selected, visible }: { selected: string; visible?: readonly string[] | undefined }): ReactNode {
  const { data, status } = useWatch(namespaces, { fields });
  const names = useMemo(() => {
    const all = new Set(visible ?? data.map(({ metadata }) => metadata.name));
    if (selected) all.add(selected); // deleted, or not told yet
    return [...all].sort();
  }, [data, visible, selected]);
  if (status === 'denied' && !visible) return <NamespaceInput selected={selected} />;
  const all = !visible ? t.allNamespaces : visible.length === 0 ? t.allVisible : t.yourNamespaces(visible.length);
  return (
    <select className="field" aria-label={t.namespace} value={selected} onChange={(event) => setView({ namespace: event.currentTarget.value })}>
      <option value="">{all}</option>
      {names.map((name) => (
        <option key={name} translate="no">
          {name}
        </option>
      ))}
    </select>
  );
}
