import type { Collection, KubeObject } from '@kubecast/sdk';
import { useMemo, useState, useSyncExternalStore, type ReactNode } from 'react';
import { setView } from '../view/view.ts';

/** The namespaces to choose from, kept current by the stream. */
export function NamespaceSelect({ namespaces, selected }: { namespaces: Collection<KubeObject>; selected: string }): ReactNode {
  const { items } = useSyncExternalStore(namespaces.subscribe, namespaces.getSnapshot);
  const names = useMemo(() => {
    const all = new Set(items.map(({ metadata }) => metadata.name));
    if (selected) all.add(selected); // deleted, or not told yet
    return [...all].sort();
  }, [items, selected]);
  return (
    <select className="field" aria-label="Namespace" value={selected} onChange={(event) => setView({ namespace: event.target.value })}>
      <option value="">All namespaces</option>
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

/** For those who may not list namespaces, and therefore have to know the name. */
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
        aria-label="Namespace"
        placeholder="Namespace"
        value={typed}
        spellCheck={false}
        autoCapitalize="none"
        autoComplete="off"
        onChange={(event) => setTyped(event.target.value)}
      />
      {name !== selected && (
        <button type="submit" className="button">
          {name === '' ? 'Show all' : 'Show'}
        </button>
      )}
    </form>
  );
}
