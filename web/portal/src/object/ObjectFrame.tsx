// What the pages of single objects have in common: where one is, how far it can be trusted, the facts at the side, and tabs.

import { isFinal, type Status } from '@kubecast/sdk';
import type { KeyboardEvent, ReactNode } from 'react';
import { Forbidden } from '../app/Notice.tsx';
import { Copied } from '../job/Copied.tsx';
import { formatNumber } from '../texts/format.ts';
import { setView, type View } from '../view/view.ts';
import { BackLink, type Back } from './BackLink.tsx';
import { t } from './texts.ts';
import { useStandingInTitle, type Standing } from './title.ts';
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
  /** The table that lists it. */
  readonly table: Back;
  /** Beside the name, such as its state. */
  readonly mark?: ReactNode;
  /** For the browser's title; undefined: not known, or it has no state. */
  readonly standing?: Standing | undefined;
  /** What kubectl would be asked, but for the namespace; it ends with the name. Undefined: kubectl can say nothing of it. */
  readonly command: string | undefined;
  readonly watched: { readonly status: Status; readonly error: { readonly message: string } | undefined; readonly retry: () => void };
  readonly there: boolean;
  /** Something is known of it that is not told by the object itself, as by its history. */
  readonly known?: boolean;
  /** Said if it is not there, although nothing is wrong. */
  readonly missing: string;
  readonly facts: ReactNode;
  /** The first is shown unless another one is asked for. */
  readonly tabs: readonly Tab[];
}

export function ObjectFrame({ view, namespace, name, table, mark, standing, command, watched, there, known = false, missing, facts, tabs }: ObjectFrameProps): ReactNode {
  const { status, error, retry } = watched;
  useStandingInTitle(name, standing);
  const tab = tabs.find(({ id }) => id === view.tab) ?? tabs[0];
  const safe = nameable.test(name) && (namespace === '' || nameable.test(namespace));
  return (
    <div className="job">
      <header className="job-head">
        <BackLink view={view} table={table} />
        <h1 translate="no">{name}</h1>
        <span className="job-namespace" translate="no">
          {namespace}
        </span>
        {mark}
        {tab && <ToTabs to={tab} />}
        {safe && command !== undefined && <Copied text={`kubectl ${namespace && `-n ${namespace} `}${command} ${name}`} />}
      </header>
      {status === 'denied' && !there && !known ? (
        <Forbidden said={error?.message} onRetry={retry} />
      ) : (
        <>
          <Trouble status={status} message={error?.message} there={there} missing={missing} onRetry={retry} />
          <div className="job-body">
            <section className="job-facts" aria-label={t.facts}>
              {facts}
            </section>
            <section className="job-main" aria-label={t.details}>
              <Tabs tabs={tabs} shown={tab} />
              <div className="job-panel" role="tabpanel" id="job-panel" aria-labelledby={tab && idOf(tab)}>
                {tab?.content()}
              </div>
            </section>
          </div>
        </>
      )}
    </div>
  );
}

/** On a phone the facts stand above the tabs, a screen or two high: a log's last lines are one touch away all the same. */
function ToTabs({ to }: { readonly to: Tab }): ReactNode {
  const go = (): void => {
    const tab = document.getElementById(idOf(to));
    tab?.closest('.job-main')?.scrollIntoView({ block: 'start' });
    tab?.focus({ preventScroll: true });
  };
  return (
    <button type="button" className="button button-small to-tabs" onClick={go}>
      {to.title} <span aria-hidden="true">↓</span>
    </button>
  );
}

const idOf = ({ id }: Tab): string => `job-tab-${id}`;

/** One of them is in the order of the tab key; arrow keys go to the others, which are shown at once. */
function Tabs({ tabs, shown }: { readonly tabs: readonly Tab[]; readonly shown: Tab | undefined }): ReactNode {
  const show = (n: number): void => setView({ tab: n === 0 ? '' : (tabs[n]?.id ?? '') });
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const at = tabs.findIndex(({ id }) => id === shown?.id);
    const to: Partial<Record<string, number>> = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 };
    const n = to[event.key];
    if (n === undefined) return;
    event.preventDefault();
    show(n % tabs.length);
    event.currentTarget.querySelectorAll('button')[n % tabs.length]?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label={t.details} onKeyDown={onKeyDown}>
      {tabs.map((tab, n) => (
        <button key={tab.id} id={idOf(tab)} type="button" role="tab" aria-selected={tab === shown} aria-controls={tab === shown ? 'job-panel' : undefined} tabIndex={tab === shown ? 0 : -1} onClick={() => show(n)}>
          {tab.title} {tab.count !== undefined && <span className="chip-count">{formatNumber(tab.count)}</span>}
        </button>
      ))}
    </div>
  );
}

interface TroubleProps {
  readonly status: Status;
  readonly message: string | undefined;
  readonly there: boolean;
  readonly missing: string;
  readonly onRetry: () => void;
}

/** Why there is nothing to show, or not all; nothing if there is. How old it is, is told around the page. */
function Trouble({ status, message = '', there, missing, onRetry }: TroubleProps): ReactNode {
  let text: ReactNode;
  if (isFinal({ status })) {
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
