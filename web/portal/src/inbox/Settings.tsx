// Of what a user is told, and how.

import type { JobNotification, NotificationSettings } from '@kubecast/sdk';
import { useNotifications } from '@kubecast/sdk/react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { noticesOn, noticesPossible, turnNoticesOff, turnNoticesOn } from './notices.ts';
import { stateName } from '../state/texts.ts';
import { formatWeekday } from '../texts/format.ts';
import { t } from './texts.tsx';

const states = ['Submitted', 'Queued', 'Suspended', 'Pending', 'Running', 'Retrying', 'Succeeded', 'Failed', 'Cancelled', 'Deleted'];
const digests = { '0s': t.each, '1m': t.gathered(1), '5m': t.gathered(5), '15m': t.gathered(15), '1h': t.gathered(60) };

interface SettingsProps {
  readonly user: string;
  readonly items: readonly JobNotification[];
}

export function Settings({ user, items }: SettingsProps): ReactNode {
  const { settings: load, setSettings: save } = useNotifications();
  const [settings, setSettings] = useState<NotificationSettings>();
  const [failure, setFailure] = useState('');
  const turns = useRef(0);

  useEffect(() => {
    let here = true;
    load().then(
      (loaded) => here && setSettings(loaded),
      (reason: unknown) => here && setFailure(`${t.notRead} ${said(reason)}`),
    );
    return () => {
      here = false;
    };
    // Once, when they are opened: `load` is the same for the same gateway.
  }, [load]);

  const change = (part: Partial<NotificationSettings>): void => {
    if (!settings) return;
    const next = { ...settings, ...part };
    const turn = ++turns.current;
    setSettings(next);
    setFailure('');
    save(next).then(
      (kept) => turn === turns.current && setSettings(kept), // else another change is under way
      (reason: unknown) => {
        if (turn === turns.current) setSettings(settings);
        setFailure(`${t.notTaken} ${said(reason)}`);
      },
    );
  };
  const digest = settings ? shortened(settings.digest) : '';
  return (
    <div className="inbox-settings">
      {failure && (
        <p className="inbox-trouble" role="alert">
          {failure}
        </p>
      )}
      {!settings && !failure && <p className="inbox-none">{t.loading}</p>}
      {settings && (
        <>
          <fieldset>
            <legend>{t.tellMe}</legend>
            {[...new Set([...states, ...settings.states])].map((state) => (
              <label key={state}>
                <input
                  type="checkbox"
                  checked={settings.states.includes(state)}
                  onChange={({ target }) => change({ states: target.checked ? [...settings.states, state] : settings.states.filter((one) => one !== state) })}
                />
                {stateName(state)}
              </label>
            ))}
          </fieldset>
          <label>
            {t.come(
            <select className="field" value={digest} onChange={({ target }) => change({ digest: target.value })}>
              {Object.entries({ ...digests, ...(digest in digests ? {} : { [digest]: t.gatheredFor(digest) }) }).map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>,
            )}
          </label>
          <Pause until={settings.pausedUntil} onChange={(pausedUntil) => change({ pausedUntil })} />
        </>
      )}
      <Notices user={user} items={items} />
    </div>
  );
}

function Pause({ until, onChange }: { until: number | undefined; onChange: (until: number | undefined) => void }): ReactNode {
  const [now] = useState(() => Date.now());
  if (until !== undefined && until > now) {
    return (
      <p>
        {t.pausedUntil(formatWeekday(until))}{' '}
        <button type="button" className="button button-small" onClick={() => onChange(undefined)}>
          {t.endPause}
        </button>
      </p>
    );
  }
  return (
    <p role="group" aria-label={t.pause}>
      {t.pauseFor}{' '}
      {[1, 8, 24].map((hours) => (
        <button key={hours} type="button" className="button button-small" onClick={() => onChange(Date.now() + hours * 3_600_000)}>
          {t.hours(hours)}
        </button>
      ))}
    </p>
  );
}

/** Whether this browser shows them, too. It is asked for permission only when somebody wants that. */
function Notices({ user, items }: SettingsProps): ReactNode {
  const [on, setOn] = useState(() => noticesOn(user));
  const [refused, setRefused] = useState(false);
  if (!noticesPossible() || refused) {
    return <p className="inbox-hint">{'Notification' in globalThis && 'locks' in navigator ? t.noticesRefused : t.noticesImpossible}</p>;
  }
  const toggle = async (): Promise<void> => {
    if (on) turnNoticesOff(user);
    else if (!(await turnNoticesOn(user, items))) {
      setRefused(Notification.permission === 'denied');
      return;
    }
    setOn(!on);
  };
  return (
    <p>
      <button type="button" className="button" aria-pressed={on} onClick={() => void toggle()}>
        {on ? t.stopNotices : t.showNotices}
      </button>
      <span className="inbox-hint"> {t.noticesHint}</span>
    </p>
  );
}

const said = (reason: unknown): string => (reason instanceof Error ? reason.message : String(reason));

/** As Go writes durations (`1h0m0s`), without the parts that are zero. */
export function shortened(duration: string): string {
  return duration.replace(/(?<=\d[hm])0[ms](?:0s)?$/, '') || '0s';
}
