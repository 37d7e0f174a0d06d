// Listens for the keys of the whole page, and opens what they ask for.

import { Suspense, useEffect, useState, type ReactNode } from 'react';
import { KeysHelp } from '../pages/Route.tsx';
import { onKey } from './keys.ts';

export function Keys(): ReactNode {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => onKey(event, () => setOpen(true));
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
  return <Suspense fallback={null}>{open && <KeysHelp onClose={() => setOpen(false)} />}</Suspense>;
}
