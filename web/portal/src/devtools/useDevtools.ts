// The SDK's devtools, which are not loaded before somebody asks for them: by `?devtools` in the address, or by a key.

import type { Kubecast } from '@kubecast/sdk';
import { useCallback, useEffect, useRef } from 'react';

/** Returns what opens them, and opens them at once if the address says so. They go when the client goes. */
export function useDevtools(kc: Kubecast): () => void {
  const opened = useRef<{ close: (() => void) | undefined }>(undefined);
  const open = useCallback(() => {
    if (opened.current) return;
    const mine: { close: (() => void) | undefined } = { close: undefined };
    opened.current = mine;
    const forget = (): void => {
      if (opened.current === mine) opened.current = undefined;
    };
    import('@kubecast/sdk/devtools').then(({ mountDevtools }) => {
      if (opened.current === mine) mine.close = mountDevtools(kc, { onClose: forget });
    }, forget); // it can be tried again
  }, [kc]);
  useEffect(() => {
    if (new URLSearchParams(location.search).has('devtools')) open();
    return () => {
      opened.current?.close?.();
      opened.current = undefined;
    };
  }, [open]);
  return open;
}
