import type { ReactNode } from 'react';
import { useNow } from '../age/clock.ts';
import { formatDuration } from '../age/duration.ts';
import type { Claims } from '../session/session.ts';

const soon = 5 * 60_000;

export function Account({ claims, onSignOut }: { claims: Claims; onSignOut: () => void }): ReactNode {
  const now = useNow();
  const left = claims.expiresAt === undefined ? Infinity : claims.expiresAt - now;
  return (
    <div className="account">
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
