// Listens for the keys of the whole page, and opens what they ask for; the palette has a button, too.

import { Suspense, useEffect, useState, type ReactNode } from 'react';
import { KeysHelp, Palette } from '../pages/Route.tsx';
import { onKey, onMac, type Opened } from './shortcuts.ts';
import { t } from './texts.ts';
import './shortcuts.css';

export function Shortcuts({ onDevtools }: { onDevtools?: () => void }): ReactNode {
  const [open, setOpen] = useState<Opened>();
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => onKey(event, (what) => (what === 'devtools' ? onDevtools?.() : setOpen(what)));
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, [onDevtools]);
  const onClose = (): void => setOpen(undefined);
  return (
    <>
      <button type="button" className="button keys-go" aria-keyshortcuts="Control+K Meta+K" onClick={() => setOpen('palette')}>
        <svg className="keys-icon" viewBox="0 0 16 16" aria-hidden="true">
          <path d="M10.5 10.5L14 14M7 11.5a4.5 4.5 0 1 1 0-9 4.5 4.5 0 0 1 0 9z" />
        </svg>
        <span className="keys-words">{t.goTo}</span> <kbd translate="no">{onMac() ? '⌘ K' : 'Ctrl K'}</kbd>
      </button>
      <Suspense fallback={null}>
        {open === 'help' && <KeysHelp onClose={onClose} />}
        {open === 'palette' && <Palette onClose={onClose} />}
      </Suspense>
    </>
  );
}
