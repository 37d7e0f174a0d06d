// The bell in the header, and the inbox that it opens.

import { isFinal } from '@kubecast/sdk';
import { useNotifications } from '@kubecast/sdk/react';
import { Suspense, useEffect, useRef, useState, type ReactNode } from 'react';
import type { View } from '../view/view.ts';
import { Spoken } from '../scheduling/Spoken.tsx';
import { page } from '../pages/page.tsx';
import { useSeen } from './seen.ts';
import { formatNumber } from '../texts/format.ts';
import { t } from './texts.tsx';
import './inbox.css';

const InboxPanel = page(() => import('./InboxPanel.tsx').then((panel) => panel.InboxPanel));

export function Bell({ view, user }: { view: View; user: string }): ReactNode {
  const inbox = useNotifications();
  const { status, error, unread } = inbox;
  useSeen(view, inbox);
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (!open) return undefined;
    const over = new AbortController();
    const close = (): void => setOpen(false);
    const { signal } = over;
    document.addEventListener('pointerdown', ({ target }) => target instanceof Node && !frame.current?.contains(target) && close(), { signal });
    window.addEventListener('hashchange', close, { signal });
    return () => over.abort();
  }, [open]);

  // Without a history there are none, and no bell.
  if (isFinal({ status }) || (status === 'loading' && !error)) return null;
  const label = unread > 0 ? t.inboxUnread(unread) : t.inbox;
  return (
    <div
      className="bell"
      ref={frame}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !open) return;
        event.stopPropagation();
        setOpen(false);
        button.current?.focus();
      }}
    >
      <button ref={button} type="button" className="bell-button" aria-label={label} title={label} aria-haspopup="dialog" aria-expanded={open} onClick={() => setOpen(!open)}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M3.2 11.5c1-1 1.3-2 1.3-4.2a3.5 3.5 0 0 1 7 0c0 2.2.3 3.2 1.3 4.2zM6.7 13.5a1.4 1.4 0 0 0 2.6 0" />
        </svg>
        {unread > 0 && (
          <span className="bell-count" aria-hidden="true">
            {unread > 99 ? `${formatNumber(99)}+` : formatNumber(unread)}
          </span>
        )}
      </button>
      {/* A count that changes is read out by itself. */}
      <Spoken text={unread > 0 ? t.unread(unread) : ''} asked="" />
      {open && (
        <Suspense fallback={null}>
          <InboxPanel view={view} user={user} />
        </Suspense>
      )}
    </div>
  );
}
