// What the user was told of their jobs, the newest first.

import type { JobNotification, Transition, Which } from '@kubecast/sdk';
import { useNotifications } from '@kubecast/sdk/react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { useServed, viewIn } from '../clusters/served.ts';
import { t as ofClusters } from '../clusters/texts.ts';
import { formatDate, formatTime } from '../texts/format.ts';
import { StateIcon } from '../state/StateMark.tsx';
import { inWordsOf, saidOf } from '../state/said.ts';
import { whyOf } from '../state/why.ts';
import { urgency } from '../state/tone.ts';
import { linkToRun, type View } from '../view/view.ts';
import { page, Waiting } from '../pages/page.tsx';
import { stateName } from '../state/texts.ts';
import { useExplained } from './explained.ts';
import { t } from './texts.tsx';

const Settings = page(() => import('./Settings.tsx').then((settings) => settings.Settings));

/** So many stand there at first, and come at a click. */
const some = 50;

export function InboxPanel({ view, user }: { view: View; user: string }): ReactNode {
  const { data: told, unread, status, reason, asOf, error, markRead, retry } = useNotifications();
  const items = useExplained(told);
  const [shown, setShown] = useState(some);
  const [adjusting, setAdjusting] = useState(false);
  const [failure, setFailure] = useState('');
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus(), []);

  const mark = (which: Which): void => {
    setFailure('');
    markRead(which).catch((reason: unknown) => setFailure(`${t.notTaken} ${reason instanceof Error ? reason.message : ''}`));
  };
  const newest = items[0];
  const named = new Map<string, number>();
  for (const item of items) named.set(nameOf(item), (named.get(nameOf(item)) ?? 0) + 1);
  return (
    <section ref={panel} className="inbox" role="dialog" aria-label={t.inbox} tabIndex={-1}>
      <div className="inbox-head">
        <h2>{adjusting ? t.notifications : t.inbox}</h2>
        {!adjusting && newest && unread > 0 && (
          <button
            type="button"
            className="button button-small"
            onClick={() => {
              panel.current?.focus(); // the button goes with the last that is unread
              mark({ upTo: newest.id });
            }}
          >
            {t.markAll}
          </button>
        )}
        <button type="button" className="button button-small" aria-pressed={adjusting} onClick={() => setAdjusting(!adjusting)}>
          {adjusting ? t.back : t.settings}
        </button>
      </div>
      {failure && (
        <p className="inbox-trouble" role="alert">
          {failure}
        </p>
      )}
      {status !== 'live' && reason !== 'catching-up' && (
        <p className="inbox-trouble" role="status">
          {asOf === undefined ? t.notTold : t.notToldSince(formatTime(asOf))} <span translate="no">{/^(left-out|goodbye:)/.test(error?.reason ?? '') ? '' : error?.message}</span>
          <button type="button" className="button button-small" onClick={retry}>
            {t.tryNow}
          </button>
        </p>
      )}
      {adjusting ? (
        <Waiting>
          <Settings user={user} items={items} />
        </Waiting>
      ) : items.length === 0 ? (
        <p className="inbox-none">{status === 'loading' ? t.unknown : t.none}</p>
      ) : (
        <ul className="inbox-items">
          {items.slice(0, shown).map((item) => (
            <Item key={item.id} item={item} view={view} named={named.get(nameOf(item)) ?? 0} onRead={() => mark({ ids: [item.id] })} />
          ))}
          {items.length > shown && (
            <li className="inbox-older">
              <button type="button" className="button button-small" onClick={() => setShown(shown + some)}>
                {t.older}
              </button>
            </li>
          )}
        </ul>
      )}
    </section>
  );
}

/** What runs of one name have in common: then only their times tell them apart. */
const nameOf = ({ id, transition }: JobNotification): string => (transition ? [transition.cluster, transition.namespace, transition.name].join('/') : id);

interface ItemProps {
  readonly item: JobNotification;
  readonly view: View;
  /** How many are of jobs of this name. */
  readonly named: number;
  readonly onRead: () => void;
}

function Item({ item, view, named, onRead }: ItemProps): ReactNode {
  const { kind, title, at, transition, read } = item;
  const served = useServed();
  const entry = useRef<HTMLLIElement>(null);
  const markRead = (): void => {
    // The button goes, and focus with it; the next one's is what who uses the keyboard is after.
    const next = entry.current?.nextElementSibling?.querySelector<HTMLElement>('a, summary');
    (next ?? entry.current?.querySelector<HTMLElement>('a, summary'))?.focus();
    onRead();
  };
  const text = transition ? t.title(transition.name, stateName(transition.to), inWordsOf(title, transition.reason)) : t.digest(item.digest.length + item.more, title);
  const why = transition && transition.to !== 'Succeeded' && whyOf(transition);
  return (
    <li ref={entry} data-id={item.id} data-unread={!read || undefined}>
      <StateIcon state={transition?.to ?? worst(item.digest) ?? kind} />
      <div className="inbox-told">
        {transition ? (
          <a href={linkToRun(transition, viewIn(served, view, transition.cluster))} translate="no" onClick={read ? undefined : onRead}>
            {text}
          </a>
        ) : (
          <Digest item={item} view={view} />
        )}
        <div className="inbox-when">
          {transition && (
            <>
              <span translate="no">{[served.length > 1 && ofClusters.named(transition.cluster), transition.namespace].filter(Boolean).join(' · ')}</span> ·{' '}
            </>
          )}
          {t.ago(<Age since={at} />)}
          {named > 1 && <> · <time dateTime={new Date(at).toISOString()}>{formatDate(at)}</time></>}
          {item.silent && ` · ${t.silent}`}
        </div>
        {why && !text.includes(why) && <div className="inbox-why" translate="no">{why}</div>}
      </div>
      {!read && (
        <button type="button" className="inbox-mark" translate="no" aria-label={t.markOne(text)} title={t.markAsRead} onClick={markRead}>
          <span aria-hidden="true" />
        </button>
      )}
    </li>
  );
}

/** What of several deserves to be seen first. */
const worst = (of: readonly Transition[]): string | undefined => [...of].sort((a, b) => urgency(a.to) - urgency(b.to))[0]?.to;

/** Several that came together; what they were opens below. */
function Digest({ item, view }: { item: JobNotification; view: View }): ReactNode {
  const served = useServed();
  return (
    <details>
      <summary>{t.digest(item.digest.length + item.more, item.title)}</summary>
      <ul>
        {item.digest.map((one: Transition) => (
          <li key={`${one.uid} ${one.seq}`}>
            <StateIcon state={one.to} />
            <a href={linkToRun(one, viewIn(served, view, one.cluster))} translate="no">{one.name}</a>
            <span className="state-detail" translate="no">{[served.length > 1 && ofClusters.named(one.cluster), stateName(one.to), one.cause ? saidOf(one.cause) : one.reason].filter(Boolean).join(' · ')}</span>
          </li>
        ))}
      </ul>
      {item.more > 0 && <p className="inbox-when">{t.andMore(item.more)}</p>}
    </details>
  );
}
