// Listens for the keys of the whole page, and opens what they ask for.

import { Suspense, useEffect, useState, type ReactNode } from 'react';
import { KeysHelp, Palette } from '../pages/Route.tsx';
import { onKey, type Opened } from './keys.ts';

export function Keys(): ReactNode {
  const [open, setOpen] = useState<Opened>();
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => onKey(event, setOpen);
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
  const onClose = (): void => setOpen(undefined);
  return (
    <Suspense fallback={null}>
      {open === 'help' && <KeysHelp onClose={onClose} />}
      {open === 'palette' && <Palette onClose={onClose} />}
    </Suspense>
  );
}
