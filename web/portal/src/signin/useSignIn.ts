// Who is signed in: by the browser's session with the gateway, for which a token that was pasted or came with a link is exchanged; or, where that
// is not possible, by the token itself.

import { createKubecast, type Kubecast } from '@kubecast/sdk';
import { tabs } from '@kubecast/sdk/tabs';
import { useCallback, useEffect, useRef, useState } from 'react';
import { frameSchedule } from '../scheduling/schedule.ts';
import { base } from '../session/base.ts';
import { browserSession, endBrowserSession, exchange, loginAddress, onBrowserSessionEnd, onOtherUser, onSignIn, sourceOf, tellUser, Spare } from '../session/browser.ts';
import { storedToken, storeToken, takeTokenFromAddress } from '../session/session.ts';
import { t } from '../session/texts.ts';

export interface SignedIn {
  /** Undefined: the browser has a cookie. */
  readonly token: string | undefined;
  /** Of a session that a token became in this page. */
  readonly spare?: Spare | undefined;
  /** Whatever is on screen is followed on its one stream. */
  readonly kc: Kubecast;
  /** Has a stream of its own, if anything of it is followed, and goes on while nobody looks. */
  readonly aside: Kubecast;
  /** Whether the gateway has accepted the token, or is taken to because it has before. */
  readonly accepted: boolean;
}

export interface First {
  readonly session: SignedIn | undefined;
  /** Brought by a link, which anybody may have sent: its user decides what becomes of it. */
  readonly offered: string | undefined;
}

/** What the page begins with. Called once, outside of any component. */
export function firstSession(): First {
  const offered = takeTokenFromAddress();
  const kept = storedToken();
  return { session: kept === undefined ? undefined : open(kept, true), offered };
}

export interface SignInState {
  readonly session: SignedIn | undefined;
  /** Why nobody is signed in any more, or not yet. */
  readonly reason: string;
  /** Whether the browser has a session is not known yet. */
  readonly looking: boolean;
  readonly trouble: string;
  /** Where one signs in at the provider; undefined: there is no such place. */
  readonly login: (() => string) | undefined;
  /** The user wanted to go, and could not. */
  readonly stuck: boolean;
  readonly signIn: (token: string) => void;
  /** The gateway knows the user. */
  readonly accept: () => void;
  /** The gateway wants to be told anew who this is. */
  readonly signOut: (why: string) => void;
  /** The user wants to go. */
  readonly leave: () => void;
}

export function useSignIn(first: SignedIn | undefined): SignInState {
  const [session, setSession] = useState(first);
  const [reason, setReason] = useState('');
  const [stuck, setStuck] = useState(false);

  const replace = useCallback(
    (next: SignedIn | undefined, why: string) => {
      session?.kc.close();
      session?.aside.close();
      setSession(next);
      setReason(why);
    },
    [session],
  );
  const signIn = useCallback((token: string) => replace(open(token, false), ''), [replace]);
  const exchanged = useRef<SignedIn>(undefined);
  const accept = useCallback(() => {
    if (session?.token === undefined || exchanged.current === session) return;
    exchanged.current = session;
    const { token } = session;
    void exchange(token).then((there) => {
      if (exchanged.current !== session) {
        if (there) browserSession.end().catch(() => undefined); // the user has given it up meanwhile
      } else if (there) {
        tellUser();
        replace(open(undefined, true, new Spare(token)), '');
      } else {
        storeToken(token);
        setSession((now) => (now === session ? { ...session, accepted: true } : now));
      }
    });
  }, [session, replace]);
  const signOut = useCallback(
    (why: string) => {
      exchanged.current = undefined;
      storeToken(undefined);
      replace(undefined, why);
    },
    [replace],
  );

  const byCookie = session !== undefined && session.token === undefined;
  const spare = session?.spare;
  const leaving = useRef<SignedIn>(undefined);
  const leave = useCallback(() => {
    if (!byCookie) {
      signOut('');
      return;
    }
    setStuck(false);
    spare?.forget();
    leaving.current = session;
    // A user must not be shown that they are signed out as long as that is not sure.
    endBrowserSession().then(
      () => signOut(''),
      () => {
        leaving.current = undefined;
        setStuck(true);
      },
    );
  }, [byCookie, session, spare, signOut]);
  useEffect(() => {
    // What this page says to the others it hears itself.
    if (byCookie) return onBrowserSessionEnd(() => leaving.current !== session && signOut(t.otherTab), spare);
    return undefined;
  }, [byCookie, session, spare, signOut]);
  useEffect(() => {
    if (byCookie) return onOtherUser(() => location.reload());
    return undefined;
  }, [byCookie]);

  // A token that was kept is looked at first; else the browser may have a session.
  const found = useCallback(() => setSession(open(undefined, true)), []);
  // Who signs in in another tab has done so for this one, too, whoever was signed out of it.
  const signedOut = session === undefined;
  useEffect(() => {
    if (!signedOut) return undefined;
    let over = false;
    const stop = onSignIn(() => {
      const look = browserSession.look().then(({ username }) => !over && username !== undefined && found());
      look.catch(() => undefined); // it can be signed in here, as before
    });
    return () => {
      over = true;
      stop();
    };
  }, [signedOut, found]);
  const look = useBrowserSession(session === undefined, first === undefined, found);
  return { session, reason, stuck, ...look, signIn, accept, signOut, leave };
}

/**
 * Whether the browser has a session, and whether one can sign in without a token. Asked while nobody is signed in, again and again
 * until the gateway says so. After a token that was kept a session is not looked for: whoever signed out wants to stay so.
 */
function useBrowserSession(signedOut: boolean, first: boolean, found: () => void): Pick<SignInState, 'looking' | 'trouble' | 'login'> {
  const [looking, setLooking] = useState(first);
  const [trouble, setTrouble] = useState('');
  const [login, setLogin] = useState<boolean>(); // undefined: the gateway has not said yet

  useEffect(() => {
    if (!signedOut || login !== undefined) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    const look = async (): Promise<void> => {
      try {
        const there = looking && (await browserSession.open());
        if (!looking) await browserSession.look();
        if (over) return;
        setLogin(browserSession.info.login);
        setLooking(false);
        setTrouble('');
        if (!there) return;
        tellUser();
        found();
      } catch {
        if (over) return;
        setTrouble(browserSession.info.renewable ? t.notRenewed : t.notReached);
        timer = setTimeout(() => void look(), lookAgain);
      }
    };
    void look();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [signedOut, looking, login, found]);

  return { looking, trouble, login: (login ?? browserSession.info.login) ? loginAddress : undefined };
}

/** In milliseconds. */
const lookAgain = 2_000;

/** A token that a link brought, until something has become of it; and how to pass it over. */
export function useOffer(first: string | undefined): readonly [offered: string | undefined, passOver: () => void] {
  const [offered, setOffered] = useState(first);
  // A link may be opened in a tab that is here already; that changes the fragment only.
  useEffect(() => {
    const onHash = (): void => {
      const token = takeTokenFromAddress();
      if (token !== undefined) setOffered(token);
    };
    window.addEventListener('hashchange', onHash);
    return () => window.removeEventListener('hashchange', onHash);
  }, []);
  return [offered, useCallback(() => setOffered(undefined), [])];
}

/** Of all tabs of this browser: over HTTP/1.1 it has six connections to the gateway. */
const share = tabs();

function open(token: string | undefined, accepted: boolean, spare?: Spare): SignedIn {
  const options = {
    gateway: base,
    // There is only this one: a new one has to be pasted.
    token: token === undefined ? undefined : () => token,
    session: sourceOf(browserSession, () => location.reload(), spare),
    share,
  };
  const kc = createKubecast({ ...options, schedule: frameSchedule() });
  const aside = createKubecast(options); // told without frames, which a hidden page has none of
  if (document.visibilityState === 'hidden') kc.pause(); // before it asks for anything
  return { token, spare, kc, aside, accepted };
}
