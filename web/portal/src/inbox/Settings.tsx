// Of what a user is told, and how.

import type { JobNotification, NotificationSettings } from '@kubecast/sdk';
import { useNotifications } from '@kubecast/sdk/react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { noticesOn, noticesPossible, turnNoticesOff, turnNoticesOn } from './notices.ts';

const states = ['Submitted', 'Suspended', 'Pending', 'Running', 'Retrying', 'Succeeded', 'Failed', 'Deleted'];
const digests = { '0s': 'each by itself', '1m': 'gathered for a minute', '5m': 'gathered for 5 minutes', '15m': 'gathered for 15 minutes', '1h': 'gathered for an hour' };

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
      (reason: unknown) => here && setFailure(`The settings cannot be read at the moment. ${said(reason)}`),
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
        setFailure(`The gateway did not take that. ${said(reason)}`);
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
      {!settings && !failure && <p className="inbox-none">Loading…</p>}
      {settings && (
        <>
          <fieldset>
            <legend>Tell me when a job of mine is</legend>
            {[...new Set([...states, ...settings.states])].map((state) => (
              <label key={state}>
                <input
                  type="checkbox"
                  checked={settings.states.includes(state)}
                  onChange={({ target }) => change({ states: target.checked ? [...settings.states, state] : settings.states.filter((one) => one !== state) })}
                />
                {state}
              </label>
            ))}
          </fieldset>
          <label>
            Notifications come{' '}
            <select className="field" value={digest} onChange={({ target }) => change({ digest: target.value })}>
              {Object.entries({ ...digests, ...(digest in digests ? {} : { [digest]: `gathered for ${digest}` }) }).map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
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
        Paused until {new Date(until).toLocaleString([], { weekday: 'short', hour: '2-digit', minute: '2-digit' })}: what comes is in the inbox, and nothing pops up.{' '}
        <button type="button" className="button button-small" onClick={() => onChange(undefined)}>
          End the pause
        </button>
      </p>
    );
  }
  return (
    <p role="group" aria-label="Pause">
      Pause for{' '}
      {([['an hour', 1], ['8 hours', 8], ['a day', 24]] as const).map(([text, hours]) => (
        <button key={text} type="button" className="button button-small" onClick={() => onChange(Date.now() + hours * 3_600_000)}>
          {text}
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
    return <p className="inbox-hint">{'Notification' in globalThis && 'locks' in navigator ? 'This browser does not let this page show notices. Its own settings can change that.' : 'This browser cannot show notices for this page.'}</p>;
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
        {on ? 'Stop showing notices in this browser' : 'Show notices in this browser, too'}
      </button>
      <span className="inbox-hint"> Also while another tab is looked at, as long as one of this page is open.</span>
    </p>
  );
}

const said = (reason: unknown): string => (reason instanceof Error ? reason.message : String(reason));

/** As Go writes durations (`1h0m0s`), without the parts that are zero. */
export function shortened(duration: string): string {
  return duration.replace(/(?<=\d[hm])0[ms](?:0s)?$/, '') || '0s';
}
