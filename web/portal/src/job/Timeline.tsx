import { isFinal, type PastJob, type Status } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { t as age } from '../age/texts.ts';
import { StateIcon } from '../state/StateMark.tsx';
import { stepsOf, type Life } from './life.ts';
import { saidOf } from '../state/said.ts';
import { stateName } from '../state/texts.ts';
import { formatDate } from '../texts/format.ts';
import { t } from './texts.ts';

interface TimelineProps {
  readonly life: Life;
  readonly status: Status;
  readonly message: string | undefined;
  /** Of the job as it is now, what the page says above; undefined: nothing. */
  readonly told?: Pick<PastJob, 'message'> | undefined;
}

/** The states through which the job went, the newest first, each with how long it lasted. */
export function Timeline({ life, status, message, told }: TimelineProps): ReactNode {
  if (isFinal({ status })) return (
      <p className="none">
        {t.timeline.denied} <span translate="no">{message}</span>
      </p>
    );
  const steps = [...stepsOf(life.transitions)].reverse();
  if (steps.length === 0) return <p className="none">{status === 'loading' ? t.loading : t.timeline.none}</p>;
  return (
    <>
      <ol className="timeline">
        {steps.map(({ seq, to, at, until, lasts, late, least, attempt, reason, message: said, cause }) => (
          <li key={seq} data-state={to}>
            <StateIcon state={to} />
            <div>
              <span className="state-name">{stateName(to)}</span>
              {attempt > 1 && <span className="state-detail"> {t.timeline.attempt(attempt)}</span>}
              {lasts && (
                <span className="timeline-lasts">
                  {least && '≥ '}
                  <Age since={at} until={until} />
                  {least && age.seenLate}
                </span>
              )}
              <div className="timeline-at">
                <time dateTime={new Date(at).toISOString()}>{formatDate(at)}</time>
                {late && <span title={t.timeline.lateWhy}> · {least ? t.timeline.lateBegan : t.timeline.late}</span>}
              </div>
              {cause && <div className="timeline-why" translate="no">{saidOf(cause)}</div>}
              <Said reason={reason} said={said} again={said === told?.message} />
            </div>
          </li>
        ))}
      </ol>
      {life.others > 0 && <p className="none">{t.timeline.others(life.others)}</p>}
    </>
  );
}

/** So much of what a controller says stands there, in characters; the rest opens. */
const shown = 160;

/** The controller's own words; `again`: the page has told them, so the reason is enough. */
function Said({ reason, said, again }: { readonly reason: string; readonly said: string; readonly again: boolean }): ReactNode {
  const text = [reason, said].filter(Boolean).join(': ');
  if (again && reason && said) {
    return (
      <details className="timeline-said" translate="no">
        <summary>{reason}</summary>
        <span>{said}</span>
      </details>
    );
  }
  if (text.length <= shown) return text && <div className="timeline-said" translate="no">{text}</div>;
  const at = text.lastIndexOf(' ', shown);
  const end = at > shown / 2 ? at : shown;
  return (
    <details className="timeline-said" translate="no">
      <summary>{text.slice(0, end)} …</summary>
      {text.slice(end)}
    </details>
  );
}
