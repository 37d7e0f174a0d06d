// The saved views: to go to, to name, to rename, to overwrite and to delete.

import { useRef, useState, type ReactNode, type SyntheticEvent } from 'react';
import { useCopied } from '../clipboard/useCopied.ts';
import { useView } from '../view/view.ts';
import { longestName, most, nameOf, shownOf, tableAt, useSaved, type Refusal, type SavedView } from './saved.ts';
import { summaryOf } from './summary.ts';
import { t } from './texts.ts';
import './saved.css';

export function Saved(): ReactNode {
  const view = useView();
  const [views, saved] = useSaved();
  const at = tableAt(view);
  const shown = shownOf(views, view);
  const list = useRef<HTMLUListElement>(null);
  const [opened, setOpened] = useState('');
  const [refused, setRefused] = useState<string>();
  const [done, setDone] = useState('');

  /** Tells how it went; whether it did. */
  const tell = (refusal: Refusal | undefined, success: string): boolean => {
    setRefused(refusal && t.refusals[refusal]);
    setDone(refusal ? '' : success);
    return refusal === undefined;
  };
  /** What had the focus may be gone. */
  const settle = (): void => {
    setOpened('');
    list.current?.focus();
  };

  return (
    <section className="saved" aria-label={t.saved}>
      {at !== undefined && (
        <NameForm name="" label={t.name} action={t.save} onName={(name) => tell(saved.add(name, at), t.wasSaved)} />
      )}
      <p role="alert" className="saved-refused">{refused}</p>
      <p role="status" className="unseen">{done}</p>
      {views.length === 0 && <p className="saved-none">{t.none}</p>}
      <ul ref={list} tabIndex={-1} aria-label={t.saved}>
        {views.map((one) => (
          <li key={one.name}>
            <div className="saved-line">
              <a href={one.at} aria-current={one === shown ? 'true' : undefined} data-closes>
                <bdi translate="no">{one.name}</bdi> <bdi className="saved-summary" translate="no">{summaryOf(one.at)}</bdi>
              </a>
              <button type="button" className="button button-small" aria-label={t.change(one.name)} aria-expanded={opened === one.name} onClick={() => setOpened(opened === one.name ? '' : one.name)}>
                …
              </button>
            </div>
            {opened === one.name && (
              <Changes
                of={one}
                onRename={(name) => {
                  const renamed = tell(saved.rename(one.name, name), t.wasRenamed);
                  if (renamed) settle();
                  return renamed;
                }}
                onOverwrite={at === undefined || one.at === at ? undefined : () => {
                  tell(saved.overwrite(one.name, at), t.wasOverwritten);
                  settle();
                }}
                onDelete={() => {
                  tell(saved.remove(one.name), t.wasDeleted);
                  settle();
                }}
              />
            )}
          </li>
        ))}
      </ul>
      {views.length >= most && <p className="saved-none">{t.full(most)}</p>}
    </section>
  );
}

interface ChangesProps {
  readonly of: SavedView;
  readonly onRename: (name: string) => boolean;
  /** Undefined: it is what is on screen already. */
  readonly onOverwrite: (() => void) | undefined;
  readonly onDelete: () => void;
}

function Changes({ of: { name, at }, onRename, onOverwrite, onDelete }: ChangesProps): ReactNode {
  const [copied, copy] = useCopied();
  return (
    <div className="saved-changes">
      <NameForm name={name} label={t.newName} action={t.rename} onName={onRename} />
      {onOverwrite && (
        <button type="button" className="button button-small" onClick={onOverwrite}>
          {t.overwrite}
        </button>
      )}
      {/* Browsers offer it only to pages that came by TLS, or from this machine. */}
      {'clipboard' in navigator && (
        <button type="button" className="button button-small" onClick={() => copy(new URL(at, location.href).href)}>
          {copied ? t.copied : t.copy}
        </button>
      )}
      <button type="button" className="button button-small" onClick={onDelete}>
        {t.delete}
      </button>
    </div>
  );
}

interface NameFormProps {
  readonly name: string;
  readonly label: string;
  readonly action: string;
  /** Returns whether it was taken. */
  readonly onName: (name: string) => boolean;
}

function NameForm({ name, label, action, onName }: NameFormProps): ReactNode {
  const [typed, setTyped] = useState(name);
  const next = nameOf(typed);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (next !== '' && onName(next)) setTyped(name);
  };
  return (
    <form className="saved-form" onSubmit={submit}>
      <input className="field" aria-label={label} placeholder={label} value={typed} maxLength={longestName} autoComplete="off" dir="auto" onChange={({ target }) => setTyped(target.value)} />
      <button type="submit" className="button" disabled={next === '' || next === name}>
        {action}
      </button>
    </form>
  );
}
