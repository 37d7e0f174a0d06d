// A link that brought a token. Whoever sends somebody such a link would have them work as the sender and not notice, so a
// link signs nobody in by itself, and never in place of a session.

import type { ReactNode } from 'react';
import { Logo } from '../app/Logo.tsx';
import type { Claims } from '../session/session.ts';
import './signin.css';

interface OfferProps {
  readonly claims: Claims;
  readonly onAccept: () => void;
  readonly onRefuse: () => void;
}

/** Asks whether to sign in with the token of a link. */
export function Offer({ claims, onAccept, onRefuse }: OfferProps): ReactNode {
  return (
    <main className="signin">
      <div className="signin-card">
        <h1>
          <Logo /> Kubecast
        </h1>
        <p className="signin-lead">
          This link signs you in as <strong>{claims.user || 'somebody whom it does not name'}</strong>.
        </p>
        <p className="signin-offer">Go on if that is you, and the link is from your own terminal or somebody you trust.</p>
        <div className="signin-actions">
          <button type="submit" className="button button-primary" autoFocus onClick={onAccept}>
            Sign in
          </button>
          <button type="button" className="button" onClick={onRefuse}>
            Not me
          </button>
        </div>
      </div>
    </main>
  );
}

interface PassedOverProps {
  readonly offered: Claims;
  readonly onClose: () => void;
}

/** Tells who is signed in that a link was passed over. */
export function PassedOver({ offered, onClose }: PassedOverProps): ReactNode {
  return (
    <p className="signin-passed" role="alert">
      <span>
        The link that you opened would have signed you in as <strong>{offered.user || 'somebody else'}</strong>. You are still who you were; to use it, sign out
        first.
      </span>
      <button type="button" className="button" onClick={onClose}>
        All right
      </button>
    </p>
  );
}
