import { useState, type ReactNode } from 'react';
import { Logo } from '../app/Logo.tsx';
import { cleanToken } from '../session/session.ts';
import './signin.css';

interface SignInProps {
  /** Why the user is here again, if that needs saying. */
  readonly reason: string;
  /** Whether there is a session is not known yet. */
  readonly looking?: boolean;
  /** Where one signs in without a token; undefined: nowhere. */
  readonly login?: (() => string) | undefined;
  /** The token at hand is being tried. */
  readonly checking: boolean;
  /** What stands in the way of trying it, such as an unreachable gateway. */
  readonly trouble: string;
  readonly onToken: (token: string) => void;
  readonly onCancel: () => void;
}

export function SignIn({ reason, looking = false, login, checking, trouble, onToken, onCancel }: SignInProps): ReactNode {
  const [typed, setTyped] = useState('');
  const [malformed, setMalformed] = useState(false);
  const message = malformed ? 'This is no token: a token is one long word of letters, digits, dots and dashes.' : reason;
  // Nothing that is gone a moment later: most who load the page are signed in.
  if (looking) return <main className="signin" aria-busy="true" />;

  return (
    <main className="signin">
      <form
        className="signin-card"
        onSubmit={(event) => {
          event.preventDefault();
          const token = cleanToken(typed);
          setMalformed(token === undefined);
          if (token !== undefined) onToken(token);
        }}
      >
        <h1>
          <Logo /> Kubecast
        </h1>
        <p className="signin-lead">Your cluster’s jobs and pods, live.</p>

        {message && !checking && (
          <p className="signin-message" role="alert" id="signin-message">
            {message}
          </p>
        )}
        {login && !checking && (
          <p className="signin-login">
            <a
              className="button button-primary"
              href={login()}
              onClick={(event) => {
                event.currentTarget.href = login(); // the view may have changed since
              }}
            >
              Sign in
            </a>
            <span>or with a token:</span>
          </p>
        )}

        <label htmlFor="token">Token</label>
        <input
          id="token"
          className="field"
          type="password"
          autoFocus={!login}
          autoComplete="off"
          spellCheck={false}
          placeholder="eyJ…"
          value={typed}
          disabled={checking}
          aria-invalid={message !== '' && !checking}
          aria-describedby={message && !checking ? 'signin-message signin-how' : 'signin-how'}
          onChange={(event) => {
            setTyped(event.target.value);
            setMalformed(false);
          }}
        />
        <div className="signin-actions">
          <button type="submit" className={login ? 'button' : 'button button-primary'} disabled={checking || typed.trim() === ''}>
            {checking ? 'Signing in…' : login ? 'Use the token' : 'Sign in'}
          </button>
          {checking && (
            <button type="button" className="button" onClick={onCancel}>
              Cancel
            </button>
          )}
        </div>
        {checking && (
          <p className="signin-trouble" role="status">
            {trouble}
          </p>
        )}

        <section id="signin-how" className="signin-how">
          <h2>How to get one</h2>
          <p>From your platform’s identity provider. On a gateway of your own that trusts a development key, sign one yourself:</p>
          <code className="signin-code">
            gateway token --key <var>FILE</var> --user <var>NAME</var> --group <var>GROUP</var>
          </code>
          <p>It stays in this browser tab and is forgotten when the tab is closed.</p>
        </section>
      </form>
    </main>
  );
}
