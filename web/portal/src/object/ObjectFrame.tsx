// What the pages of single objects have in common: where one is, how far it can be trusted, the facts at the side, and tabs.

import type { WatchStatus } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Copied } from '../job/Copied.tsx';
import { formatNumber } from '../texts/format.ts';
import { setView, type View } from '../view/view.ts';
import { t } from './texts.ts';
import '../job/job.css';
import './object.css';

/** What can be a name. Anything else comes from a link that somebody made up, and a shell might take it for more than a name. */
const nameable = /^[a-z0-9]([-a-z0-9.:]*[a-z0-9])?$/;

export interface Tab {
  readonly id: string;
  readonly title: string;
  readonly count?: number | undefined;
  readonly content: () => ReactNode;
}

interface ObjectFrameProps {
  readonly view: View;
  readonly namespace: string;
  readonly name: string;
  /** The table to go back to. */
  readonly back: { readonly href: string; readonly title: string; /** The title is the cluster's, and has no translation. */ readonly foreign?: boolean };
  /** Beside the name, such as its state. */
  readonly mark?: ReactNode;
  /** What kubectl would be asked, but for the namespace; it ends with the name. */
  readonly command: string;
  readonly watched: { readonly status: WatchStatus; readonly error: { readonly message: string } | undefined; readonly retry: () => void };
  readonly there: boolean;
  /** Said if it is not there, although nothing is wrong. */
  readonly missing: string;
  readonly facts: ReactNode;
  /** The first is shown unless another one is asked for. */
  readonly tabs: readonly Tab[];
}

export function ObjectFrame({ view, namespace, name, back, mark, command, watched, there, missing, facts, tabs }: ObjectFrameProps): ReactNode {
  const { status, error, retry } = watched;
  const tab = tabs.find(({ id }) => id === view.tab) ?? tabs[0];
  const safe = nameable.test(name) && (namespace === '' || nameable.test(namespace));
  return (
    <div className="job">
      <header className="job-head">
        <a className="job-back" href={back.href} translate={back.foreign ? 'no' : undefined}>
          {t.back(back.title)}
        </a>
        <h1 translate="no">{name}</h1>
        <span className="job-namespace" translate="no">
          {namespace}
        </span>
        {mark}
        {safe && <Copied text={`kubectl ${namespace && `-n ${namespace} `}${command} ${name}`} />}
      </header>
      <Trouble status={status} message={error?.message} there={there} missing={missing} onRetry={retry} />
      <div className="job-body">
        <section className="job-facts" aria-label={t.facts}>
          {facts}
        </section>
        <section className="job-main" aria-label={t.details}>
          <nav className="tabs" aria-label={t.details}>
            {tabs.map(({ id, title, count }, n) => (
              <button key={id} type="button" aria-current={id === tab?.id ? 'true' : undefined} onClick={() => setView({ tab: n === 0 ? '' : id })}>
                {title} {count !== undefined && <span className="chip-count">{formatNumber(count)}</span>}
              </button>
            ))}
          </nav>
          {tab?.content()}
        </section>
      </div>
    </div>
  );
}

interface TroubleProps {
  readonly status: WatchStatus;
  readonly message: string | undefined;
  readonly there: boolean;
  readonly missing: string;
  readonly onRetry: () => void;
}

/** Why there is nothing to show, or not all; nothing if there is. How old it is, is told around the page. */
function Trouble({ status, message = '', there, missing, onRetry }: TroubleProps): ReactNode {
  let text: ReactNode;
  if (status === 'denied' || status === 'closed') {
    text = (
      <>
        {t.cannotBeShown} <span translate="no">{message}</span>{' '}
        <button type="button" className="button button-small" onClick={onRetry}>
          {t.tryAgain}
        </button>
      </>
    );
  } else if (status === 'live' && !there) text = missing;
  return (
    <div role="status">
      {text !== undefined && <p className="job-trouble">{text}</p>}
    </div>
  );
}

/** A list of facts; those that are not there are left out. */
export function Facts({ facts }: { facts: readonly (readonly [string, ReactNode] | undefined | false)[] }): ReactNode {
  return (
    <dl>
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]} className="fact">
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
