// The namespace to which a page is narrowed: to choose from, or to be entered.

import { isFinal } from '@kubecast/sdk';
import { useWatch } from '@kubecast/sdk/react';
import { useMemo, useState, type ReactNode } from 'react';
import { namespaces } from '../job/resources.ts';
import { setView } from '../view/view.ts';
import { t } from './texts.ts';
import './filters.css';

const fields = ['metadata.name'];

/** The namespaces of the cluster, as far as the user may list them. */
export function useNamespaces() {
  return useWatch(namespaces, { fields });
}

interface NamespaceFilterProps {
  readonly selected: string;
  /** Those in which something may be seen, where that is not all; the others are no choice. See `useVisible`. */
  readonly visible?: readonly string[] | undefined;
}

/** Who may neither list namespaces nor knows of any types one. */
export function NamespaceFilter({ selected, visible }: NamespaceFilterProps): ReactNode {
  const { data, status } = useNamespaces();
  const choices = useMemo(() => {
    const all = new Set(visible ?? data.map(({ metadata }) => metadata.name));
    if (selected) all.add(selected); // deleted, or not told yet
    return [...all].sort();
  }, [data, visible, selected]);
  if (isFinal({ status }) && !visible) return <NamespaceInput selected={selected} />;
  return (
    <select className="field" aria-label={t.namespace} value={selected} onChange={(event) => setView({ namespace: event.currentTarget.value })}>
      <option value="">{everything(visible)}</option>
      {choices.map((name) => (
        <option key={name} translate="no">
          {name}
        </option>
      ))}
    </select>
  );
}

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
