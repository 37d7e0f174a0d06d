import type { ReactNode } from 'react';
import { useNow } from '../age/clock.ts';
import { formatDuration } from '../texts/format.ts';
import type { Claims } from '../session/session.ts';

const soon = 5 * 60_000;

export function Account({ claims, stuck, onSignOut }: { claims: Claims; stuck: boolean; onSignOut: () => void }): ReactNode {
  const now = useNow();
  const left = claims.expiresAt === undefined ? Infinity : claims.expiresAt - now;
  return (
    <div className="account">
      {stuck && (
        <span className="account-ending" role="alert">
          You are still signed in: the gateway cannot be reached
        </span>
      )}
      {left < soon && <span className="account-ending">Sign-in ends {left > 0 ? `in ${formatDuration(left)}` : 'now'}</span>}
      {claims.user && (
        <span className="account-name" title={claims.expiresAt === undefined ? claims.user : `${claims.user}, until ${new Date(claims.expiresAt).toLocaleString()}`}>
          {claims.user}
        </span>
      )}
      <button type="button" className="button" onClick={onSignOut}>
        Sign out
      </button>
    </div>
  );
}
