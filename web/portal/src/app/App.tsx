// What is on screen: the sign-in or the workspace.

import { attend } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { Suspense, useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from 'react';
import { formatTime } from '../texts/format.ts';
import { describe } from '../connection/describe.ts';
import { connectionOf } from '../connection/connection.ts';
import { useNamespaces } from '../filters/NamespaceFilter.tsx';
import { browserSession } from '../session/browser.ts';
import { page } from '../pages/page.tsx';
import { claimsOf, type Claims } from '../session/session.ts';
import { useOffer, useSignIn, type First, type SignedIn, type SignInState } from '../signin/useSignIn.ts';
import { Workspace } from './Workspace.tsx';
import { t } from './texts.ts';
import '../signin/signin.css'; // here, so that one signs in although the styles are missing

// Most who load the page are signed in.
const Offer = page(() => import('../signin/Offer.tsx').then((offer) => offer.Offer));
const PassedOver = page(() => import('../signin/Offer.tsx').then((offer) => offer.PassedOver));
const SignIn = page(() => import('../signin/SignIn.tsx').then((form) => form.SignIn));

export function App({ first }: { first: First }): ReactNode {
  return (
    <Suspense fallback={<Busy />}>
      <Shown first={first} />
    </Suspense>
  );
}

/** Nothing that is gone a moment later. */
function Busy(): ReactNode {
  return <main aria-busy="true" />;
}

function Shown({ first }: { first: First }): ReactNode {
  const state = useSignIn(first.session);
  const [offered, passOver] = useOffer(first.offered);
  const { session, looking, trouble, signIn } = state;
  const useless = session?.accepted === true && offered !== undefined && bringsNothing(offered, session.token);
  useEffect(() => {
    if (useless) passOver();
  }, [useless, passOver]);
  if (session) {
    return <Inside key={session.token ?? ''} session={session} state={state} offered={useless ? undefined : offered} onPassOver={passOver} />;
  }
  // Only once it is known that there is no session: a link never comes before it.
  if (offered !== undefined && !looking) {
    const accept = (): void => {
      passOver();
      signIn(offered);
    };
    return <Offer claims={claimsOf(offered)} onAccept={accept} onRefuse={passOver} />;
  }
  if (looking && trouble === '') return <Busy />;
  const reason = state.reason || trouble;
  return <SignIn reason={reason} checking={false} trouble="" login={state.login} onToken={signIn} onCancel={() => undefined} />;
}

/** Who is signed in already, and for as long, need not be told that a link would have done that. */
function bringsNothing(offered: string, token: string | undefined): boolean {
  const [theirs, ours] = [claimsOf(offered), claims(token)];
  return offered === token || (theirs.user !== '' && theirs.user === ours.user && (theirs.expiresAt ?? Infinity) <= (ours.expiresAt ?? Infinity));
}

interface InsideProps {
  readonly session: SignedIn;
  readonly state: SignInState;
  /** A link with another's token was opened. */
  readonly offered: string | undefined;
  readonly onPassOver: () => void;
}

function Inside({ session, state, offered, onPassOver }: InsideProps): ReactNode {
  const { kc, aside, accepted, token } = session;
  const { accept, signOut } = state;
  const connection = useMemo(() => connectionOf(kc), [kc]);
  const now = useSyncExternalStore(connection.subscribe, connection.getSnapshot);

  const [ends] = useState(() => claims(token).expiresAt ?? Infinity);
  const refused = now.status === 'denied' && now.error?.reason === 'http:401';
  const message = now.error?.message ?? '';
  // Being told what one may not see is being known.
  const known = now.status === 'live' || (now.status === 'stale' && now.reason !== 'reconnecting' && now.reason !== 'paused') || (now.status === 'denied' && !refused);

  useEffect(() => {
    if (refused) {
      const said = message ? ` ${t.gatewaySays(message)}` : '';
      // A browser forgets a cookie at its end, so the gateway cannot tell that there was one.
      if (accepted && (message === expired || ends <= Date.now())) signOut(t.expired);
      else signOut((accepted ? t.signedOut : t.notAccepted) + said);
    } else if (known && !accepted) {
      accept();
    }
  }, [refused, known, accepted, message, ends, accept, signOut]);

  useEffect(() => attend(kc), [kc]);

  if (!accepted) {
    const trouble = describe(now, formatTime).detail;
    return (
      <KubecastProvider client={kc}>
        <Knock />
        <SignIn reason="" checking trouble={known ? '' : trouble} onToken={() => undefined} onCancel={() => signOut('')} />
      </KubecastProvider>
    );
  }
  return (
    <>
      {offered !== undefined && (
        <Suspense>
          <PassedOver offered={claimsOf(offered)} onClose={onPassOver} />
        </Suspense>
      )}
      <Workspace kc={kc} aside={aside} connection={connection} claims={claims(token)} token={token} stuck={state.stuck} onSignOut={state.leave} />
    </>
  );
}

/** What the gateway says of a token whose time is over. */
const expired = 'token expired';

/** Asks for something, to see whether the gateway knows who asks. */
function Knock(): ReactNode {
  useNamespaces();
  return null;
}

/** Whose session it is, as far as the page knows. One that is renewed by itself has no end worth telling. */
function claims(token: string | undefined): Claims {
  if (token !== undefined) return claimsOf(token);
  const { username, expiresAt, renewable } = browserSession.info;
  return { user: username ?? '', expiresAt: renewable ? undefined : expiresAt };
}
