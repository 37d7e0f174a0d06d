import { type Inbox, isFinal } from '@kubecast/sdk';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { onUnread } from './notices.ts';

/** How many are unread, also while nobody looks at this page and it follows nothing; undefined: nobody knows. */
export function useUnread(inbox: Inbox, user: string): number | undefined {
  const { status, unread } = useSyncExternalStore(inbox.subscribe, inbox.getSnapshot);
  const [told, setTold] = useState<number>();
  useEffect(() => onUnread(user, setTold), [user]);
  if (status === 'live') return unread;
  return isFinal({ status }) || status === 'loading' ? undefined : (told ?? unread);
}
