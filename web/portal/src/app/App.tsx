// Who is signed in, and with that what is on screen: the sign-in or the workspace.

import { useCallback, useEffect, useState, useSyncExternalStore, type ReactNode } from 'react';
import { formatTime } from '../age/Age.tsx';
import { describe } from '../connection/describe.ts';
import { Feed } from '../feed/feed.ts';
import { frameSchedule } from '../feed/schedule.ts';
import { browserSession, endBrowserSession, loginAddress, onBrowserSessionEnd, sourceOf } from '../session/browser.ts';
import { claimsOf, storedToken, storeToken, takeTokenFromAddress, type Claims } from '../session/session.ts';
import { Offer, PassedOver } from '../signin/Offer.tsx';
import { SignIn } from '../signin/SignIn.tsx';
import { parseView } from '../view/view.ts';
import { Workspace } from './Workspace.tsx';

interface Session {
  /** Undefined: the browser has a cookie. */
  readonly token: string | undefined;
  readonly feed: Feed;
  /** Whether the gateway has accepted the token, or is taken to because it has before. */
  readonly accepted: boolean;
}

function open(token: string | undefined, accepted: boolean): Session {
  const feed = new Feed({
    // There is only this one: a new one has to be pasted.
    token: token === undefined ? undefined : () => token,
    session: sourceOf(browserSession, () => location.reload()),
    namespace: parseView(location.hash).namespace,
    schedule: frameSchedule(),
  });
  return { token, feed, accepted };
}

/** Whose session it is, as far as the page knows. One that is renewed by itself has no end worth telling. */
function claims(token: string | undefined): Claims {
  if (token !== undefined) return claimsOf(token);
  const { username, expiresAt, renewable } = browserSession.info;
  return { user: username ?? '', expiresAt: renewable ? undefined : expiresAt };
}

interface First {
  readonly session: Session | undefined;
  /** Brought by a link, which anybody may have sent: its user decides what becomes of it. */
  readonly offered: string | undefined;
}

/** What the page begins with. Connects, so it is called once, outside of any component. */
export function firstSession(): First {
  const offered = takeTokenFromAddress();
  const kept = storedToken();
  return { session: kept === undefined ? undefined : open(kept, true), offered };
}

export function App({ first }: { first: First }): ReactNode {
  const [session, setSession] = useState(first.session);
  const [offered, setOffered] = useState(first.offered);
  const [reason, setReason] = useState('');
  // A token that was kept is looked at first; else the browser may have a session.
  const [looking, setLooking] = useState(first.session === undefined);
  const [trouble, setTrouble] = useState('');
  const [stuck, setStuck] = useState(false); // could not sign out
  const [login, setLogin] = useState<boolean>(); // undefined: the gateway has not said yet

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
  const byCookie = session !== undefined && session.token === undefined;
  const leave = useCallback(() => {
    if (!byCookie) {
      signOut('');
      return;
    }
    setStuck(false);
    // Who is not sure to be signed out must not be shown that he is.
    endBrowserSession().then(
      () => signOut(''),
      () => setStuck(true),
    );
  }, [byCookie, signOut]);

  useEffect(() => {
    if (byCookie) return onBrowserSessionEnd(() => signOut('You have signed out in another tab.'));
    return undefined;
  }, [byCookie, signOut]);

  // Whether there is a session, and whether one can sign in without a token. Asked again until the gateway says so.
  const signedOut = session === undefined;
  useEffect(() => {
    if (!signedOut || login !== undefined) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    const look = async (): Promise<void> => {
      try {
        const found = looking && (await browserSession.open());
        if (!looking) await browserSession.look();
        if (over) return;
        setLogin(browserSession.info.login);
        setLooking(false);
        setTrouble('');
        if (found) setSession(open(undefined, true));
      } catch {
        if (over) return;
        const what = browserSession.info.renewable ? 'Your session cannot be renewed' : 'The gateway cannot be reached';
        setTrouble(`${what} at the moment. Trying again…`);
        timer = setTimeout(() => void look(), 2_000);
      }
    };
    void look();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [signedOut, looking, login]);

  // A link with a token may be opened in a tab that is here already; that changes the fragment only.
  useEffect(() => {
    const onHash = (): void => {
      const token = takeTokenFromAddress();
      if (token !== undefined) setOffered(token);
    };
    window.addEventListener('hashchange', onHash);
    return () => window.removeEventListener('hashchange', onHash);
  }, []);

  const passOver = useCallback(() => setOffered(undefined), []);
  if (!session) {
    // Only once it is known that there is no session: a link never comes before it.
    if (offered !== undefined && !looking) {
      return (
        <Offer
          claims={claimsOf(offered)}
          onAccept={() => {
            passOver();
            signIn(offered);
          }}
          onRefuse={passOver}
        />
      );
    }
    const here = (login ?? browserSession.info.login) ? loginAddress : undefined;
    const waiting = looking && trouble === '';
    return <SignIn reason={reason || trouble} looking={waiting} checking={false} trouble="" login={here} onToken={signIn} onCancel={() => undefined} />;
  }
  return (
    <SignedIn
      key={session.token ?? ''}
      session={session}
      onAccepted={() => {
        storeToken(session.token);
        setSession((now) => (now === session ? { ...session, accepted: true } : now));
      }}
      onSignOut={signOut}
      offered={offered === session.token ? undefined : offered}
      onPassOver={passOver}
      stuck={stuck}
      onLeave={leave}
    />
  );
}

interface SignedInProps {
  readonly session: Session;
  /** A link with another's token was opened. */
  readonly offered: string | undefined;
  readonly onPassOver: () => void;
  readonly onAccepted: () => void;
  /** The gateway wants to be told anew who this is. */
  readonly onSignOut: (why: string) => void;
  /** The user wanted to go, and could not. */
  readonly stuck: boolean;
  /** The user wants to go. */
  readonly onLeave: () => void;
}

function SignedIn({ session, offered, onPassOver, onAccepted, onSignOut, stuck, onLeave }: SignedInProps): ReactNode {
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
  return (
    <>
      {offered !== undefined && <PassedOver offered={claimsOf(offered)} onClose={onPassOver} />}
      <Workspace feed={feed} claims={claims(token)} stuck={stuck} onSignOut={onLeave} />
    </>
  );
}
