import type { Collection, KubeObject, Snapshot } from '@kubecast/sdk';
import { useMemo, useState, useSyncExternalStore, type ReactNode } from 'react';
import { setView } from '../view/view.ts';
import { t } from './texts.ts';

interface NamespacesProps extends Omit<NamespaceSelectProps, 'names'> {
  readonly namespaces: Collection<KubeObject> | undefined;
}

/** {@link NamespaceSelect}, kept current by the stream. */
export function NamespacesOf({ namespaces, ...props }: NamespacesProps): ReactNode {
  const { subscribe, getSnapshot } = namespaces ?? none;
  const { items } = useSyncExternalStore(subscribe, getSnapshot);
  const names = useMemo(() => items.map(({ metadata }) => metadata.name), [items]);
  return <NamespaceSelect names={names} {...props} />;
}

interface NamespaceSelectProps {
  /** What the cluster has; empty for whom may not list them. */
  readonly names: readonly string[];
  /** Those in which the user may see something; undefined: they may in all. */
  readonly visible: readonly string[] | undefined;
  readonly selected: string;
}

/** The namespaces to choose from. Those in which nothing may be seen are no choice. */
export function NamespaceSelect({ names, visible, selected }: NamespaceSelectProps): ReactNode {
  const choices = useMemo(() => {
    const all = new Set(visible ?? names);
    if (selected) all.add(selected); // deleted, or not told yet
    return [...all].sort();
  }, [names, visible, selected]);
  return (
    <select className="field" aria-label={t.namespace} value={selected} onChange={(event) => setView({ namespace: event.target.value })}>
      <option value="">{everything(visible)}</option>
      {choices.map((name) => (
        <option key={name} translate="no">{name}</option>
      ))}
    </select>
  );
}

const noSnapshot: Snapshot<KubeObject> = { items: [], phase: 'loading', stale: undefined, namespaces: undefined };
const none: Collection<KubeObject> = { subscribe: () => () => undefined, getSnapshot: () => noSnapshot };

function everything(visible: readonly string[] | undefined): string {
  if (!visible) return t.allNamespaces;
  if (visible.length === 0) return t.allVisible; // by its name, wherever it is
  return t.yourNamespaces(visible.length);
}

/** For those who may neither list namespaces nor see what is in any, but perhaps in one whose name they know. */
export function NamespaceInput({ selected }: { selected: string }): ReactNode {
  const [typed, setTyped] = useState(selected);
  const [before, setBefore] = useState(selected);
  if (before !== selected) {
    setBefore(selected);
    setTyped(selected);
  }
  const name = typed.trim();
  return (
    <form
      className="namespace-form"
      onSubmit={(event) => {
        event.preventDefault();
        setView({ namespace: name });
      }}
    >
      <input
        className="field"
        aria-label={t.namespace}
        placeholder={t.namespace}
        value={typed}
        spellCheck={false}
        autoCapitalize="none"
        autoComplete="off"
        onChange={(event) => setTyped(event.target.value)}
      />
      {name !== selected && (
        <button type="submit" className="button">
          {name === '' ? t.showAll : t.show}
        </button>
      )}
    </form>
  );
}
