// Who is signed in, and with that what is on screen: the sign-in or the workspace.

import { useCallback, useEffect, useState, useSyncExternalStore, type ReactNode } from 'react';
import { formatTime } from '../age/Age.tsx';
import { describe } from '../connection/describe.ts';
import { Feed } from '../feed/feed.ts';
import { frameSchedule } from '../feed/schedule.ts';
import { storedToken, storeToken, takeTokenFromAddress } from '../session/session.ts';
import { SignIn } from '../signin/SignIn.tsx';
import { parseView } from '../view/view.ts';
import { Workspace } from './Workspace.tsx';

interface Session {
  readonly token: string;
  readonly feed: Feed;
  /** Whether the gateway has accepted the token, or is taken to because it has before. */
  readonly accepted: boolean;
}

function open(token: string, accepted: boolean): Session {
  const feed = new Feed({
    // There is only this one: a new one has to be pasted.
    token: () => token,
    namespace: parseView(location.hash).namespace,
    schedule: frameSchedule(),
  });
  return { token, feed, accepted };
}

/** What the page begins with. Connects, so it is called once, outside of any component. */
export function firstSession(): Session | undefined {
  const brought = takeTokenFromAddress();
  if (brought !== undefined) return open(brought, false);
  const kept = storedToken();
  return kept === undefined ? undefined : open(kept, true);
}

export function App({ first }: { first: Session | undefined }): ReactNode {
  const [session, setSession] = useState(first);
  const [reason, setReason] = useState('');

  const replaceSession = useCallback(
    (next: Session | undefined, why: string) => {
      session?.feed.close();
      setSession(next);
      setReason(why);
    },
    [session],
  );
  const signIn = useCallback((token: string) => replaceSession(open(token, false), ''), [replaceSession]);
  const signOut = useCallback(
    (why: string) => {
      storeToken(undefined);
      replaceSession(undefined, why);
    },
    [replaceSession],
  );

  // A link with a token may be opened in a tab that is here already; that changes the fragment only.
  useEffect(() => {
    const onHash = (): void => {
      const token = takeTokenFromAddress();
      if (token !== undefined) signIn(token);
    };
    window.addEventListener('hashchange', onHash);
    return () => window.removeEventListener('hashchange', onHash);
  }, [signIn]);

  if (!session) return <SignIn reason={reason} checking={false} trouble="" onToken={signIn} onCancel={() => undefined} />;
  return (
    <SignedIn
      key={session.token}
      session={session}
      onAccepted={() => {
        storeToken(session.token);
        setSession((now) => (now === session ? { ...session, accepted: true } : now));
      }}
      onSignOut={signOut}
    />
  );
}

interface SignedInProps {
  readonly session: Session;
  readonly onAccepted: () => void;
  readonly onSignOut: (why: string) => void;
}

function SignedIn({ session, onAccepted, onSignOut }: SignedInProps): ReactNode {
  const { feed, accepted, token } = session;
  const { live } = useSyncExternalStore(feed.subscribe, feed.getSnapshot);
  const state = useSyncExternalStore(live.connection.subscribe, live.connection.getSnapshot);

  const refused = state.phase === 'denied' && state.reason === 'http:401';
  // Being told what one may not see is being known.
  const known = state.phase === 'live' || state.phase === 'stale' || (state.phase === 'denied' && !refused);

  useEffect(() => {
    if (refused) {
      const said = state.message ? ` The gateway says: ${state.message}` : '';
      onSignOut(accepted ? `You have been signed out.${said}` : `The gateway does not accept this token.${said}`);
    } else if (known && !accepted) {
      onAccepted();
    }
  }, [refused, known, accepted, state.message, onAccepted, onSignOut]);

  // What the network does in the background a person should not have to wait for.
  useEffect(() => {
    const retry = (): void => {
      if (document.visibilityState === 'visible' && !feed.getSnapshot().live.closed) feed.retry();
    };
    window.addEventListener('online', retry);
    document.addEventListener('visibilitychange', retry);
    return () => {
      window.removeEventListener('online', retry);
      document.removeEventListener('visibilitychange', retry);
    };
  }, [feed]);

  if (!accepted) {
    const trouble = describe(state, formatTime).detail;
    return <SignIn reason="" checking trouble={known ? '' : trouble} onToken={() => undefined} onCancel={() => onSignOut('')} />;
  }
  return <Workspace feed={feed} token={token} onSignOut={() => onSignOut('')} />;
}
