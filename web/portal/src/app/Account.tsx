import type { ReactNode } from 'react';
import { useNow } from '../age/clock.ts';
import { useMediaQuery } from '../table/useMediaQuery.ts';
import { formatDate, formatDuration } from '../texts/format.ts';
import type { Claims } from '../session/session.ts';
import { LanguageChoice } from './LanguageChoice.tsx';
import { t } from './texts.ts';

const soon = 5 * 60_000;

interface AccountProps {
  readonly claims: Claims;
  /** No other tab is signed in by what signs this one in. */
  readonly alone: boolean;
  readonly stuck: boolean;
  readonly onSignOut: () => void;
}

export function Account({ claims, alone, stuck, onSignOut }: AccountProps): ReactNode {
  const now = useNow();
  // All of the header stands in one row: there what is seldom needed is behind a button.
  const narrow = useMediaQuery('(max-width: 700px)');
  const left = claims.expiresAt === undefined ? Infinity : claims.expiresAt - now;
  const rest = (
    <>
      {claims.user && (
        <span className="account-name" translate="no" title={claims.expiresAt === undefined ? claims.user : t.userUntil(claims.user, formatDate(claims.expiresAt))}>
          {claims.user}
        </span>
      )}
      {alone && (
        <span className="account-alone" title={t.thisTabWhy}>
          {t.thisTab}
        </span>
      )}
      <LanguageChoice />
      <button type="button" className="button" onClick={onSignOut}>
        {t.signOut}
      </button>
    </>
  );
  return (
    <div className="account">
      {stuck && (
        <span className="account-ending" role="alert">
          {t.stillSignedIn}
        </span>
      )}
      {left < soon && <span className="account-ending">{left > 0 ? t.endsIn(formatDuration(left)) : t.endsNow}</span>}
      {narrow ? (
        <details className="account-more">
          <summary className="button" aria-label={t.account} />
          <div>{rest}</div>
        </details>
      ) : (
        rest
      )}
    </div>
  );
}
