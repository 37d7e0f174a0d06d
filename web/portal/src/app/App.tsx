// What is on screen: the sign-in or the workspace.

import { attend } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from 'react';
import { formatTime } from '../texts/format.ts';
import { describe } from '../connection/describe.ts';
import { connectionOf } from '../connection/connection.ts';
import { useNamespaces } from '../filters/NamespaceFilter.tsx';
import { browserSession } from '../session/browser.ts';
import { claimsOf, type Claims } from '../session/session.ts';
import { User } from '../session/user.ts';
import { Offer, PassedOver } from '../signin/Offer.tsx';
import { SignIn } from '../signin/SignIn.tsx';
import { useOffer, useSignIn, type First, type SignedIn, type SignInState } from '../signin/useSignIn.ts';
import { Workspace } from './Workspace.tsx';
import { t } from './texts.ts';

export function App({ first }: { first: First }): ReactNode {
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
  // Nothing that is gone a moment later: most who load the page are signed in.
  if (looking && trouble === '') return <main aria-busy="true" />;
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
      {offered !== undefined && <PassedOver offered={claimsOf(offered)} onClose={onPassOver} />}
      <User value={claims(token).user}>
        <Workspace kc={kc} aside={aside} connection={connection} claims={claims(token)} token={token} stuck={state.stuck} onSignOut={state.leave} />
      </User>
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
