import { useState, type ReactNode } from 'react';
import { Logo } from '../app/Logo.tsx';
import { cleanToken } from '../session/session.ts';
import { LanguageChoice } from '../app/LanguageChoice.tsx';
import { t } from './texts.tsx';
import './signin.css';

interface SignInProps {
  /** Why the user is here again, if that needs saying. */
  readonly reason: string;
  /** Where one signs in without a token; undefined: nowhere. */
  readonly login?: (() => string) | undefined;
  /** The token at hand is being tried. */
  readonly checking: boolean;
  /** What stands in the way of trying it, such as an unreachable gateway. */
  readonly trouble: string;
  readonly onToken: (token: string) => void;
  readonly onCancel: () => void;
}

export function SignIn({ reason, login, checking, trouble, onToken, onCancel }: SignInProps): ReactNode {
  const [typed, setTyped] = useState('');
  const [malformed, setMalformed] = useState(false);
  const message = malformed ? t.malformed : reason;

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
        <h1 translate="no">
          <Logo /> Kubecast
        </h1>
        <p className="signin-lead">{t.lead}</p>

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
              {t.signIn}
            </a>
            <span>{t.orToken}</span>
          </p>
        )}

        <label htmlFor="token">{t.token}</label>
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
            {checking ? t.signingIn : login ? t.useToken : t.signIn}
          </button>
          {checking && (
            <button type="button" className="button" onClick={onCancel}>
              {t.cancel}
            </button>
          )}
        </div>
        {checking && (
          <p className="signin-trouble" role="status">
            {trouble}
          </p>
        )}

        <section id="signin-how" className="signin-how">
          <h2>{t.how}</h2>
          <p>{t.howText}</p>
          <code className="signin-code" translate="no">
            gateway token --key <var>{t.file}</var> --user <var>{t.name}</var> --group <var>{t.group}</var>
          </code>
          <p>{t.staysHere}</p>
        </section>
      </form>
      <LanguageChoice />
    </main>
  );
}
