import type { WatchStatus } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { StateIcon } from '../state/StateMark.tsx';
import { stepsOf, type Life } from './life.ts';

interface TimelineProps {
  readonly life: Life;
  readonly status: WatchStatus;
  readonly message: string | undefined;
}

/** The states through which the job went, the newest first, each with how long it lasted. */
export function Timeline({ life, status, message }: TimelineProps): ReactNode {
  if (status === 'denied') return <p className="none">No history can be shown. {message}</p>;
  const steps = [...stepsOf(life.transitions)].reverse();
  if (steps.length === 0) return <p className="none">{status === 'loading' ? 'Loading…' : 'Nothing was recorded yet.'}</p>;
  return (
    <>
      <ol className="timeline">
        {steps.map(({ seq, to, at, until, lasts, late, attempt, reason, message: why }) => (
          <li key={seq} data-state={to}>
            <StateIcon state={to} />
            <div>
              <span className="state-name">{to}</span>
              {attempt > 1 && <span className="state-detail"> attempt {attempt}</span>}
              {lasts && (
                <span className="timeline-lasts">
                  <Age since={at} until={until} />
                </span>
              )}
              <div className="timeline-at">
                <time dateTime={new Date(at).toISOString()}>{new Date(at).toLocaleString()}</time>
                {late && <span title="It was found after the fact: there may have been states in between."> · seen late</span>}
              </div>
              {(reason || why) && <div className="timeline-why">{[reason, why].filter(Boolean).join(': ')}</div>}
            </div>
          </li>
        ))}
      </ol>
      {life.others > 0 && <p className="none">{life.others === 1 ? 'Another job' : `${life.others} other jobs`} had this name.</p>}
    </>
  );
}
