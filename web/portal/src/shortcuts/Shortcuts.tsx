// Listens for the keys of the whole page, and opens what they ask for; the palette has a button, too.

import { Suspense, useCallback, useEffect, useState, type ReactNode } from 'react';
import { KeysHelp, Palette } from '../pages/Route.tsx';
import { NotLoaded } from '../pages/page.tsx';
import { giveTypedAhead, onKey, onMac, type Opened } from './shortcuts.ts';
import { t } from './texts.ts';
import './shortcuts.css';

export function Shortcuts({ onDevtools }: { onDevtools?: () => void }): ReactNode {
  const [open, setOpen] = useState<Opened>();
  const [failed, setFailed] = useState(false);
  const begin = useCallback((what: Opened): void => {
    setFailed(false);
    setOpen(what);
  }, []);
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => onKey(event, (what) => (what === 'devtools' ? onDevtools?.() : begin(what)));
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, [onDevtools, begin]);
  const onClose = (): void => setOpen(undefined);
  const onFailed = useCallback((): void => {
    giveTypedAhead(() => undefined); // keys are the page's again
    setOpen(undefined);
    setFailed(true);
  }, []);
  return (
    <>
      <button type="button" className="button keys-go" aria-keyshortcuts="Control+K Meta+K" onClick={() => begin('palette')}>
        <svg className="keys-icon" viewBox="0 0 16 16" aria-hidden="true">
          <path d="M10.5 10.5L14 14M7 11.5a4.5 4.5 0 1 1 0-9 4.5 4.5 0 0 1 0 9z" />
        </svg>
        <span className="keys-words">{t.goTo}</span> <kbd translate="no">{onMac() ? '⌘ K' : 'Ctrl K'}</kbd>
      </button>
      <Suspense fallback={null}>
        {open === 'help' && <KeysHelp onClose={onClose} onFailed={onFailed} />}
        {open === 'palette' && <Palette onClose={onClose} onFailed={onFailed} />}
      </Suspense>
      {failed && (
        <div className="keys-failed">
          <NotLoaded />
          <button type="button" className="button" onClick={() => setFailed(false)}>
            {t.close}
          </button>
        </div>
      )}
    </>
  );
}
