// A link that brought a token. Whoever sends somebody such a link would have them work as the sender and not notice, so a
// link signs nobody in by itself, and never in place of a session.

import type { ReactNode } from 'react';
import { Logo } from '../app/Logo.tsx';
import type { Claims } from '../session/session.ts';
import { t } from './texts.tsx';
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
        <h1 translate="no">
          <Logo /> Kubecast
        </h1>
        <p className="signin-lead">
          {t.signsYouIn(claims.user ? <strong translate="no">{claims.user}</strong> : <strong>{t.unnamed}</strong>)}
        </p>
        <p className="signin-offer">{t.goOn}</p>
        <div className="signin-actions">
          <button type="submit" className="button button-primary" autoFocus onClick={onAccept}>
            {t.signIn}
          </button>
          <button type="button" className="button" onClick={onRefuse}>
            {t.notMe}
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
        {t.passedOver(offered.user ? <strong translate="no">{offered.user}</strong> : <strong>{t.somebodyElse}</strong>)}
      </span>
      <button type="button" className="button" onClick={onClose}>
        {t.allRight}
      </button>
    </p>
  );
}
